import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Patch } from '../fixtures/patch.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { HANGING_DISK } from '../fixtures/slow-disk.ts'
import { storm, type StormPlan } from '../fixtures/storm.ts'

/** Defects. Each process has one of them, which an environment variable names. */
type Defect =
  | 'no gate one'
  | 'no gate two, whole'
  | 'no gate two, streamed'
  | 'no gate one, passed'
  | 'no gate two, passed'
  | 'no output counted'

const has = (defect: Defect): string => `process.env['DEFECT'] === ${JSON.stringify(defect)}`

const DEFECTS: readonly Patch[] = [
  {
    file: 'src/call/streamed-response.ts',
    text: 'if (!opening) return',
    by: `if (!opening || ${has('no gate one')}) return`,
  },
  {
    file: 'src/call/streamed-response.ts',
    text: '!this.call.hold.isDurable',
    by: `(!this.call.hold.isDurable && !(${has('no gate one')}))`,
  },
  {
    file: 'src/call/whole-response.ts',
    text: 'const charged = await charging',
    by: `const charged = ${has('no gate two, whole')} ? (undefined as never) : await charging`,
  },
  {
    file: 'src/call/streamed-response.ts',
    text: 'const charging = this.call.settle(',
    by: `const charging = (async (...all) => {
    if (${has('no gate two, streamed')} && lastFrame && ending !== 'client_gone') {
      await this.call.hold.whenDurable()
      this.#outgoing.release()
      this.#sendOutgoing()
      this.#sendHead()
      response.end(lastFrame(tap.usage ?? NO_USAGE))
      lastFrame = undefined
    }
    return this.call.settle(...all)
  })(`,
  },
  {
    file: 'src/call/passthrough-response.ts',
    text: 'if (hold.isDurable) return this.#send()',
    by: `if (hold.isDurable || ${has('no gate one, passed')}) return this.#send()`,
  },
  {
    file: 'src/call/passthrough-response.ts',
    text: 'await this.call.settleMeasured(',
    by: `await ((...all) => {
    const charging = this.call.settleMeasured(...all)
    return ${has('no gate two, passed')} ? undefined : charging
  })(`,
  },
  // Charges a client that leaves in the middle only for the prompt.
  {
    file: 'src/call/price-usage.ts',
    text: 'const isReportedMore = ',
    by: `const isReportedMore = ${has('no output counted')} || `,
  },
]

/** A mutant is detected in the first round, unless the machine suspends it for seconds. */
const ROUNDS = 20

const LIMIT = { timeout: 300_000 }

let copy: PatchedCopy
beforeAll(async () => {
  copy = await patchedProgram([HANGING_DISK, ...DEFECTS])
})
afterAll(() => copy?.discard())

/** Promises broken by kills, each of which happens while the disk hangs in the middle of a commit. */
function brokenByKill(defect: Defect, rounds: number): Promise<string> {
  return brokenWith(defect, { rounds, hasHangingDisk: true })
}

async function brokenWith(
  defect: Defect,
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
