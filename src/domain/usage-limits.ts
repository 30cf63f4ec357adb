import type { Budget } from './budget.ts'
import { allowListLines, isInRanges } from './ip-allow-list.ts'
import type { CallRateLimit, RateLimit } from './rate-limit.ts'
import type { TOKEN_CONTENT_FIELDS } from './records/content-log.ts'
import type { Token, TokenChanges } from './records/token.ts'
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
  /** Limits other than budget and rate limit: quota, models, addresses, expiry, guards, toolsets, group and routes. */
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

/** Fields that can be edited and limit nothing. */
type Unlimiting = 'name' | keyof typeof TOKEN_CONTENT_FIELDS

/** The fields of a token that limit what its calls may use, apart from budget and rate limit. */
export type TokenGrants = Pick<Token, Exclude<keyof TokenChanges, keyof UsageLimitChanges | Unlimiting>>

/** Limits that an operator can set for a token, apart from budget and rate limit. */
interface GrantLimits {
  /** Total quota units, including those already spent. */
  readonly quota: number
  /** Model names, separated by commas. */
  readonly models: string
  /** Addresses and CIDR ranges, one per line. */
  readonly addresses: string
  /** Latest expiry, in Unix seconds. */
  readonly expires: number
  /** Names of guards that must check the token's calls. */
  readonly guards: readonly string[]
  /** Names of the MCP toolsets that the token's calls may use. */
  readonly toolsets: readonly string[]
  /** Name of the group that the token's calls use. */
  readonly group: string
  /** Groups by vendor, as the token has them. */
  readonly routes: string
}

type GrantName = keyof GrantLimits

/**
 * The limits that an operator set. Null: an operator has decided that there is none, and gateway.yaml does not set it
 * again. Absent: no operator has decided.
 */
type OperatorGrants = { readonly [Name in GrantName]?: GrantLimits[Name] | null }

/** A token with the quota units that it has spent. */
export type SpendingToken = TokenGrants & { readonly used_quota: number }

/** A field in which a token is looser than an operator's limit, with the operator's value. */
interface Loosened {
  readonly field: string
  readonly max: string | number
}

/** The limit that each field of a token expresses. */
const LIMIT_OF_FIELD: { readonly [Field in keyof TokenGrants]: GrantName } = {
  remain_quota: 'quota',
  unlimited_quota: 'quota',
  model_limits_enabled: 'models',
  model_limits: 'models',
  allow_ips: 'addresses',
  expired_time: 'expires',
  guards: 'guards',
  toolsets: 'toolsets',
  group: 'group',
  vendor_routes: 'routes',
}

/** One of the limits that an operator can set, and how a token expresses it. */
interface Grant<Limit> {
  /** The present limit of a token; undefined if it has none. */
  present(token: SpendingToken): Limit | undefined
  /** Returns the field in which a token is looser than `limit`; undefined if there is none. `grants`: all limits of the operator. */
  loosened(limit: Limit, token: SpendingToken, grants: OperatorGrants): Loosened | undefined
}

