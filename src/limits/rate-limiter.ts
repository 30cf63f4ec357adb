import type { RateLimit } from '../domain/rate-limit.ts'
import { GatewayError, type RefusedLimit } from '../errors.ts'
import type { CountedLimit, RateCounter } from './rate-counter.ts'
import type { LimitDecision } from './sliding-window.ts'

/** Names of the two counts of a limit. */
export interface LimitName {
  readonly requests: string
  readonly tokens: string
}

/** Limits by name. They are constants, because a newly built name must be hashed again at each lookup. */
export const LIMIT_NAMES = {
  global: named('global'),
  relay: named('relay'),
  key: named('key'),
  /** The limit that the holder of a key has set for it. */
  own: named('own'),
  user: named('user'),
  model: named('model'),
  channel: named('channel'),
  search: named('search'),
  critical: named('critical'),
  console: named('console'),
} as const

/** A limit and its subject. */
export interface SubjectLimit {
  readonly name: LimitName
  readonly subject: string | number
  readonly limit: RateLimit
}

/** What a limit counts. */
type Counted = 'requests' | 'tokens'

/** Verdict of a limit, with what is used up if it refuses; undefined if the limit is off. */
export type OptionalVerdict = (LimitDecision & { readonly usedUp?: Counted }) | undefined

/** A verdict about tokens. */
const ofTokens = (verdict: LimitDecision): LimitDecision & { readonly usedUp?: Counted } =>
  verdict.allowed ? verdict : { ...verdict, usedUp: 'tokens' }

/** State of one count of a limit. */
export interface CountFigures {
  readonly limit: number
  /** Units that are free now. */
  readonly remaining: number
  /** Milliseconds until the whole limit is free. */
  readonly resetMs: number
}

/** State of a limit; undefined for what it does not count. */
export interface LimitFigures {
  readonly requests: CountFigures | undefined
  readonly tokens: CountFigures | undefined
}

/** Rate limits on requests and tokens. */
export class RateLimiter {
  readonly #counts: RateCounter

  constructor(counts: RateCounter) {
    this.#counts = counts
  }

  /** Takes one request, if one is free and tokens are left. */
  take(limited: SubjectLimit): OptionalVerdict | Promise<OptionalVerdict> {
    const { requests, tokens } = limited.limit
    if (tokens === 0) return requests === 0 ? undefined : this.#counts.take(requestsOf(limited))
    const checked = this.#counts.check(tokensOf(limited))
    const verdict = checked instanceof Promise ? checked.then(ofTokens) : ofTokens(checked)
    if (requests === 0) return verdict
    const takeIfAllowed = (one: LimitDecision): LimitDecision | Promise<LimitDecision> =>
      one.allowed ? this.#counts.take(requestsOf(limited)) : one
    return verdict instanceof Promise ? verdict.then(takeIfAllowed) : takeIfAllowed(verdict)
  }

  /** Checks synchronously, by what this node knows, without taking anything. */
  peek(limited: SubjectLimit): OptionalVerdict {
    const { requests, tokens } = limited.limit
    const verdict = tokens === 0 ? undefined : ofTokens(this.#counts.peek(tokensOf(limited)))
    if (requests === 0 || verdict?.allowed === false) return verdict
    return this.#counts.peek(requestsOf(limited))
  }

  /**
   * The limits of which the least remains, for requests and for tokens, by what this node knows; of the first
   * where several have equally little.
   */
  tightest(limits: readonly SubjectLimit[]): LimitFigures {
    return { requests: this.#tightest(limits, requestsOf), tokens: this.#tightest(limits, tokensOf) }
  }

  /** Asks the other nodes what they have used of these limits, where this node has not asked for a second. */
  async refresh(limits: readonly SubjectLimit[]): Promise<void> {
    const counts = limits.flatMap((limited) => [requestsOf(limited), tokensOf(limited)])
    const inForce = counts.filter(({ max }) => max > 0)
    await Promise.all(inForce.map(async (counted) => this.#counts.check(counted)))
  }

  #tightest(
    limits: readonly SubjectLimit[],
    countedOf: (limited: SubjectLimit) => CountedLimit,
  ): CountFigures | undefined {
    let least: CountFigures | undefined
    for (const limited of limits) {
      const counted = countedOf(limited)
      if (counted.max === 0) continue
      const { remaining, resetMs } = this.#counts.peek(counted)
      if (!least || remaining < least.remaining) least = { limit: counted.max, remaining, resetMs }
    }
    return least
  }

  /** Counts tokens that a call has used, even beyond the limit. */
  spend(limited: SubjectLimit, tokens: number): void {
    if (limited.limit.tokens > 0 && tokens > 0) this.#counts.add(tokensOf(limited), tokens)
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

/** Continues with a verdict, synchronously if it is available. */
export function afterVerdict<Result>(
  verdict: OptionalVerdict | Promise<OptionalVerdict>,
  after: (verdict: OptionalVerdict) => Result,
): Result | Promise<Result> {
  return verdict instanceof Promise ? verdict.then(after) : after(verdict)
}

/**
 * Throws `rate_limited` unless the verdict allows the request. `limitOwner` names the limit in the message;
 * `subjectOf` returns its subject, for a refusal.
 */
export function requireAllowed(
  verdict: OptionalVerdict,
  limitOwner: string,
  subjectOf?: () => Pick<RefusedLimit, 'subject' | 'id' | 'name'>,
): void {
  if (!verdict || verdict.allowed) return
  const limit = subjectOf && { ...subjectOf(), kind: verdict.usedUp ?? 'requests', ...NO_AMOUNTS }
  throw rateLimitError(verdict.waitMs, limitOwner, limit)
}

const NO_AMOUNTS = { spent: null, held: null, left: null, needed: null, resets_at: null } as const

/** Builds the error `rate_limited`, with the time after which to retry. */
export function rateLimitError(waitMs: number, limitOwner: string, limit?: RefusedLimit): GatewayError {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  return new GatewayError(
    'rate_limited',
    `the rate limit of ${limitOwner} is reached; try again in ${retryAfter} s`,
    { retryAfter, limit },
  )
}
