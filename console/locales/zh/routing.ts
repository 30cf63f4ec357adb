import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the page Routing. */
export const routing: Texts['routing'] = {
  title: '路由',
  model: '模型',
  group: '分组',
  protocol: '协议',
  empty: '选择一个模型，查看其调用去向。',
  noChannel: '此分组中没有渠道提供该模型。',
  route: '路径',
  step: (number, fallback, priority) =>
    `${number}. ${fallback === '' ? '' : `备用 ${fallback}，`}优先级 ${priority}`,
  converted: '经转换',
  without: (channel) => `不使用 ${channel}`,
  whyNot: {
    disabled: '已停用',
    resting: '失败后冷却中',
    drained: '已排空',
    ended: '服务商已停用该模型',
    no_key: '所有密钥均暂停使用',
    rate_limited: '已达到速率限制',
    protocol: '不支持此协议',
    without: '此处未计入',
  },
  promptTokens: '提示词 token 数',
  maxTokens: '最大输出 token 数',
  simulate: '模拟一次调用',
  simulation: '模拟结果',
  refused: (status, code) => `将被拒绝，${status} ${code}：`,
  goesTo: (channels) => `调用将发往：${channels}。`,
  hold: '预留金额',
  ratio: (group, ratio) => `${group} × ${ratio}`,
  nothingSent: '未发送、未计费、未记录。',
}
