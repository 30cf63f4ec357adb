import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allowedAddresses } from './ip-allow-list.ts'
import { grantsAfter, loosenedGrant, type TokenGrants } from './operator-grants.ts'

const address = fc.tuple(
  fc.constantFrom(10, 11),
  fc.constantFrom(0, 1),
  fc.constantFrom(0, 128),
  fc.constantFrom(0, 1),
)
const range = fc
  .tuple(address, fc.constantFrom('', '/8', '/15', '/16', '/25', '/32'))
  .map(([parts, bits]) => parts.join('.') + bits)
const grants: fc.Arbitrary<TokenGrants> = fc.record({
  remain_quota: fc.integer({ min: 0, max: 5 }),
  unlimited_quota: fc.boolean(),
  model_limits_enabled: fc.boolean(),
  model_limits: fc.subarray(['a', 'b', 'c']).map((names) => names.join(', ')),
  allow_ips: fc.option(fc.array(range, { maxLength: 3 }).map((lines) => lines.join('\n'))),
  expired_time: fc.constantFrom(-1, 1, 2, 3),
})
const used_quota = fc.integer({ min: 0, max: 3 })

/** The models, out of three, that a token may call. */
const models = ({ model_limits_enabled, model_limits }: TokenGrants): string[] =>
  ['a', 'b', 'c'].filter((name) => !model_limits_enabled || model_limits.includes(name))

test('an accepted token permits nothing that the operator’s does not', () => {
  fc.assert(
    fc.property(grants, grants, used_quota, address, (theirs, own, used, parts) => {
      const given = grantsAfter(undefined, { ...theirs, used_quota: 0 }, theirs)
      // Quota that was spent was taken from the balance.
      if (loosenedGrant({ ...own, used_quota: used }, given ?? {})) return
      if (!theirs.unlimited_quota)
        expect(own.unlimited_quota ? Number.POSITIVE_INFINITY : own.remain_quota + used).toBeLessThanOrEqual(
          theirs.remain_quota,
        )
      expect(models(theirs)).toEqual(expect.arrayContaining(models(own)))
      const from = parts.join('.')
      if (allowedAddresses(own.allow_ips)(from)) expect(allowedAddresses(theirs.allow_ips)(from)).toBe(true)
      const end = (one: TokenGrants): number =>
        one.expired_time === -1 ? Number.POSITIVE_INFINITY : one.expired_time
      expect(end(own)).toBeLessThanOrEqual(end(theirs))
    }),
  )
})

test('a token as the operator created it is accepted, also once some of its quota is spent', () => {
  fc.assert(
    fc.property(grants, used_quota, (theirs, used) => {
      const given = grantsAfter(undefined, { ...theirs, used_quota: 0 }, theirs) ?? {}
      const spent = { ...theirs, remain_quota: theirs.remain_quota - used, used_quota: used }
      expect(loosenedGrant(spent, given)).toBeUndefined()
    }),
  )
})

test('an operator removes a limit by changing its fields, and keeps the others', () => {
  const token = {
    remain_quota: 5,
    unlimited_quota: false,
    model_limits_enabled: true,
    model_limits: 'a',
    allow_ips: null,
    expired_time: -1,
    used_quota: 1,
  }
  const before = { quota: 9, models: 'a', expires: 7 }
  expect(
    grantsAfter(before, { ...token, model_limits_enabled: false }, { model_limits_enabled: false }),
  ).toEqual({ quota: 9, expires: 7 })
  expect(grantsAfter(before, token, { remain_quota: 5 })).toEqual({ quota: 6, models: 'a', expires: 7 })
  expect(
    grantsAfter({ quota: 9 }, { ...token, unlimited_quota: true }, { unlimited_quota: true }),
  ).toBeUndefined()
})
