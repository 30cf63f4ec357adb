/** Texts in English: the sign-in page. */
export const login = {
  title: 'Sign in',
  username: 'Username',
  password: 'Password',
  accessToken: 'Access token',
  useToken: 'Use an access token',
  usePassword: 'Use a password',
  or: 'or',
  signInWith: (provider: string) => `Sign in with ${provider}`,
  tokenHint: 'The gateway prints one at its first start.',
  wrongPair: 'This username and password do not belong together, or the account is disabled.',
  wrongToken: 'This access token is not valid.',
  disabled: 'This account is disabled. Ask an administrator.',
  limited: (seconds: number | string) => `Too many attempts. Try again in ${seconds} s.`,
  unreachable: 'The gateway does not answer. Try again in a moment.',
  tagline: 'Gateway for language models',
}
