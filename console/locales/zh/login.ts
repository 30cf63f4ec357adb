import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the sign-in page. */
export const login: Texts['login'] = {
  title: '登录',
  username: '用户名',
  password: '密码',
  accessToken: '访问令牌',
  useToken: '使用访问令牌',
  usePassword: '使用密码',
  or: '或',
  signInWith: (provider) => `使用 ${provider} 登录`,
  inOtherTab: '将在另一个标签页中打开。登录后，此页面会继续。',
  tokenHint: '网关首次启动时会打印一个访问令牌。',
  wrongPair: '用户名与密码不匹配，或账户已停用。',
  wrongToken: '此访问令牌无效。',
  disabled: '此账户已停用，请联系管理员。',
  limited: (seconds) => `尝试次数过多，请在 ${seconds} 秒后重试。`,
  unreachable: '网关没有响应，请稍后重试。',
  tagline: '大语言模型网关',
  join: '加入',
  joinHint: '你收到了邀请。请为账户选择名称和密码。',
  joinPasswordHint: '至少 8 个字符。',
  joinButton: '创建账户',
}
