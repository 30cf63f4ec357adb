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
    disable: (name) => `停用渠道 ${name}`,
    test: (name) => `测试渠道 ${name}`,
    price: (name) => `编辑 ${name} 的价格`,
    spend: (name) => `${name} 的消费`,
  },
  tested: (name) => `渠道“${name}”有响应`,
  testFailed: (name, message) => `渠道“${name}”失败：${message}`,
  section: (title) => `设置：${title}`,
}
