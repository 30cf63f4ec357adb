import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the keys of a channel. */
export const channelKeys: Texts['channelKeys'] = {
  add: '添加密钥',
  key: '密钥',
  since: '起始时间',
  position: '序号',
  left: '服务商剩余额度',
  reset: '重置时间',
  requests: (remaining, limit) =>
    limit === undefined ? `剩余 ${remaining} 次请求` : `剩余 ${remaining} / ${limit} 次请求`,
  tokens: (remaining, limit) =>
    limit === undefined ? `剩余 ${remaining} 个 token` : `剩余 ${remaining} / ${limit} 个 token`,
  leastLeft: (percent) => `最近一小时：最低剩余 ${percent}%`,
  restsUntil: '暂停至',
  states: { works: '正常', set_aside: '暂停使用', retired: '已停用' },
  because: (state, cause) => `${state}：${cause}`,
  retire: '停用',
  useAgain: '重新使用',
  remove: '移除',
  removeTitle: '移除密钥',
  removeText: (key) => `密钥 ${key} 将从此渠道移除，且无法再次显示。`,
}
