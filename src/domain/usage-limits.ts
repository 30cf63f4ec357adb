import type { Budget } from './budget.ts'
import { allowListLines, isInRanges } from './ip-allow-list.ts'
import type { CallRateLimit, RateLimit } from './rate-limit.ts'
import type { Token } from './records/token.ts'

/** Budget and rate limit of a token, or of all tokens of a user together. */
export interface UsageLimits {
  readonly budget: Budget | undefined
  readonly rateLimit: CallRateLimit
}

/** Changes of a budget and a rate limit; absent fields stay unchanged. Null removes the budget. */
export interface UsageLimitChanges {
  readonly budget?: Budget | null | undefined
  readonly rateLimit?: Partial<CallRateLimit> | undefined
}

/** Limits of a token that an operator set. The holder of the token can only tighten them. */
export interface OperatorLimits {
  readonly budget?: Budget
  readonly rateLimit?: CallRateLimit
  /** Limits other than budget and rate limit: quota, models, addresses, expiry and guards. */
  readonly grants?: OperatorGrants
}

/** No limits set by an operator. */
export const NO_OPERATOR_LIMITS: OperatorLimits = Object.freeze({})

/** Parses the limits that an operator set for a token; an empty text means none. */
export function parseOperatorLimits(text: string): OperatorLimits {
  return text === '' ? NO_OPERATOR_LIMITS : (JSON.parse(text) as OperatorLimits)
}

/**
 * Formats the limits that an operator set for a token as the text that is stored; equal limits have equal
 * texts.
 */
export function formatOperatorLimits({ budget, rateLimit, grants }: OperatorLimits): string {
  return budget || rateLimit || grants ? JSON.stringify({ budget, rateLimit, grants }) : ''
}

/** The counts of a rate limit, with the names of their fields in requests and responses. */
const COUNTS = [
  ['requests', 'rate_limit_requests'],
  ['tokens', 'rate_limit_tokens'],
  ['parallel', 'rate_limit_parallel'],
] as const

/** Whether a limit restricts anything. */
export function hasRateLimit({ requests, tokens, parallel }: CallRateLimit): boolean {
  return requests > 0 || tokens > 0 || parallel > 0
}

/** Whether an operator set any limit of a token. */
export function isSetByOperator({ operator_terms }: { readonly operator_terms: OperatorLimits }): boolean {
  const { budget, rateLimit, grants } = operator_terms
  return budget !== undefined || rateLimit !== undefined || grants !== undefined
}

/** Whether a limit counts something per window: requests or tokens. */
function isCounted({ requests, tokens }: RateLimit): boolean {
  return requests > 0 || tokens > 0
}

/** The operator's limits after an operator has changed a token. `windowMs` is the token's present window. */
export function operatorLimitsAfterChange(
  before: OperatorLimits,
  { budget, rateLimit }: UsageLimitChanges,
  windowMs: number,
): OperatorLimits {
  const given = budget === undefined ? before.budget : budget
  const present = before.rateLimit
  const limit = {
    requests: 0,
    tokens: 0,
    parallel: 0,
    ...present,
    // Unless the operator limits requests or tokens, the holder may choose the window.
    windowMs: present && isCounted(present) ? present.windowMs : windowMs,
    ...rateLimit,
  }
  const { grants } = before
  return {
    ...(given && { budget: given }),
    ...(hasRateLimit(limit) && { rateLimit: limit }),
    ...(grants && { grants }),
  }
}

/**
 * The first field in which a token's limits are looser than the operator's, with the operator's value;
 * undefined if there is none. A different period or window counts as looser, because counting would start
 * again from zero.
 */
