import { LRUCache } from 'lru-cache'
import type { RateLimit } from '../domain/channel.ts'
import { GatewayError } from '../errors.ts'
import { SlidingWindow, type Verdict } from './sliding-window.ts'

/** Whoever is limited, of all limits together; the one that was quiet for longest is forgotten first. */
const KEPT = 50_000

const FREE: Verdict = { allowed: true, remaining: Number.MAX_SAFE_INTEGER, resetMs: 0, waitMs: 0 }

/** A limit, and who is limited by it. */
export interface Limited {
  /** Which limit that is: `global`, `key`. */
  readonly name: string
  readonly whom: string | number
  readonly limit: RateLimit
}

/** The rate limits of this node, each by its name and by whom it is for. */
export class Limits {
  // Made when it is needed: room for all that it may keep is taken at once.
  #windows: LRUCache<string, SlidingWindow> | undefined
  readonly #nowMs: () => number

  /** `nowMs` is a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /**
   * Takes one request off a limit, if one is free and not all of its tokens are spent. Undefined where the limit is off.
   */
  take(limited: Limited): Verdict | undefined {
    const { requests, windowMs } = limited.limit
    const verdict = this.look(limited)
    if (!verdict?.allowed || requests === 0) return verdict
    return this.#window('requests', limited).take(this.#nowMs(), 1, requests, windowMs)
  }

  /** The same without taking it. */
  look(limited: Limited): Verdict | undefined {
    const { requests, tokens, windowMs } = limited.limit
    if (requests === 0 && tokens === 0) return undefined
    const nowMs = this.#nowMs()
    const spent = tokens === 0 ? FREE : this.#window('tokens', limited).look(nowMs, 1, tokens, windowMs)
    if (!spent.allowed || requests === 0) return spent
    return this.#window('requests', limited).look(nowMs, 1, requests, windowMs)
  }

  /** Takes note of tokens that a call has used; what was said of it before may have been less. */
  spend(limited: Limited, tokens: number): void {
    const { limit } = limited
    if (limit.tokens === 0 || tokens === 0) return
    this.#window('tokens', limited).add(this.#nowMs(), tokens, limit.windowMs)
  }

  #window(counted: 'requests' | 'tokens', { name, whom }: Limited): SlidingWindow {
    const key = `${counted} ${name} ${whom}`
    const windows = (this.#windows ??= new LRUCache({ max: KEPT }))
    let window = windows.get(key)
    if (!window) windows.set(key, (window = new SlidingWindow()))
    return window
  }
}

/** Throws `rate_limited`, which says when to come back, unless the verdict lets one through. `whose` names the limit. */
export function requireAllowed(verdict: Verdict | undefined, whose: string): void {
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
