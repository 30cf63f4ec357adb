import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: palette. */
export const palette: Texts['palette'] = {
  title: '命令面板',
  search: '搜索页面和操作',
  empty: '没有结果。',
  go: (page) => page,
  callById: (id) => `调用 ${id}`,
  words: {
    keys: '密钥 令牌 keys tokens',
    logs: '日志 调用 logs calls',
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
