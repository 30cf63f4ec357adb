import type { Budget } from './budget.ts'
import { allowListLines, isInRanges } from './ip-allow-list.ts'
import type { CallRateLimit, RateLimit } from './rate-limit.ts'
import type { Token } from './records/token.ts'
import { parseVendorRoutes } from './vendor-routes.ts'

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
  /** Limits other than budget and rate limit: quota, models, addresses, expiry, guards, group and routes. */
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
  return budget !== undefined || rateLimit !== undefined || Object.values(grants ?? {}).some(hasValue)
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

/** The fields of a token for its quota, models, addresses, expiry, guards, group and routes. */
export type TokenGrants = Pick<
  Token,
  | 'remain_quota'
  | 'unlimited_quota'
  | 'model_limits_enabled'
  | 'model_limits'
  | 'allow_ips'
  | 'expired_time'
  | 'guards'
  | 'group'
  | 'vendor_routes'
>

/**
 * Limits that an operator set for a token, apart from budget and rate limit. Null: an operator has decided that there is
 * none, and gateway.yaml does not set it again. Absent: no operator has decided.
 */
interface OperatorGrants {
  /** Total quota units, including those already spent. */
  readonly quota?: number | null
  /** Model names, separated by commas. */
  readonly models?: string | null
  /** Addresses and CIDR ranges, one per line. */
  readonly addresses?: string | null
  /** Latest expiry, in Unix seconds. */
  readonly expires?: number | null
  /** Names of guards that must check the token's calls. */
  readonly guards?: readonly string[] | null
  /** Name of the group that the token's calls use. */
  readonly group?: string | null
  /** Groups by vendor, as the token has them. */
  readonly routes?: string | null
}

type GrantName = keyof OperatorGrants

/** The fields of a token that express each limit. */
const FIELDS: Readonly<Record<GrantName, readonly (keyof TokenGrants)[]>> = {
  quota: ['remain_quota', 'unlimited_quota'],
  models: ['model_limits_enabled', 'model_limits'],
  addresses: ['allow_ips'],
  expires: ['expired_time'],
  guards: ['guards'],
  group: ['group'],
  routes: ['vendor_routes'],
}

const GRANT_NAMES = Object.keys(FIELDS) as GrantName[]

/** The present limits of a token that has spent `used_quota` quota units. */
function grantsOf(token: TokenGrants, used_quota: number): OperatorGrants {
  const { remain_quota, unlimited_quota, model_limits_enabled, model_limits, allow_ips } = token
  const { expired_time, guards, group, vendor_routes } = token
  return {
    ...(!unlimited_quota && { quota: remain_quota + used_quota }),
    ...(model_limits_enabled && { models: model_limits }),
    ...(allowListLines(allow_ips).length > 0 && { addresses: allow_ips ?? '' }),
    ...(expired_time !== -1 && { expires: expired_time }),
    ...(guards.length > 0 && { guards }),
    ...(group !== '' && { group }),
    ...(vendor_routes !== '' && { routes: vendor_routes }),
  }
}

/**
 * The operator's limits after an operator has edited `fields`; the result of the edit is `token`. Undefined
 * if no operator has decided any.
 */
export function operatorLimitsAfterEdit(
  before: OperatorGrants | undefined,
  token: TokenGrants & { readonly used_quota: number },
  fields: Partial<TokenGrants>,
): OperatorGrants | undefined {
  const present = grantsOf(token, token.used_quota)
  const edited = GRANT_NAMES.filter((name) => FIELDS[name].some((field) => fields[field] !== undefined))
  if (edited.length === 0) return before
  return { ...before, ...Object.fromEntries(edited.map((name) => [name, present[name] ?? null])) }
}

/**
 * The operator's limits of an existing token that gateway.yaml declares. Where no operator has decided yet, because the
 * token is older than these limits, those of the declaration are set, once. The quota is at least what the token has
 * now, because an operator may have raised it.
 */
export function operatorLimitsAfterDeclaration(
  before: OperatorGrants | undefined,
  present: { readonly remain_quota: number; readonly used_quota: number },
  declared: TokenGrants,
): OperatorGrants {
  if (before && GRANT_NAMES.every((name) => before[name] !== undefined)) return before
  const given = grantsOf(declared, 0)
  const quota = hasValue(given.quota)
    ? Math.max(given.quota, present.remain_quota + present.used_quota)
    : null
  const decided = { ...given, quota, ...before }
  return Object.fromEntries(GRANT_NAMES.map((name) => [name, decided[name] ?? null]))
}

/**
 * The first field in which a token is looser than the operator's limits, with the operator's value; undefined
 * if there is none.
 */
export function findLoosenedGrant(
  token: TokenGrants & { readonly used_quota: number },
  grants: OperatorGrants,
): { readonly field: string; readonly max: string | number } | undefined {
  const present = grantsOf(token, token.used_quota)
  const { quota, models, addresses, expires, guards } = grants
  if (hasValue(quota)) {
    const max = Math.max(0, quota - token.used_quota)
    if (present.quota === undefined) return { field: 'unlimited_quota', max }
    if ((present.quota ?? 0) > quota) return { field: 'remain_quota', max }
  }
  if (hasValue(models)) {
    if (!hasValue(present.models)) return { field: 'model_limits_enabled', max: models }
    const given = new Set(entriesOf(models))
    if (entriesOf(present.models).some((name) => !given.has(name)))
      return { field: 'model_limits', max: models }
  }
  if (hasValue(addresses)) {
    const lines = allowListLines(present.addresses ?? null)
    const given = allowListLines(addresses)
    if (lines.length === 0 || lines.some((line) => !isInRanges(line, given)))
      return { field: 'allow_ips', max: given.join(', ') }
  }
  if (hasValue(expires) && (!hasValue(present.expires) || present.expires > expires))
    return { field: 'expired_time', max: expires }
  if (guards?.some((name) => !token.guards.includes(name))) return { field: 'guards', max: guards.join(', ') }
  return findOtherGroup(token, grants)
}

// Groups have no order, so the holder keeps those that the operator chose. Where the operator chose none, the holder
// may choose.
function findOtherGroup(
  token: TokenGrants,
  { group, routes }: OperatorGrants,
): { readonly field: string; readonly max: string } | undefined {
  if (hasValue(group) && token.group !== group) return { field: 'group', max: group }
  const own = parseVendorRoutes(token.vendor_routes) ?? new Map<string, string>()
  const given = parseVendorRoutes(routes ?? '') ?? new Map<string, string>()
  for (const vendor of new Set([...given.keys(), ...own.keys()])) {
    const wanted = given.get(vendor) ?? (hasValue(group) ? group : undefined)
    if (wanted !== undefined && (own.get(vendor) ?? token.group) !== wanted)
      return { field: 'vendor_routes', max: hasValue(routes) ? routes : (group ?? '') }
  }
  return undefined
}

function hasValue<Value>(value: Value | null | undefined): value is Value {
  return value !== null && value !== undefined
}

function entriesOf(list: string): string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}
