import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: overview. */
export const overview: Texts['overview'] = {
  title: '概览',
  spend: '消费',
  keys: '密钥',
  recent: '最近的调用',
  thisMonth: '本月',
  today: '今天',
  leftHere: '你的账户剩余',
  left: '剩余',
  calls: '调用',
  tokens: 'Token 数',
  noCalls: '还没有调用。调用结束后会很快显示在这里。',
  allCalls: '所有调用',
  allKeys: '所有密钥',
  spenders: '消费最多的用户',
  allSpenders: '所有用户',
  noSpend: '本月还没有人消费。',
  troubled: '需要关注的渠道',
  noTrouble: '没有：所有渠道都有应答。',
  allUsers: '所有用户合计',
}
