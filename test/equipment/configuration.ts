/** The fields of gateway.yaml, as `docs/configuration.md` names them. */
export interface Configuration {
  readonly options?: Record<string, unknown>
  readonly rate_limits?: Record<string, unknown>
  readonly groups?: Record<string, unknown>
  readonly models?: Record<string, unknown>
  readonly channels?: readonly Record<string, unknown>[]
  readonly users?: readonly Record<string, unknown>[]
  readonly login?: Record<string, unknown>
  readonly alerts?: readonly Record<string, unknown>[]
}

/**
 * One quota unit per prompt token, four per output token, a quarter per cached one, at 500,000 units a
 * dollar.
 */
export const PLAIN_PRICE = { input: 2, output: 8, cache_read: 0.5 }

/** A quota that no test uses up. */
export const AMPLE = 1_000_000_000_000

/** A token seed. Unlimited unless a quota is given. */
export function token(key: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const quota = 'remain_quota' in fields ? {} : { unlimited_quota: true }
  return { name: `token-${key}`, key: `sk-${key}`, ...quota, ...fields }
}

/** A user seed of the common role. */
export function user(
  id: number,
  username: string,
  tokens: readonly Record<string, unknown>[],
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return { id, username, role: 1, group: 'default', quota: AMPLE, tokens, ...fields }
}

/** A root user, so that the gateway does not create one. */
export const ROOT = {
  id: 1,
  username: 'root',
  role: 100,
  group: 'default',
  quota: AMPLE,
  access_token: 'root-access-token',
}

/** A channel of the chat dialect with one key. */
export function channel(
  name: string,
  baseUrl: string,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    name,
    protocol: 'chat',
    base_url: baseUrl,
    keys: [`upstream-key-of-${name}`],
    models: [name],
    ...fields,
  }
}

/** The model `m` behind a channel of the same name, and the key `ann` with ample quota. */
export function plainConfiguration(
  baseUrl: string,
): Required<Pick<Configuration, 'models' | 'channels' | 'users'>> {
  return {
    models: priced(['m']),
    channels: [channel('m', baseUrl)],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }
}

/** A model entry for each name, all with the same price. */
export function priced(names: readonly string[], price: unknown = PLAIN_PRICE): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, { vendor: 'acme', price }]))
}

/** The budget and rate limit fields of a token or user without any, as responses show them. */
export const NO_TERMS = {
  budget: 0,
  budget_period: '',
  budget_used: 0,
  budget_resets_at: 0,
  rate_limit_requests: 0,
  rate_limit_tokens: 0,
  rate_limit_parallel: 0,
  rate_limit_window: 60,
  limits_by: '',
}
