import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the keys of a channel. */
export const channelKeys: Texts['channelKeys'] = {
  add: '添加密钥',
  key: '密钥',
  since: '起始时间',
  states: { works: '正常', set_aside: '暂停使用', retired: '已停用' },
  because: (state, cause) => `${state}：${cause}`,
  retire: '停用',
  useAgain: '重新使用',
  remove: '移除',
  removeTitle: '移除密钥',
  removeText: (key) => `密钥 ${key} 将从此渠道移除，且无法再次显示。`,
}
