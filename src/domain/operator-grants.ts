import { allowListLines, isWithin } from './ip-allow-list.ts'
import type { Token } from './token.ts'

/** Quota, models, addresses and expiry of a token. */
export type TokenGrants = Pick<
  Token,
  'remainQuota' | 'unlimitedQuota' | 'modelLimitsEnabled' | 'modelLimits' | 'allowIps' | 'expiredTime'
>

/** The part of these that an operator gave. */
export interface OperatorGrants {
  /** Quota units, those that were spent included. */
  readonly quota?: number
  /** Comma-separated. */
  readonly models?: string
  /** Addresses and CIDRs, one a line. */
  readonly addresses?: string
  /** Unix seconds. */
  readonly expires?: number
}

/** Fields of a token that each of them is given by. */
const FIELDS: Readonly<Record<keyof OperatorGrants, readonly (keyof TokenGrants)[]>> = {
  quota: ['remainQuota', 'unlimitedQuota'],
  models: ['modelLimitsEnabled', 'modelLimits'],
  addresses: ['allowIps'],
  expires: ['expiredTime'],
}

/** The limits that a token has, of which `usedQuota` is spent. */
function grantsOf(token: TokenGrants, usedQuota: number): OperatorGrants {
  const { remainQuota, unlimitedQuota, modelLimitsEnabled, modelLimits, allowIps, expiredTime } = token
  return {
    ...(!unlimitedQuota && { quota: remainQuota + usedQuota }),
    ...(modelLimitsEnabled && { models: modelLimits }),
    ...(allowListLines(allowIps).length > 0 && { addresses: allowIps ?? '' }),
    ...(expiredTime !== -1 && { expires: expiredTime }),
  }
}

/** The operator's grants after an operator made `token` what it is by these fields; undefined without any. */
export function grantsAfter(
  before: OperatorGrants | undefined,
  token: TokenGrants & { readonly usedQuota: number },
  fields: Partial<TokenGrants>,
): OperatorGrants | undefined {
  const present = grantsOf(token, token.usedQuota)
  const names = (Object.keys(FIELDS) as (keyof OperatorGrants)[]).filter((name) =>
    FIELDS[name].some((field) => fields[field] !== undefined),
  )
  const kept = Object.entries(before ?? {}).filter(([name]) => !names.some((given) => given === name))
  const given = Object.entries(present).filter(([name]) => names.some((one) => one === name))
  const all = [...kept, ...given]
  return all.length > 0 ? Object.fromEntries(all) : undefined
}

/** The field by which a token is looser than the operator's grants, with its value there. */
export function loosenedGrant(
  token: TokenGrants & { readonly usedQuota: number },
  { quota, models, addresses, expires }: OperatorGrants,
): { readonly field: string; readonly most: string | number } | undefined {
  const present = grantsOf(token, token.usedQuota)
  if (quota !== undefined) {
    const most = Math.max(0, quota - token.usedQuota)
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
