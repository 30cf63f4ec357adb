import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: calls under way. */
export const live: Texts['live'] = {
  title: '实时调用',
  table: '进行中的调用',
  empty: '没有进行中的调用。',
  count: (_, text) => `${text} 个进行中的调用`,
  started: '开始时间',
  model: '模型',
  key: '密钥',
  user: '用户',
  channel: '渠道',
  tokens: 'Token',
  cost: '费用',
  time: '耗时',
  states: { waiting: '等待中', sent: '已发送', answering: '答复中' },
  at: (channel, attempt) => (attempt > 1 ? `${channel}（第 ${attempt} 次尝试）` : channel),
  stop: '停止',
  stopped: (model, key) => `“${key}”对 ${model} 的调用已停止。已收到的部分会计费。`,
  notStopped: (model, key) => `“${key}”对 ${model} 的调用未能停止。`,
}
