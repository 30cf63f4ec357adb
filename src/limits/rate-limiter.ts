import type { RateLimit } from '../domain/channel.ts'
import { GatewayError } from '../errors.ts'
import type { CountedLimit, LimitCounter } from './limit-counter.ts'
import type { Verdict } from './sliding-window.ts'

/** Which limit that is, and what its two counts are named. */
export interface LimitName {
  readonly requests: string
  readonly tokens: string
}

/** The limits by name. Made once: a name that is put together anew has to be looked up letter by letter. */
export const LIMIT_NAMES = {
  global: named('global'),
  relay: named('relay'),
  key: named('key'),
  model: named('model'),
  channel: named('channel'),
  search: named('search'),
  critical: named('critical'),
} as const

/** A limit, and who is limited by it. */
export interface SubjectLimit {
  readonly name: LimitName
  readonly subject: string | number
  readonly limit: RateLimit
}

/** What a limit says; undefined where it is off. */
export type OptionalVerdict = Verdict | undefined

/** The rate limits, each by its name and by whom it is for. */
export class RateLimiter {
  readonly #counts: LimitCounter

  constructor(counts: LimitCounter) {
    this.#counts = counts
  }

  /** Takes one request off a limit, if one is free and not all of its tokens are spent. */
  take(limited: SubjectLimit): OptionalVerdict | Promise<OptionalVerdict> {
    const { requests, tokens } = limited.limit
    if (tokens === 0) return requests === 0 ? undefined : this.#counts.take(requestsOf(limited))
    const spent = this.#counts.check(tokensOf(limited))
    if (requests === 0) return spent
    const unlessSpent = (said: Verdict): Verdict | Promise<Verdict> =>
      said.allowed ? this.#counts.take(requestsOf(limited)) : said
    return spent instanceof Promise ? spent.then(unlessSpent) : unlessSpent(spent)
  }

  /** The same by what is known in this turn, without taking it. */
  peek(limited: SubjectLimit): OptionalVerdict {
    const { requests, tokens } = limited.limit
    const spent = tokens === 0 ? undefined : this.#counts.peek(tokensOf(limited))
    if (requests === 0 || spent?.allowed === false) return spent
    return this.#counts.peek(requestsOf(limited))
  }

  /** Takes note of tokens that a call has used; what was said of it before may have been less. */
  spend(limited: SubjectLimit, tokens: number): void {
    if (limited.limit.tokens > 0 && tokens > 0) this.#counts.add(tokensOf(limited), tokens)
  }
}

function named(name: string): LimitName {
  return { requests: `${name} requests`, tokens: `${name} tokens` }
}

function requestsOf({ name, subject: whom, limit: { requests, windowMs } }: SubjectLimit): CountedLimit {
  return { name: name.requests, subject: whom, max: requests, windowMs }
}

function tokensOf({ name, subject: whom, limit: { tokens, windowMs } }: SubjectLimit): CountedLimit {
  return { name: name.tokens, subject: whom, max: tokens, windowMs }
}

/** Goes on with what a limit says: in the same turn where it says it in this one. */
export function whenDecided<Result>(
  said: OptionalVerdict | Promise<OptionalVerdict>,
  after: (said: OptionalVerdict) => Result,
): Result | Promise<Result> {
  return said instanceof Promise ? said.then(after) : after(said)
}

/**
 * Throws `rate_limited`, which says when to come back, unless the verdict lets one through. `whose` names the
 * limit.
 */
export function requireAllowed(verdict: OptionalVerdict, whose: string): void {
  if (verdict && !verdict.allowed) throw rateLimited(verdict.waitMs, whose)
}

/** Says whose limit is reached, and when it is worth asking again. */
export function rateLimited(waitMs: number, whose: string): GatewayError {
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  return new GatewayError(
    'rate_limited',
    `the rate limit of ${whose} is reached; try again in ${retryAfter} s`,
    {
      retryAfter,
    },
  )
}
