import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the question before leaving a changed form. */
export const leaveForm: Texts['leave'] = { title: '离开此表单？', stay: '留在此页', leave: '不保存并离开' }
