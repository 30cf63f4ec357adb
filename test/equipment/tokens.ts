import { type Account, manage } from './account.ts'

/** A token as management paths show it; `docs/api.md: Token`. */
export interface ShownToken {
  readonly id: number
  readonly user_id: number
  readonly name: string
  readonly key: string
  readonly status: number
  readonly created_time: number
  readonly accessed_time: number
  readonly expired_time: number
  readonly remain_quota: number
  readonly unlimited_quota: boolean
  readonly used_quota: number
  readonly model_limits_enabled: boolean
  readonly model_limits: string
  readonly allow_ips: string | null
  readonly group: string
  readonly vendor_routes: string
  readonly DeletedAt: string | null
}

/** `docs/api.md: Token page`. */
export interface ShownPage {
  readonly page: number
  readonly page_size: number
  readonly total: number
  readonly items: readonly ShownToken[]
}

/** A body that creates a token with 1,000 quota units which never expires. */
export function tokenBody(name: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { name, expired_time: -1, remain_quota: 1000, ...fields }
}

/** Creates a token and finds it as clients do: it is the newest one. */
export async function createToken(
  url: string,
  account: Account,
  name: string,
  fields: Record<string, unknown> = {},
): Promise<ShownToken> {
  const made = await manage(url, account, 'POST /api/token/', tokenBody(name, fields))
  if (made.status !== 200) throw new Error(`${made.status}: ${made.message}`)
  const { data } = await manage<ShownPage>(url, account, 'GET /api/token/?page_size=1')
  const [token] = data.items
  if (token?.name !== name) throw new Error(`the newest token is not ${name}`)
  return token
}

/** The whole key of a token, without `sk-`. */
export async function keyOf(url: string, account: Account, id: number): Promise<string> {
  const { data } = await manage<{ key: string }>(url, account, `POST /api/token/${id}/key`)
  return data.key.slice('sk-'.length)
}
