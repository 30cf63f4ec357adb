import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the frame around all pages. */
export const shell: Texts['shell'] = {
  skip: '跳到内容',
  main: '主导航',
  operate: '运维',
  accountMenu: '账户菜单',
  signOut: '退出登录',
  theme: '主题',
  language: '语言',
  openMenu: '打开菜单',
  fold: '折叠菜单',
  unfold: '展开菜单',
  search: '搜索',
  searchKeys: 'Ctrl K',
  sessionEnded: '会话已结束',
  sessionEndedHint: '请重新登录以继续。你输入的内容已保留。',
  setPasswordHint: '你没有使用密码登录。',
  setPassword: '设置密码',
  notNow: '暂不',
  themes: { system: '跟随系统', light: '浅色', dark: '深色' },
}
