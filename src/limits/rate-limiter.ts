import type { RateLimit } from '../domain/rate-limit.ts'
import { GatewayError, type RefusedLimit } from '../errors.ts'
import type { CountedLimit, RateCounter } from './rate-counter.ts'
import type { LimitDecision } from './sliding-window.ts'

/** The names under which the two counts of a limit (of requests and of tokens) are stored. */
export interface LimitName {
  readonly requests: string
  readonly tokens: string
}

/**
 * Limits by name. The names are made once, because JavaScript must hash a newly built string at each lookup.
 */
export const LIMIT_NAMES = {
  global: named('global'),
  relay: named('relay'),
  key: named('key'),
  /** The limit that the holder of a key has set for it. */
  own: named('own'),
  user: named('user'),
  model: named('model'),
  channel: named('channel'),
  /** The limit of an MCP server for each API key. */
  server: named('server'),
  search: named('search'),
  critical: named('critical'),
  console: named('console'),
  /** Changes that an account may make in 24 hours. */
  changes: named('changes'),
} as const

/** A rate limit, and whom it limits. */
export interface SubjectLimit {
  readonly name: LimitName
  readonly subject: string | number
  readonly limit: RateLimit
}

/** What a limit counts. */
type LimitedAmount = 'requests' | 'tokens'

/**
 * The decision of a rate limit; if it refuses, `usedUp` states what is used up. Undefined if there is no
 * limit.
 */
export type RateLimitVerdict = (LimitDecision & { readonly usedUp?: LimitedAmount }) | undefined

/** Marks a refusal as one for lack of tokens. */
const ofTokens = (verdict: LimitDecision): LimitDecision & { readonly usedUp?: LimitedAmount } =>
  verdict.allowed ? verdict : { ...verdict, usedUp: 'tokens' }

/** What remains of one count of a limit. */
export interface LimitCountFigures {
  readonly limit: number
  /** Number of units that are free now. */
  readonly remaining: number
  /** Milliseconds until all units are free again. */
  readonly resetMs: number
}

/** What remains of a limit; undefined for a count that it does not have. */
export interface LimitFigures {
  readonly requests: LimitCountFigures | undefined
  readonly tokens: LimitCountFigures | undefined
}

/** Decides about requests by rate limits on requests and tokens. */
export class RateLimiter {
  readonly #counts: RateCounter

  constructor(counts: RateCounter) {
    this.#counts = counts
  }

  /** The time of the clock by which limits are counted. A caller that asks several times in a row reads it once. */
  nowMs(): number {
    return this.#counts.nowMs()
  }

  /** Counts one request, if the limits on requests and tokens allow it. */
  take(limited: SubjectLimit, nowMs = this.nowMs()): RateLimitVerdict | Promise<RateLimitVerdict> {
    const { requests, tokens } = limited.limit
    if (tokens === 0) return requests === 0 ? undefined : this.#counts.take(requestsOf(limited), nowMs)
    const checked = this.#counts.check(tokensOf(limited), nowMs)
    const verdict = checked instanceof Promise ? checked.then(ofTokens) : ofTokens(checked)
    if (requests === 0) return verdict
    if (verdict instanceof Promise)
      return verdict.then((one) => (one.allowed ? this.#counts.take(requestsOf(limited)) : one))
    return verdict.allowed ? this.#counts.take(requestsOf(limited), nowMs) : verdict
  }

  /** Decides with what this node knows, without counting anything. */
  peek(limited: SubjectLimit, nowMs = this.nowMs()): RateLimitVerdict {
    const { requests, tokens } = limited.limit
    const verdict = tokens === 0 ? undefined : ofTokens(this.#counts.peek(tokensOf(limited), nowMs))
    if (requests === 0 || verdict?.allowed === false) return verdict
    return this.#counts.peek(requestsOf(limited), nowMs)
  }

  /**
   * Returns, for requests and for tokens, the limit of which the fewest units remain by what this node knows.
   * If several have equally few, the first of them.
   */
  tightest(limits: readonly SubjectLimit[]): LimitFigures {
    const nowMs = this.nowMs()
    return {
      requests: this.#tightest(limits, requestsOf, nowMs),
      tokens: this.#tightest(limits, tokensOf, nowMs),
    }
  }

  /** Asks the other nodes what they have used of these limits, unless that is known from the last second. */
  async refresh(limits: readonly SubjectLimit[]): Promise<void> {
    const counts = limits.flatMap((limited) => [requestsOf(limited), tokensOf(limited)])
    const inForce = counts.filter(({ max }) => max > 0)
    await Promise.all(inForce.map(async (counted) => this.#counts.check(counted)))
  }

  #tightest(
    limits: readonly SubjectLimit[],
    countedOf: (limited: SubjectLimit) => CountedLimit,
    nowMs: number,
  ): LimitCountFigures | undefined {
    let least: LimitCountFigures | undefined
    for (const limited of limits) {
      const counted = countedOf(limited)
      if (counted.max === 0) continue
      const { remaining, resetMs } = this.#counts.peek(counted, nowMs)
      if (!least || remaining < least.remaining) least = { limit: counted.max, remaining, resetMs }
    }
    return least
  }

  /** Counts tokens that a call has used, even if the limit is exceeded. */
  spend(limited: SubjectLimit, tokens: number, nowMs = this.nowMs()): void {
    if (limited.limit.tokens > 0 && tokens > 0) this.#counts.add(tokensOf(limited), tokens, nowMs)
  }
}

function named(name: string): LimitName {
  return { requests: `${name} requests`, tokens: `${name} tokens` }
}

function requestsOf({ name, subject, limit: { requests, windowMs } }: SubjectLimit): CountedLimit {
  return { name: name.requests, subject, max: requests, windowMs }
}

function tokensOf({ name, subject, limit: { tokens, windowMs } }: SubjectLimit): CountedLimit {
  return { name: name.tokens, subject, max: tokens, windowMs }
}

/** Calls `after` with a decision: synchronously if it is already available, otherwise later. */
export function afterRateLimitVerdict<Result>(
  verdict: RateLimitVerdict | Promise<RateLimitVerdict>,
  after: (verdict: RateLimitVerdict) => Result,
): Result | Promise<Result> {
  return verdict instanceof Promise ? verdict.then(after) : after(verdict)
}

/**
 * Throws `rate_limited` unless the request is allowed. `limitOwner` says in the message whose limit it is;
 * `subjectOf` says it in the record of refused calls.
 */
export function requireWithinRateLimit(
  verdict: RateLimitVerdict,
  limitOwner: string,
  subjectOf?: () => Pick<RefusedLimit, 'subject' | 'id' | 'name'>,
): void {
  if (!verdict || verdict.allowed) return
  const limit = subjectOf && { ...subjectOf(), kind: verdict.usedUp ?? 'requests', ...NO_AMOUNTS }
  throw rateLimitError(verdict.waitMs, limitOwner, limit)
}

const NO_AMOUNTS = { spent: null, held: null, left: null, needed: null, resets_at: null } as const

/** Makes the error `rate_limited`, which states when to try again. `waitMs` is in milliseconds. */
export function rateLimitError(waitMs: number, limitOwner: string, limit?: RefusedLimit): GatewayError {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  return new GatewayError(
    'rate_limited',
    `the rate limit of ${limitOwner} is reached; try again in ${retryAfter} s`,
    { retryAfter, limit },
  )
}
