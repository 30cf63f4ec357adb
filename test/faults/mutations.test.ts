import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fixtureOfBoth } from '../conversion/fixture.ts'
import { mutations } from '../corpus/mutations.ts'
import { replay } from '../corpus/replay.ts'
import { audit } from '../fixtures/auditor.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'

const GRANTED = 400_000_000_000_000
const AT_ONCE = 20
const RUNS = byTier(8, 100)

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth({}, { quota: GRANTED })
})
afterAll(() => fixture?.close())

test(`${AT_ONCE * RUNS} mutated requests are refused or forwarded, and the balance, sums and log of every account agree`, {
  timeout: 300_000,
}, async () => {
  const { pid } = fixture.gateway
  await fc.assert(
    fc.asyncProperty(fc.array(mutations(), { minLength: AT_ONCE, maxLength: AT_ONCE }), async (cases) => {
      expect(await replay(fixture, cases)).toEqual([])
    }),
    { numRuns: RUNS },
  )
  expect(fixture.gateway.pid).toBe(pid)
  expect(fixture.gateway.logs()).not.toMatch(/unforeseen error|nhandled/)
  const granted = { tokens: new Map([['token-ann', GRANTED]]), users: new Map([['ann', GRANTED]]) }
  await expect.poll(() => audit(fixture.gateway.dataDir, [], granted)).toEqual([])
})
