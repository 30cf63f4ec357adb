import { type FullResponse, type Body, call } from './client.ts'

/** A browser's session in a test. */
export interface LoggedIn {
  readonly status: number
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
  readonly headers: FullResponse['headers']
  /** The whole `set-cookie` header. */
  readonly setCookie: string
  /** The `cookie` header that a browser sends back. */
  readonly cookie: string
}

/** Tries to log in to the console. */
export async function logIn(
  url: string,
  body: Body,
  headers: Readonly<Record<string, string>> = {},
): Promise<LoggedIn> {
  const answer = await call(url, body, { path: '/api/user/login', headers })
  const { message, data } = JSON.parse(answer.text)
  const setCookie = answer.headers['set-cookie']?.join('\n') ?? ''
  return {
    status: answer.status,
    message,
    data,
    headers: answer.headers,
    setCookie,
    cookie: setCookie.split(';')[0] ?? '',
  }
}

/** Headers of console requests that replace an access token: the session cookie, and the user's id. */
export function sessionHeaders(cookie: string): {
  readonly authorization: undefined
  readonly cookie: string
} {
  return { authorization: undefined, cookie }
}
