import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: an edit conflict. */
export const conflict: Texts['conflict'] = {
  title: '已被他人修改',
  text: '自你打开后，已有人保存了修改。你的修改尚未保存。',
  same: '自你打开后，已有人保存了修改，但涉及其他字段或内容相同。',
  field: '字段',
  mine: '你的',
  theirs: '对方的',
  take: '采用对方的',
  overwrite: '覆盖',
}
