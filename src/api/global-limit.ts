import type { Response } from '@sluice/http1'
import { addressBlock } from '../accounts/authentication/address-block.ts'
import type { ClientAddress } from '../accounts/authentication/client-address.ts'
import type { RateLimit } from '../domain/rate-limit.ts'
import type { Request } from '../http/request.ts'
import {
  LIMIT_NAMES,
  type RateLimiter,
  requireAllowed,
  type SubjectLimit,
  afterVerdict,
} from '../limits/rate-limiter.ts'

/** Whether the global limit applies to a path: to those of accounts and billing. `docs/api.md: Limits`. */
export function isGloballyLimited(path: string): boolean {
  return /^\/(?:api|(?:v1\/)?dashboard)\//.test(path)
}

/** The limit of each address for all requests to accounts and billing together. */
export class GlobalLimit {
  readonly #limits: RateLimiter
  readonly #clientAddress: () => ClientAddress
  readonly #limit: () => RateLimit

  constructor(limits: RateLimiter, clientAddress: () => ClientAddress, limit: () => RateLimit) {
    this.#limits = limits
    this.#clientAddress = clientAddress
    this.#limit = limit
  }

  /** Counts a request against the limit, if that applies to the path, even if no endpoint has the path. */
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
 * Counts a request against a limit, and states what remains in the RateLimit headers of the response. Throws
 * `rate_limited` if nothing remains; `label` names the subject in the message.
 */
export function countRequestAndSetHeaders(
  limits: RateLimiter,
  response: Response,
  limited: SubjectLimit,
  label: string,
): void | Promise<void> {
  return afterVerdict(limits.take(limited), (verdict) => {
    if (!verdict) return
    response.setHeader('ratelimit-limit', String(limited.limit.requests))
    response.setHeader('ratelimit-remaining', String(verdict.remaining))
    response.setHeader('ratelimit-reset', String(Math.ceil(verdict.resetMs / 1000)))
    requireAllowed(verdict, label)
  })
}
