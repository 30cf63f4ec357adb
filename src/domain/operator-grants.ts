import { allowListLines, isWithin } from './ip-allow-list.ts'
import type { Token } from './records/token.ts'

/** Quota, models, addresses and expiry of a token. */
export type TokenGrants = Pick<
  Token,
  'remain_quota' | 'unlimited_quota' | 'model_limits_enabled' | 'model_limits' | 'allow_ips' | 'expired_time'
>

/** The part of these grants that an operator gave. */
export interface OperatorGrants {
  /** Quota units, including those already spent. */
  readonly quota?: number
  /** Comma-separated. */
  readonly models?: string
  /** Addresses and CIDRs, one per line. */
  readonly addresses?: string
  /** Unix seconds. */
  readonly expires?: number
}

/** Fields of a token that express each of the grants. */
const FIELDS: Readonly<Record<keyof OperatorGrants, readonly (keyof TokenGrants)[]>> = {
  quota: ['remain_quota', 'unlimited_quota'],
  models: ['model_limits_enabled', 'model_limits'],
  addresses: ['allow_ips'],
  expires: ['expired_time'],
}

/** The limits of a token that has spent `used_quota`. */
function grantsOf(token: TokenGrants, used_quota: number): OperatorGrants {
  const { remain_quota, unlimited_quota, model_limits_enabled, model_limits, allow_ips, expired_time } = token
  return {
    ...(!unlimited_quota && { quota: remain_quota + used_quota }),
    ...(model_limits_enabled && { models: model_limits }),
    ...(allowListLines(allow_ips).length > 0 && { addresses: allow_ips ?? '' }),
    ...(expired_time !== -1 && { expires: expired_time }),
  }
}

/**
 * The operator's grants after an operator has edited these fields of `token`; undefined if there are none.
 */
export function grantsAfter(
  before: OperatorGrants | undefined,
  token: TokenGrants & { readonly used_quota: number },
  fields: Partial<TokenGrants>,
): OperatorGrants | undefined {
  const present = grantsOf(token, token.used_quota)
  const names = (Object.keys(FIELDS) as (keyof OperatorGrants)[]).filter((name) =>
    FIELDS[name].some((field) => fields[field] !== undefined),
  )
  const kept = Object.entries(before ?? {}).filter(([name]) => !names.some((given) => given === name))
  const given = Object.entries(present).filter(([name]) => names.some((one) => one === name))
  const all = [...kept, ...given]
  return all.length > 0 ? Object.fromEntries(all) : undefined
}

/**
 * The first field in which a token is looser than the operator's grants, with the value that the operator
 * gave.
 */
export function loosenedGrant(
  token: TokenGrants & { readonly used_quota: number },
  { quota, models, addresses, expires }: OperatorGrants,
): { readonly field: string; readonly most: string | number } | undefined {
  const present = grantsOf(token, token.used_quota)
  if (quota !== undefined) {
    const most = Math.max(0, quota - token.used_quota)
    if (present.quota === undefined) return { field: 'unlimited_quota', most }
    if (present.quota > quota) return { field: 'remain_quota', most }
  }
  if (models !== undefined) {
    if (present.models === undefined) return { field: 'model_limits_enabled', most: models }
    const given = new Set(entriesOf(models))
    if (entriesOf(present.models).some((name) => !given.has(name)))
      return { field: 'model_limits', most: models }
  }
  if (addresses !== undefined) {
    const lines = allowListLines(present.addresses ?? null)
    const given = allowListLines(addresses)
    if (lines.length === 0 || lines.some((line) => !isWithin(line, given)))
      return { field: 'allow_ips', most: given.join(', ') }
  }
  if (expires !== undefined && (present.expires === undefined || present.expires > expires))
    return { field: 'expired_time', most: expires }
  return undefined
}

function entriesOf(list: string): string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}
