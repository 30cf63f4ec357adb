import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { HANGING_DISK } from '../fixtures/slow-disk.ts'
import { storm, type StormPlan } from '../fixtures/storm.ts'
import { KILL_DEFECTS, type KillDefect } from './defects/kill.ts'

/** A mutant is detected in the first round, unless the machine suspends it for seconds. */
const ROUNDS = 20

const LIMIT = { timeout: 300_000 }

let copy: PatchedCopy
beforeAll(async () => {
  copy = await patchedProgram([HANGING_DISK, ...KILL_DEFECTS])
})
afterAll(() => copy?.discard())

/** Promises broken by kills, each of which happens while the disk hangs in the middle of a commit. */
function brokenByKill(defect: KillDefect, rounds: number): Promise<string> {
  return brokenWith(defect, { rounds, hasHangingDisk: true })
}

async function brokenWith(
  defect: KillDefect,
  plan: Pick<StormPlan, 'rounds' | 'hasHangingDisk'>,
): Promise<string> {
  const plain = { seed: 7, clients: 32, root: copy.root }
  return (await storm({ ...plan, ...plain, env: { DEFECT: defect } })).broken.join('\n')
}

test('the kill test fails if content is delivered before its hold is written', LIMIT, async () => {
  expect(await brokenByKill('no gate one', ROUNDS)).toMatch(
    /delivered content without a trace|showed content before its hold was durable/,
  )
})
test('the kill test fails if whole responses are sent before their charge is written', LIMIT, async () => {
  expect(await brokenByKill('no gate two, whole', ROUNDS)).toMatch(/was seen complete and/)
})
test('the kill test fails if streams end before their charge is written', LIMIT, async () => {
  expect(await brokenByKill('no gate two, streamed', ROUNDS)).toMatch(/was seen complete and/)
})
test(
  'the kill test fails if images and audio are delivered before their hold is written',
  LIMIT,
  async () => {
    expect(await brokenByKill('no gate one, passed', ROUNDS)).toMatch(/delivered content without a trace/)
  },
)
test('the kill test fails if native responses are sent before their charge is written', LIMIT, async () => {
  expect(await brokenByKill('no gate two, passed', ROUNDS)).toMatch(/was seen complete and/)
})
test('the kill test fails if the output of a call whose client left is not counted', LIMIT, async () => {
  expect(await brokenWith('no output counted', { rounds: 1 })).toMatch(
    /was charged \d+ \(client_gone\), and its client saw what costs/,
  )
})
