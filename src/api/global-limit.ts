import type { Response } from '@sluice/http1'
import { addressBlock } from '../accounts/authentication/address-block.ts'
import type { ClientAddress } from '../accounts/authentication/client-address.ts'
import type { RateLimit } from '../domain/rate-limit.ts'
import type { Request } from '../http/request.ts'
import {
  LIMIT_NAMES,
  type RateLimiter,
  requireWithinRateLimit,
  type SubjectLimit,
  afterRateLimitVerdict,
} from '../limits/rate-limiter.ts'

/**
 * Whether the rate limit `global` applies to a path: only to account and billing paths. `docs/api.md:
 * Limits`.
 */
export function isGloballyLimited(path: string): boolean {
  return /^\/(?:api|(?:v1\/)?dashboard)\//.test(path)
}

/** The rate limit of each client address for all requests to account and billing paths together. */
export class GlobalLimit {
  readonly #limits: RateLimiter
  readonly #clientAddress: () => ClientAddress
  readonly #limit: () => RateLimit

  constructor(limits: RateLimiter, clientAddress: () => ClientAddress, limit: () => RateLimit) {
    this.#limits = limits
    this.#clientAddress = clientAddress
    this.#limit = limit
  }

  /** Counts a request against the limit, if it applies to the path, even if the path does not exist. */
  take(request: Request, response: Response, path: string): void | Promise<void> {
    if (!isGloballyLimited(path)) return undefined
    const subject = addressBlock(this.#clientAddress()(request))
    return countRequestAndSetHeaders(
      this.#limits,
      response,
      { name: LIMIT_NAMES.global, subject, limit: this.#limit() },
      'this address',
    )
  }
}

/**
 * Counts a request against a limit, and writes what remains into the RateLimit headers of the response.
 * Throws `rate_limited` if nothing remains; `label` names the limited user or address in the message.
 */
export function countRequestAndSetHeaders(
  limits: RateLimiter,
  response: Response,
  limited: SubjectLimit,
  label: string,
): void | Promise<void> {
  return afterRateLimitVerdict(limits.take(limited), (verdict) => {
    if (!verdict) return
    response.setHeader('ratelimit-limit', String(limited.limit.requests))
    response.setHeader('ratelimit-remaining', String(verdict.remaining))
    response.setHeader('ratelimit-reset', String(Math.ceil(verdict.resetMs / 1000)))
    requireWithinRateLimit(verdict, label)
  })
}
