import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the page Setup. */
export const setup: Texts['setup'] = {
  title: '设置 Sluice',
  steps: '设置步骤',
  hint: '四步完成首次调用并查看费用。每一步都根据网关的实际状态标记为完成。',
  skip: '跳过设置',
  toOverview: '前往概览',
  done: '已完成',
  names: { channel: '添加渠道', key: '创建密钥', call: '发起调用', cost: '查看费用' },
  texts: {
    channel: '调用发往何处：服务商的地址，以及你在那里的密钥。',
    key: '程序用它来调用此网关。',
    call: '用这个密钥向模型打个招呼。',
    cost: '每次调用都在日志中，费用逐项列出。',
  },
  actions: { channel: '选择服务商', key: '命名密钥', call: '打开试用', cost: '打开该调用' },
}
