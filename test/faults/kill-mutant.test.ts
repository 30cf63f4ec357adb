import { expect, test } from 'vitest'
import type { Patch } from '../equipment/patch.ts'
import { patchedProgram } from '../equipment/patched-copy.ts'
import { HANGING_DISK } from '../equipment/slow-disk.ts'
import { storm, type StormPlan } from '../equipment/storm.ts'

const NO_GATE_ONE: Patch = {
  file: 'src/relay/streamed-response.ts',
  text: 'if (!opening) return',
  by: 'return',
}
const NO_GATE_TWO_WHOLE: Patch = {
  file: 'src/relay/whole-response.ts',
  text: 'const charged = await charging',
  by: 'const charged = undefined as never',
}
const NO_GATE_TWO_STREAMED: Patch = {
  file: 'src/relay/streamed-response.ts',
  text: 'const charging = this.call.settle(',
  by: `const charging = (async (...all) => {
    if (lastFrame && ending !== 'client_gone') {
      await this.call.hold.durable
      this.#outgoing.release()
      this.#sendOutgoing()
      this.#sendHead()
      response.end(lastFrame(tap.usage ?? NO_USAGE))
      lastFrame = undefined
    }
    return this.call.settle(...all)
  })(`,
}
const NO_GATE_ONE_PASSED: Patch = {
  file: 'src/relay/passed-response.ts',
  text: 'if (hold.isDurable) return this.#send()',
  by: 'return this.#send()',
}
const NO_GATE_TWO_PASSED: Patch = {
  file: 'src/relay/passed-response.ts',
  text: 'await this.call.settleMeasured(',
  by: 'void this.call.settleMeasured(',
}
/** Charges a client that leaves in the middle for the prompt alone. */
const NO_OUTPUT_COUNTED: Patch = {
  file: 'src/relay/priced-usage.ts',
  text: 'output: isComplete ? output : Math.max(reported?.output ?? 0, output)',
  by: 'output: isComplete ? output : (reported?.output ?? 0)',
}

/** A mutant is found in the first round, unless the machine suspends it for seconds. */
const ROUNDS = 20

const LIMIT = { timeout: 300_000 }

/** Broken promises after kills, each of which comes while the disk hangs in the middle of a commit. */
async function brokenByKill(patches: readonly Patch[], rounds: number): Promise<string> {
  return brokenOn([HANGING_DISK, ...patches], { seed: 7, rounds, clients: 32, hasHangingDisk: true })
}

async function brokenOn(patches: readonly Patch[], plan: StormPlan): Promise<string> {
  const copy = await patchedProgram(patches)
  try {
    return (await storm({ ...plan, root: copy.root })).broken.join('\n')
  } finally {
    copy.discard()
  }
}

test('if content does not wait for its hold, it is delivered and leaves no trace', LIMIT, async () => {
  expect(await brokenByKill([NO_GATE_ONE], ROUNDS)).toMatch(
    /delivered content without a trace|showed content before its hold was durable/,
  )
})
test('if whole responses do not wait for their charge, they are never charged', LIMIT, async () => {
  expect(await brokenByKill([NO_GATE_TWO_WHOLE], ROUNDS)).toMatch(/was seen complete and/)
})
test('if streams do not wait for their charge, they are never charged in full', LIMIT, async () => {
  expect(await brokenByKill([NO_GATE_TWO_STREAMED], ROUNDS)).toMatch(/was seen complete and/)
})
test(
  'if images and audio do not wait for their hold, they are delivered and leave no trace',
  LIMIT,
  async () => {
    expect(await brokenByKill([NO_GATE_ONE_PASSED], ROUNDS)).toMatch(/delivered content without a trace/)
  },
)
test('if what is passed on does not wait for its charge, it is never charged', LIMIT, async () => {
  expect(await brokenByKill([NO_GATE_TWO_PASSED], ROUNDS)).toMatch(/was seen complete and/)
})
test('a charge below the work of the upstream is found by its log', LIMIT, async () => {
  expect(await brokenOn([NO_OUTPUT_COUNTED], { seed: 7, rounds: 1, clients: 32 })).toMatch(
    /was charged \d+ \(client_gone\), and its client saw what costs/,
  )
})
test('on the same disk the unchanged program delivers nothing that a kill could lose', LIMIT, async () => {
  expect(await brokenByKill([], 1)).toBe('')
})
