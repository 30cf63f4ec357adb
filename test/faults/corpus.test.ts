import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fixtureOfBoth } from '../conversion/fixture.ts'
import { corpus } from '../corpus/corpus.ts'
import { replay } from '../corpus/replay.ts'
import { audit } from '../fixtures/auditor.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { byTier, casesByTier } from '../runner/tier.ts'

const GRANTED = 400_000_000_000_000

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth({}, { quota: GRANTED })
})
afterAll(() => fixture?.close())

const FAMILIES = corpus()
/** The family of inputs that broke a promise in the past. */
const FOUND = 'what was found'

test('the corpus of hostile requests has at least 2,000 inputs', () => {
  const inputs = [...FAMILIES.values()].reduce((sum, family) => sum + family.length, 0)
  expect(inputs).toBeGreaterThanOrEqual(2000)
  console.log(`${inputs} inputs`)
})

describe('inputs of the corpus', () => {
  test.each([...FAMILIES])(
    "every hostile request is forwarded or refused in its path's error format within a second, without internals: %s",
    { timeout: 300_000 },
    async (name, cases) => {
      const { pid } = fixture.gateway
      const complaints =
        name === FOUND
          ? await replay(fixture, cases)
          : await replay(fixture, casesByTier(Math.ceil(cases.length / 2), cases), byTier('in turn', 'both'))
      expect(complaints.slice(0, 30)).toEqual([])
      expect(fixture.gateway.pid).toBe(pid)
      expect(fixture.gateway.logs()).not.toMatch(/unforeseen error|nhandled/)
    },
  )
})

test('after all hostile requests of the corpus the balance, the sums and the usage log of every account agree', async () => {
  const granted = { tokens: new Map([['token-ann', GRANTED]]), users: new Map([['ann', GRANTED]]) }
  await expect.poll(() => audit(fixture.gateway.dataDir, [], granted)).toEqual([])
})
