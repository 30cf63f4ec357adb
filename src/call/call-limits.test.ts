import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { RateLimit } from '../domain/rate-limit.ts'
import type { Model } from '../domain/records/model.ts'
import { KnownLimits, limitsOfCall } from './call-limits.ts'

const LIMITS: readonly RateLimit[] = [0, 5].map((requests) => ({
  requests,
  tokens: requests,
  windowMs: 1_000,
}))
const USERS = LIMITS.map((rateLimit, id) => ({ id, rateLimit }) as unknown as Caller['user'])
const TOKENS = LIMITS.flatMap((rateLimit, index) =>
  [undefined, rateLimit].map(
    (terms, id) =>
      ({ id: 2 * index + id, rateLimit, operator_terms: { rateLimit: terms } }) as unknown as Caller['token'],
  ),
)
const MODELS = [
  undefined,
  ...LIMITS.map((rate_limit, index) => ({ name: `model-${index}`, rate_limit }) as unknown as Model),
]

test('remembered limits are those of the key, its user, the model and the configuration', () => {
  const call = fc.tuple(...[LIMITS, TOKENS, USERS, MODELS].map((all) => fc.nat(all.length - 1)))
  fc.assert(
    fc.property(fc.array(call, { minLength: 2, maxLength: 20 }), (calls) => {
      const known = new KnownLimits()
      for (const [ofKeys = 0, token = 0, user = 0, model = 0] of calls) {
        const limit = LIMITS[ofKeys] as RateLimit
        const caller = { token: TOKENS[token], user: USERS[user] } as Caller
        expect(known.of(limit, caller, MODELS[model])).toEqual(limitsOfCall(limit, caller, MODELS[model]))
      }
    }),
  )
})
