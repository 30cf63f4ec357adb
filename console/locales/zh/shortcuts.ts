import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the list of keyboard shortcuts. */
export const shortcuts: Texts['shortcuts'] = {
  title: '键盘快捷键',
  letters: '启用单字母快捷键',
  palette: '搜索页面和操作',
  help: '显示此列表',
  filter: '转到筛选框',
  create: '新建',
  rows: '下一行和上一行',
  open: '打开该行',
  close: '关闭',
  goTo: (page) => `前往${page}`,
}
