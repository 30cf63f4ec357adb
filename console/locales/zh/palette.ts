import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the command palette. */
export const palette: Texts['palette'] = {
  title: '命令面板',
  search: '搜索页面和操作',
  placeholder: '搜索页面、操作、密钥、模型、调用',
  searching: '正在搜索…',
  empty: '没有结果。',
  found: {
    key: (name) => `密钥 ${name}`,
    model: (name) => `模型 ${name}`,
    channel: (name) => `渠道 ${name}`,
    user: (name) => `用户 ${name}`,
    group: (name) => `分组 ${name}`,
    call: (model) => `${model} 的调用`,
  },
  commands: {
    disable: (name) => `禁用渠道 ${name}`,
    test: (name) => `测试渠道 ${name}`,
    price: (name) => `编辑 ${name} 的价格`,
    spend: (name) => `${name} 的消费`,
  },
  tested: (name) => `渠道“${name}”有应答`,
  testFailed: (name, message) => `渠道“${name}”失败：${message}`,
  words: {
    keys: '密钥 令牌 keys tokens',
    logs: '日志 调用 logs calls',
    sessions: 'sessions conversations caches 会话',
    routing: 'routing route simulate 路由',
    guards: '防护规则 拦截 脱敏 guards',
    channels: '渠道 上游 channels',
    account: '账户 密码 访问令牌 account password',
    models: '模型 价格 models prices',
    users: '用户 users',
    settings: '设置 选项 分组 settings',
    overview: '概览 首页 overview',
    playground: '试用 对话 playground chat',
    usage: '用量 统计 消费 usage',
    live: 'live running calls stop 实时调用',
    whatIf: 'what if prices recost 假设',
    audit: '审计 更改 audit',
  },
}
