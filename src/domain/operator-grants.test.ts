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
  remainQuota: fc.integer({ min: 0, max: 5 }),
  unlimitedQuota: fc.boolean(),
  modelLimitsEnabled: fc.boolean(),
  modelLimits: fc.subarray(['a', 'b', 'c']).map((names) => names.join(', ')),
  allowIps: fc.option(fc.array(range, { maxLength: 3 }).map((lines) => lines.join('\n'))),
  expiredTime: fc.constantFrom(-1, 1, 2, 3),
})
const usedQuota = fc.integer({ min: 0, max: 3 })

/** Models that a token may call, of three. */
const models = ({ modelLimitsEnabled, modelLimits }: TokenGrants): string[] =>
  ['a', 'b', 'c'].filter((name) => !modelLimitsEnabled || modelLimits.includes(name))

test('a token that is accepted may do nothing that the operator’s may not', () => {
  fc.assert(
    fc.property(grants, grants, usedQuota, address, (theirs, own, used, parts) => {
      const given = grantsAfter(undefined, { ...theirs, usedQuota: 0 }, theirs)
      // Spent quota was taken off the balance.
      if (loosenedGrant({ ...own, usedQuota: used }, given ?? {})) return
      if (!theirs.unlimitedQuota)
        expect(own.unlimitedQuota ? Number.POSITIVE_INFINITY : own.remainQuota + used).toBeLessThanOrEqual(
          theirs.remainQuota,
        )
      expect(models(theirs)).toEqual(expect.arrayContaining(models(own)))
      const from = parts.join('.')
      if (allowedAddresses(own.allowIps)(from)) expect(allowedAddresses(theirs.allowIps)(from)).toBe(true)
      const end = (one: TokenGrants): number =>
        one.expiredTime === -1 ? Number.POSITIVE_INFINITY : one.expiredTime
      expect(end(own)).toBeLessThanOrEqual(end(theirs))
    }),
  )
})

test('a token as the operator made it is accepted, also once some of it is spent', () => {
  fc.assert(
    fc.property(grants, usedQuota, (theirs, used) => {
      const given = grantsAfter(undefined, { ...theirs, usedQuota: 0 }, theirs) ?? {}
      const spent = { ...theirs, remainQuota: theirs.remainQuota - used, usedQuota: used }
      expect(loosenedGrant(spent, given)).toBeUndefined()
    }),
  )
})

test('an operator takes away a limit by changing its fields, and leaves the others', () => {
  const token = {
    remainQuota: 5,
    unlimitedQuota: false,
    modelLimitsEnabled: true,
    modelLimits: 'a',
    allowIps: null,
    expiredTime: -1,
    usedQuota: 1,
  }
  const before = { quota: 9, models: 'a', expires: 7 }
  expect(grantsAfter(before, { ...token, modelLimitsEnabled: false }, { modelLimitsEnabled: false })).toEqual(
    { quota: 9, expires: 7 },
  )
  expect(grantsAfter(before, token, { remainQuota: 5 })).toEqual({ quota: 6, models: 'a', expires: 7 })
  expect(
    grantsAfter({ quota: 9 }, { ...token, unlimitedQuota: true }, { unlimitedQuota: true }),
  ).toBeUndefined()
})
