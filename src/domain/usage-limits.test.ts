import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Budget, BUDGET_PERIODS } from './budget.ts'
import {
  operatorLimitsAfterChange,
  operatorLimitsAfterDeclaration,
  operatorLimitsAfterEdit,
  isSetByOperator,
  findLoosenedLimit,
  findLoosenedGrant,
  NO_OPERATOR_LIMITS,
  type TokenGrants,
} from './usage-limits.ts'
import { allowedAddresses } from './ip-allow-list.ts'
import type { CallRateLimit } from './rate-limit.ts'

const OFF: CallRateLimit = { requests: 0, tokens: 0, parallel: 0, windowMs: 60_000 }
const DAILY: Budget = { amount: 100, period: 'day' }
const GIVEN = { budget: DAILY, rateLimit: { ...OFF, requests: 10, parallel: 3 } }

const field = (budget: Budget | undefined, rateLimit: Partial<CallRateLimit>) =>
  findLoosenedLimit({ budget, rateLimit: { ...GIVEN.rateLimit, ...rateLimit } }, GIVEN)?.field

describe('limits that are looser than the operator’s', () => {
  test.each<[string, Budget | undefined, Partial<CallRateLimit>, string]>([
    ['a larger budget', { amount: 101, period: 'day' }, {}, 'budget'],
    ['no budget', undefined, {}, 'budget'],
    ['the budget of a longer period, which begins anew', { amount: 1, period: 'month' }, {}, 'budget_period'],
    ['more requests', DAILY, { requests: 11 }, 'rate_limit_requests'],
    ['any number of requests', DAILY, { requests: 0 }, 'rate_limit_requests'],
    ['more calls at once', DAILY, { parallel: 4 }, 'rate_limit_parallel'],
    ['any number of calls at once', DAILY, { parallel: 0 }, 'rate_limit_parallel'],
    ['a shorter window', DAILY, { windowMs: 59_000 }, 'rate_limit_window'],
    ['a longer window, which counts anew', DAILY, { requests: 1, windowMs: 61_000 }, 'rate_limit_window'],
  ])("a token's limits count as looser than the operator's with %s", (_, budget, rateLimit, expected) => {
    expect(field(budget, rateLimit)).toBe(expected)
  })

  test("a user may set limits that are lower than the operator's, equal to them, or not restricted by the operator", () => {
    expect(field(DAILY, {})).toBeUndefined()
    expect(field({ amount: 1, period: 'day' }, { requests: 1, parallel: 1, tokens: 1 })).toBeUndefined()
    const parallelAlone = { rateLimit: { ...OFF, parallel: 3 } }
    expect(
      findLoosenedLimit(
        { budget: undefined, rateLimit: { ...OFF, parallel: 3, windowMs: 5 } },
        parallelAlone,
      ),
    ).toBeUndefined()
  })
})

const budget = fc.record({
  amount: fc.integer({ min: 1, max: 9 }),
  period: fc.constantFrom(...BUDGET_PERIODS),
})
const part = fc.record(
  {
    requests: fc.integer({ min: 0, max: 3 }),
    tokens: fc.integer({ min: 0, max: 3 }),
    parallel: fc.integer({ min: 0, max: 3 }),
    windowMs: fc.constantFrom(1_000, 60_000),
  },
  { requiredKeys: [] },
)
const change = fc.record({ budget: fc.option(budget), rateLimit: part }, { requiredKeys: [] })

test("limits that an operator sets replace those of the token's holder, whoever set these before", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), change)), (changes) => {
      let limits: { budget: Budget | undefined; rateLimit: CallRateLimit } = {
        budget: undefined,
        rateLimit: OFF,
      }
      let given = NO_OPERATOR_LIMITS
      for (const [isByOperator, { budget, rateLimit }] of changes) {
        const next = {
          budget: budget === undefined ? limits.budget : (budget ?? undefined),
          rateLimit: { ...limits.rateLimit, ...rateLimit },
        }
        if (isByOperator)
          given = operatorLimitsAfterChange(given, { budget, rateLimit }, limits.rateLimit.windowMs)
        else if (findLoosenedLimit(next, given)) continue
        limits = next
        expect(findLoosenedLimit(limits, given)).toBeUndefined()
      }
    }),
  )
})

test('limits that an operator removes no longer restrict what the holder of a token may set', () => {
  const given = operatorLimitsAfterChange(
    NO_OPERATOR_LIMITS,
    { budget: DAILY, rateLimit: { requests: 1 } },
    60_000,
  )
  expect(isSetByOperator({ operator_terms: given })).toBe(true)
  const after = operatorLimitsAfterChange(given, { budget: null, rateLimit: { requests: 0 } }, 60_000)
  expect(isSetByOperator({ operator_terms: after })).toBe(false)
})

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
  guards: fc.subarray(['a', 'b', 'c']),
  toolsets: fc.subarray(['a', 'b', 'c']),
  group: fc.constantFrom('', 'x', 'y'),
  vendor_routes: fc
    .dictionary(fc.constantFrom('v', 'w'), fc.constantFrom('x', 'y'), { maxKeys: 2 })
    .map((routes) => (Object.keys(routes).length === 0 ? '' : JSON.stringify(routes))),
})
/** Terms of an operator, and those of a user, which differ in some fields alone: others would nearly always be refused. */
const changed: fc.Arbitrary<readonly [theirs: TokenGrants, own: TokenGrants]> = fc
  .tuple(grants, grants)
  .chain(([theirs, other]) =>
    fc
      .subarray(Object.keys(theirs) as (keyof TokenGrants)[], { minLength: 1, maxLength: 2 })
      .map((names) => [
        theirs,
        { ...theirs, ...Object.fromEntries(names.map((name) => [name, other[name]])) },
      ]),
  )