const GRANTS: { readonly [Name in GrantName]: Grant<GrantLimits[Name]> } = {
  quota: {
    present: ({ unlimited_quota, remain_quota, used_quota }) =>
      unlimited_quota ? undefined : remain_quota + used_quota,
    loosened(quota, { unlimited_quota, remain_quota, used_quota }) {
      const max = Math.max(0, quota - used_quota)
      if (unlimited_quota) return { field: 'unlimited_quota', max }
      return remain_quota + used_quota > quota ? { field: 'remain_quota', max } : undefined
    },
  },
  models: {
    present: ({ model_limits_enabled, model_limits }) => (model_limits_enabled ? model_limits : undefined),
    loosened(models, { model_limits_enabled, model_limits }) {
      if (!model_limits_enabled) return { field: 'model_limits_enabled', max: models }
      const given = new Set(entriesOf(models))
      const isLooser = entriesOf(model_limits).some((name) => !given.has(name))
      return isLooser ? { field: 'model_limits', max: models } : undefined
    },
  },
  addresses: {
    present: ({ allow_ips }) => (allowListLines(allow_ips).length > 0 ? (allow_ips ?? '') : undefined),
    loosened(addresses, { allow_ips }) {
      const lines = allowListLines(allow_ips)
      const given = allowListLines(addresses)
      const isLooser = lines.length === 0 || lines.some((line) => !isInRanges(line, given))
      return isLooser ? { field: 'allow_ips', max: given.join(', ') } : undefined
    },
  },
  expires: {
    present: ({ expired_time }) => (expired_time === -1 ? undefined : expired_time),
    loosened: (expires, { expired_time }) =>
      expired_time === -1 || expired_time > expires ? { field: 'expired_time', max: expires } : undefined,
  },
  guards: {
    present: ({ guards }) => (guards.length > 0 ? guards : undefined),
    loosened: (guards, token) =>
      guards.some((name) => !token.guards.includes(name))
        ? { field: 'guards', max: guards.join(', ') }
        : undefined,
  },
  toolsets: {
    present: ({ toolsets }) => (toolsets.length > 0 ? toolsets : undefined),
    loosened(toolsets, token) {
      const isLooser = token.toolsets.length === 0 || token.toolsets.some((name) => !toolsets.includes(name))
      return isLooser ? { field: 'toolsets', max: toolsets.join(', ') } : undefined
    },
  },
  // Groups have no order, so the holder keeps those that the operator chose. Where the operator chose none, the holder
  // may choose.
  group: {
    present: ({ group }) => (group === '' ? undefined : group),
    loosened: (group, token, { routes }) =>
      token.group === group ? findOtherRoute(token, routes, group) : { field: 'group', max: group },
  },
  routes: {
    present: ({ vendor_routes }) => (vendor_routes === '' ? undefined : vendor_routes),
    loosened: (routes, token, { group }) => findOtherRoute(token, routes, group),
  },
}

const GRANT_NAMES = Object.keys(GRANTS) as GrantName[]

/** The present limits of a token. */
function grantsOf(token: SpendingToken): OperatorGrants {
  const present = GRANT_NAMES.map((name) => [name, GRANTS[name].present(token)] as const)
  return Object.fromEntries(present.filter(([, limit]) => limit !== undefined))
}

/**
 * The operator's limits after an operator has edited `fields`; the result of the edit is `token`. Undefined
 * if no operator has decided any.
 */
export function operatorLimitsAfterEdit(
  before: OperatorGrants | undefined,
  token: SpendingToken,
  fields: Partial<TokenGrants>,
): OperatorGrants | undefined {
  const present = grantsOf(token)
  const names = Object.entries(LIMIT_OF_FIELD) as [keyof TokenGrants, GrantName][]
  const edited = names.filter(([field]) => fields[field] !== undefined)
  if (edited.length === 0) return before
  return { ...before, ...Object.fromEntries(edited.map(([, name]) => [name, present[name] ?? null])) }
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
  const given = grantsOf({ ...declared, used_quota: 0 })
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
export function findLoosenedGrant(token: SpendingToken, grants: OperatorGrants): Loosened | undefined {
  for (const name of GRANT_NAMES) {
    const loosened = findLoosened(name, grants[name], token, grants)
    if (loosened) return loosened
  }
  return undefined
}

function findLoosened<Name extends GrantName>(
  name: Name,
  limit: GrantLimits[Name] | null | undefined,
  token: SpendingToken,
  grants: OperatorGrants,
): Loosened | undefined {
  return hasValue(limit) ? GRANTS[name].loosened(limit, token, grants) : undefined
}

/** Returns `vendor_routes` if the calls of a vendor would use another group than the operator chose. */
function findOtherRoute(
  token: TokenGrants,
  routes: OperatorGrants['routes'],
  group: OperatorGrants['group'],
): Loosened | undefined {
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
