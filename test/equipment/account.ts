import { type FullResponse, type Body, call } from './client.ts'

/** The response of a management path. */
export interface ManagementResponse<Data = unknown> {
  readonly status: number
  readonly headers: FullResponse['headers']
  readonly success: boolean
  readonly message: string
  readonly data: Data
  /** The whole body, parsed. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Credentials of an account for management paths. */
export interface Account {
  readonly id: number
  readonly accessToken: string
}

/**
 * Calls a management path with the headers of an account; `headers` are added, and those that are undefined
 * are removed.
 */
export async function manage<Data = unknown>(
  url: string,
  account: Account,
  request: `${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`,
  body?: Body,
  headers: Readonly<Record<string, string | undefined>> = {},
): Promise<ManagementResponse<Data>> {
  const [method, path] = request.split(' ')
  const sent = { authorization: account.accessToken, 'gateway-user': String(account.id), ...headers }
  const given = Object.entries(sent).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const answer = await call(url, body, {
    method: method ?? '',
    path: path ?? '',
    headers: Object.fromEntries(given),
  })
  const parsed = answer.text === '' ? {} : JSON.parse(answer.text)
  const { success, message, data } = parsed
  return { status: answer.status, headers: answer.headers, success, message, data, body: parsed }
}