const used_quota = fc.integer({ min: 0, max: 3 })

/** The models, out of three, that a token may call. */
const models = ({ model_limits_enabled, model_limits }: TokenGrants): string[] =>
  ['a', 'b', 'c'].filter((name) => !model_limits_enabled || model_limits.includes(name))

/** The toolsets, out of three, that a token may use. */
const toolsetsOf = ({ toolsets }: TokenGrants): readonly string[] =>
  toolsets.length === 0 ? ['a', 'b', 'c'] : toolsets

/** The group that a token's calls of a vendor use; empty for the user's own. */
const groupOf = ({ group, vendor_routes }: TokenGrants, vendor: string): string =>
  new Map(Object.entries(JSON.parse(vendor_routes || '{}') as Record<string, string>)).get(vendor) ?? group

test("a user's change of a token is accepted only if the token then permits nothing beyond what the operator granted", () => {
  fc.assert(
    fc.property(changed, used_quota, address, ([theirs, own], used, parts) => {
      const given = operatorLimitsAfterEdit(undefined, { ...theirs, used_quota: 0 }, theirs)
      // Quota that was spent was taken from the balance.
      if (findLoosenedGrant({ ...own, used_quota: used }, given ?? {})) return
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
      expect(own.guards).toEqual(expect.arrayContaining([...theirs.guards]))
      expect(toolsetsOf(theirs)).toEqual(expect.arrayContaining([...toolsetsOf(own)]))
      // Where the operator chose a group for the calls of a vendor, these calls use that group.
      for (const vendor of ['v', 'w', 'another'])
        if (groupOf(theirs, vendor) !== '') expect(groupOf(own, vendor)).toBe(groupOf(theirs, vendor))
    }),
    { numRuns: 1_000 },
  )
})

test('a user may save a token unchanged as the operator created it, even once some of its quota is spent', () => {
  fc.assert(
    fc.property(grants, used_quota, (theirs, used) => {
      const given = operatorLimitsAfterEdit(undefined, { ...theirs, used_quota: 0 }, theirs) ?? {}
      const spent = { ...theirs, remain_quota: theirs.remain_quota - used, used_quota: used }
      expect(findLoosenedGrant(spent, given)).toBeUndefined()
    }),
  )
})

test('an operator who changes one limit of a token replaces or removes that limit alone, and the other limits stay', () => {
  const token = {
    remain_quota: 5,
    unlimited_quota: false,
    model_limits_enabled: true,
    model_limits: 'a',
    allow_ips: null,
    expired_time: -1,
    guards: [],
    toolsets: [],
    group: '',
    vendor_routes: '',
    used_quota: 1,
  }
  const before = { quota: 9, models: 'a', expires: 7 }
  expect(
    operatorLimitsAfterEdit(
      before,
      { ...token, model_limits_enabled: false },
      { model_limits_enabled: false },
    ),
  ).toEqual({ quota: 9, models: null, expires: 7 })
  expect(operatorLimitsAfterEdit(before, token, { remain_quota: 5 })).toEqual({
    quota: 6,
    models: 'a',
    expires: 7,
  })
  expect(
    operatorLimitsAfterEdit({ quota: 9 }, { ...token, unlimited_quota: true }, { unlimited_quota: true }),
  ).toEqual({ quota: null })
  expect(operatorLimitsAfterEdit(before, token, {})).toEqual(before)
})

test('a declaration in gateway.yaml sets the limits of an older token once, with the quota that the token has at least', () => {
  const declared = {
    remain_quota: 5,
    unlimited_quota: false,
    model_limits_enabled: true,
    model_limits: 'a',
    allow_ips: null,
    expired_time: 7,
    guards: ['g'],
    toolsets: ['t'],
    group: 'x',
    vendor_routes: '',
  }
  const NONE = { addresses: null, routes: null }
  const marked = { ...NONE, quota: 5, models: 'a', expires: 7, guards: ['g'], toolsets: ['t'], group: 'x' }
  expect(operatorLimitsAfterDeclaration(undefined, { remain_quota: 1, used_quota: 4 }, declared)).toEqual(
    marked,
  )
  expect(operatorLimitsAfterDeclaration(undefined, { remain_quota: 6, used_quota: 4 }, declared)).toEqual({
    ...marked,
    quota: 10,
  })
  const decided = { quota: null, models: 'b' }
  expect(operatorLimitsAfterDeclaration(decided, { remain_quota: 1, used_quota: 0 }, declared)).toEqual({
    ...marked,
    ...decided,
  })
  const later = { ...declared, expired_time: 3, vendor_routes: '{"v":"y"}' }
  expect(operatorLimitsAfterDeclaration(marked, { remain_quota: 9, used_quota: 9 }, later)).toBe(marked)
})
