import { type CallRateLimit, NO_LIMIT, type RateLimit } from '../domain/rate-limit.ts'
import type { RateLimits } from '../domain/settings.ts'
import { durationSchema, type Field, integerSchema, sectionSchema } from './fields.ts'

const MINUTE = 60_000

/** The limits if the file has no `rate_limits`. */
const DEFAULTS: RateLimits = {
  global: { requests: 180, tokens: 0, windowMs: 180_000 },
  relay: NO_LIMIT,
  search: { requests: 10, tokens: 0, windowMs: MINUTE },
  critical: { requests: 20, tokens: 0, windowMs: 20 * MINUTE },
  key: NO_LIMIT,
  console: { requests: 600, tokens: 0, windowMs: MINUTE },
}

const count = integerSchema(0, 1_000_000_000_000).default(0)
const window = (defaultMs: number): Field<number> => durationSchema.default(defaultMs)

/** A rate limit `{ requests, tokens, window }`; each count is unlimited unless it is given. */
export const rateLimitSchema: Field<RateLimit> = sectionSchema({
  requests: count,
  tokens: count,
  window: window(MINUTE),
}).transform(({ window, ...limit }) => ({ ...limit, windowMs: window }))

/**
 * The rate limit `{ requests, tokens, parallel, window }` of a key or a user; undefined if none is declared.
 */
export const callRateLimitSchema: Field<CallRateLimit | undefined> = sectionSchema({
  requests: count,
  tokens: count,
  parallel: count,
  window: window(MINUTE),
})
  .transform(({ window, ...limit }) => ({ ...limit, windowMs: window }))
  .optional()

/** A rate limit `{ requests, window }` for requests that use no tokens. */
export function requestLimitSchema(windowMs: number): Field<RateLimit> {
  return sectionSchema({ requests: count, window: window(windowMs) }).transform(({ requests, window }) => ({
    requests,
    tokens: 0,
    windowMs: window,
  }))
}

/**
 * Schema of the section `rate_limits`: `docs/configuration.md: Rate limits`. In a declared section, a limit
 * that is not given is off. Without the section, `DEFAULTS` apply.
 */
export const rateLimitsSchema: Field<RateLimits> = sectionSchema({
  global: requestLimitSchema(DEFAULTS.global.windowMs),
  relay: requestLimitSchema(DEFAULTS.relay.windowMs),
  search: requestLimitSchema(DEFAULTS.search.windowMs),
  critical: requestLimitSchema(DEFAULTS.critical.windowMs),
  key: rateLimitSchema,
  console: requestLimitSchema(DEFAULTS.console.windowMs),
}).default(DEFAULTS)
