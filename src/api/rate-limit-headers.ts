import type { Response } from '@sluice/http1'
import { whenDecided, type SubjectLimit, type RateLimiter, requireAllowed } from '../limits/rate-limiter.ts'

/**
 * Counts a request against a limit, and states what remains in the RateLimit headers of the response. Throws
 * `rate_limited` if nothing remains; `label` names the subject in the message.
 */
export function takeAndSetHeaders(
  limits: RateLimiter,
  response: Response,
  limited: SubjectLimit,
  label: string,
): void | Promise<void> {
  return whenDecided(limits.take(limited), (verdict) => {
    if (!verdict) return
    response.setHeader('ratelimit-limit', String(limited.limit.requests))
    response.setHeader('ratelimit-remaining', String(verdict.remaining))
    response.setHeader('ratelimit-reset', String(Math.ceil(verdict.resetMs / 1000)))
    requireAllowed(verdict, label)
  })
}
