import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: budgets and rate limits. */
export const limits: Texts['limits'] = {
  title: '预算',
  budget: '预算',
  budgetHint: '每个周期内最多可消费的金额。留空表示没有预算。',
  budgetPeriod: '预算周期',
  budgetPeriodHint: '预算何时重新开始。',
  periods: { '': '无', day: '每天', week: '每周', month: '每月' },
  rateLimits: {
    rate_limit_requests: '窗口内的请求数',
    rate_limit_tokens: '窗口内的 token 数',
    rate_limit_parallel: '同时进行的调用数',
    rate_limit_window: '窗口长度',
  },
  rateLimitHints: {
    rate_limit_requests: '超出的调用会被拒绝，直到窗口有余量。',
    rate_limit_tokens: '提示词和答复合计。',
    rate_limit_parallel: '同一时间正在进行的调用。',
    rate_limit_window: '统计请求数和 token 数的时间长度。',
  },
  windows: { 60: '1 分钟', 300: '5 分钟', 3600: '1 小时', 86_400: '1 天' },
  seconds: (count) => `${count} 秒`,
  noLimit: '不限',
  notWithin: (min, max) => `请输入 ${min} 到 ${max} 之间的整数。`,
  budgetOf: (name) => `${name} 的预算`,
  meter: (used, budget, day) => `${used}\u00a0/\u00a0${budget}，${day}重置`,
  held: (amount) => `占用 ${amount}`,
  endsOn: (day) => `预计 ${day}用尽`,
  endsAt: (time) => `预计今天 ${time} 用尽`,
  usedUp: '已用尽',
  by: {
    key: () => '受密钥消费上限限制',
    user: () => '受账户额度限制',
    key_budget: () => '受密钥预算限制',
    user_budget: () => '受账户预算限制',
    group_budget: (group) => `受分组 ${group} 的预算限制`,
  },
  stopped: '预算已用尽',
  raise: '提高预算',
  amountHint: '加到每个周期的预算上。',
  raised: (name, amount) => `“${name}” 的预算现为 ${amount}。`,
}
