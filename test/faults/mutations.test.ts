import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stageOfBoth } from '../conversion/stage.ts'
import { mutations } from '../corpus/mutations.ts'
import { replay } from '../corpus/replay.ts'
import { audit } from '../equipment/auditor.ts'
import type { Stage } from '../equipment/stage.ts'

const GRANTED = 400_000_000_000_000
const AT_ONCE = 20
const RUNS = 100

let stage: Stage
beforeAll(async () => {
  stage = await stageOfBoth({}, { quota: GRANTED })
})
afterAll(() => stage?.close())

test(`${AT_ONCE * RUNS} mutated requests are refused or forwarded, and every account adds up`, {
  timeout: 300_000,
}, async () => {
  const { pid } = stage.gateway
  await fc.assert(
    fc.asyncProperty(fc.array(mutations(), { minLength: AT_ONCE, maxLength: AT_ONCE }), async (cases) => {
      expect(await replay(stage, cases)).toEqual([])
    }),
    { numRuns: RUNS },
  )
  expect(stage.gateway.pid).toBe(pid)
  expect(stage.gateway.logs()).not.toMatch(/unforeseen error|nhandled/)
  const granted = { tokens: new Map([['token-ann', GRANTED]]), users: new Map([['ann', GRANTED]]) }
  await expect.poll(() => audit(stage.gateway.dataDir, [], granted)).toEqual([])
})