export function findLoosenedLimit(
  { budget, rateLimit }: UsageLimits,
  { budget: max, rateLimit: limit }: OperatorLimits,
): { readonly field: string; readonly max: string | number } | undefined {
  if (max) {
    if (!budget || budget.amount > max.amount) return { field: 'budget', max: max.amount }
    if (budget.period !== max.period) return { field: 'budget_period', max: max.period }
  }
  if (!limit) return undefined
  for (const [name, field] of COUNTS)
    if (limit[name] > 0 && (rateLimit[name] === 0 || rateLimit[name] > limit[name]))
      return { field, max: limit[name] }
  if (isCounted(limit) && rateLimit.windowMs !== limit.windowMs)
    return { field: 'rate_limit_window', max: limit.windowMs / 1000 }
  return undefined
}

/** The fields of a token for its quota, models, addresses, expiry and guards. */
export type TokenGrants = Pick<
  Token,
  | 'remain_quota'
  | 'unlimited_quota'
  | 'model_limits_enabled'
  | 'model_limits'
  | 'allow_ips'
  | 'expired_time'
  | 'guards'
>

/** Limits that an operator set for a token, apart from budget and rate limit; absent ones are not set. */
interface OperatorGrants {
  /** Total quota units, including those already spent. */
  readonly quota?: number
  /** Model names, separated by commas. */
  readonly models?: string
  /** Addresses and CIDR ranges, one per line. */
  readonly addresses?: string
  /** Latest expiry, in Unix seconds. */
  readonly expires?: number
  /** Names of guards that must check the token's calls. */
  readonly guards?: readonly string[]
}

/** The fields of a token that express each limit. */
const FIELDS: Readonly<Record<keyof OperatorGrants, readonly (keyof TokenGrants)[]>> = {
  quota: ['remain_quota', 'unlimited_quota'],
  models: ['model_limits_enabled', 'model_limits'],
  addresses: ['allow_ips'],
  expires: ['expired_time'],
  guards: ['guards'],
}

/** The present limits of a token that has spent `used_quota` quota units. */
function grantsOf(token: TokenGrants, used_quota: number): OperatorGrants {
  const { remain_quota, unlimited_quota, model_limits_enabled, model_limits, allow_ips } = token
  const { expired_time, guards } = token
  return {
    ...(!unlimited_quota && { quota: remain_quota + used_quota }),
    ...(model_limits_enabled && { models: model_limits }),
    ...(allowListLines(allow_ips).length > 0 && { addresses: allow_ips ?? '' }),
    ...(expired_time !== -1 && { expires: expired_time }),
    ...(guards.length > 0 && { guards }),
  }
}

/**
 * The operator's limits after an operator has edited `fields`; the result of the edit is `token`. Undefined
 * if there are none.
 */
export function operatorLimitsAfterEdit(
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
 * The first field in which a token is looser than the operator's limits, with the operator's value; undefined
 * if there is none.
 */
export function findLoosenedGrant(
  token: TokenGrants & { readonly used_quota: number },
  { quota, models, addresses, expires, guards }: OperatorGrants,
): { readonly field: string; readonly max: string | number } | undefined {
  const present = grantsOf(token, token.used_quota)
  if (quota !== undefined) {
    const max = Math.max(0, quota - token.used_quota)
    if (present.quota === undefined) return { field: 'unlimited_quota', max }
    if (present.quota > quota) return { field: 'remain_quota', max }
  }
  if (models !== undefined) {
    if (present.models === undefined) return { field: 'model_limits_enabled', max: models }
    const given = new Set(entriesOf(models))
    if (entriesOf(present.models).some((name) => !given.has(name)))
      return { field: 'model_limits', max: models }
  }
  if (addresses !== undefined) {
    const lines = allowListLines(present.addresses ?? null)
    const given = allowListLines(addresses)
    if (lines.length === 0 || lines.some((line) => !isInRanges(line, given)))
      return { field: 'allow_ips', max: given.join(', ') }
  }
  if (expires !== undefined && (present.expires === undefined || present.expires > expires))
    return { field: 'expired_time', max: expires }
  if (guards?.some((name) => !token.guards.includes(name))) return { field: 'guards', max: guards.join(', ') }
  return undefined
}

function entriesOf(list: string): string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}
