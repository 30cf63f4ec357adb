import { whenDecided, type SubjectLimit, type RateLimiter, requireAllowed } from '../limits/rate-limiter.ts'
import type { Response } from '../server/response.ts'

/**
 * Takes a request off a limit, and tells the caller how much of it is left, in the words of the RateLimit
 * header fields that most clients know. Throws `rate_limited` where nothing is; `whose` names the limit.
 */
export function takeAndSetHeaders(
  limits: RateLimiter,
  response: Response,
  limited: SubjectLimit,
  whose: string,
): void | Promise<void> {
  return whenDecided(limits.take(limited), (verdict) => {
    if (!verdict) return
    response.setHeader('ratelimit-limit', String(limited.limit.requests))
    response.setHeader('ratelimit-remaining', String(verdict.remaining))
    response.setHeader('ratelimit-reset', String(Math.ceil(verdict.resetMs / 1000)))
    requireAllowed(verdict, whose)
  })
}
