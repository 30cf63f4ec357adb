import { expect, test } from 'vitest'
import { type Patch, patchedCopy } from '../equipment/patched-copy.ts'
import { SLOW_DISK } from '../equipment/slow-disk.ts'
import { storm } from '../equipment/storm.ts'

const NO_GATE_ONE: Patch = {
  file: 'src/relay/stream-answer.ts',
  text: 'if (this.#gateShut || this.#call.hold.isDurable) return',
  by: 'return',
}
const NO_GATE_TWO_WHOLE: Patch = {
  file: 'src/relay/whole-answer.ts',
  text: "const charged = await this.#call.settle(this.#target, answered('complete', reply.facts), true)",
  by: "const charged = undefined as never; void this.#call.settle(this.#target, answered('complete', reply.facts), true)",
}
const NO_GATE_TWO_STREAMED: Patch = {
  file: 'src/relay/stream-answer.ts',
  text: 'await this.#call.settle(',
  by: `await (async (...all) => {
    if (lastFrame && !this.#callerLeft) {
      await this.#call.hold.durable
      this.#sendOutgoing()
      this.#openAnswer()
      this.#call.response.end(lastFrame)
      lastFrame = undefined
    }
    return this.#call.settle(...all)
  })(`,
}
/** Whoever leaves in the middle pays for the prompt alone. */
const NO_OUTPUT_COUNTED: Patch = {
  file: 'src/relay/charge.ts',
  text: 'output: whole ? output : Math.max(reported?.output ?? 0, output)',
  by: 'output: whole ? output : (reported?.output ?? 0)',
}

const LIMIT = { timeout: 300_000 }

/** What is broken in a storm; if nothing was, in the next: what breaks it may not have come up. */
async function brokenOn(patch: Patch): Promise<string> {
  const copy = patchedCopy([SLOW_DISK, patch])
  try {
    for (const seed of [7, 8, 9]) {
      const { broken } = await storm({ seed, rounds: 3, clients: 32, root: copy.root })
      if (broken.length > 0) return broken.join('\n')
    }
    return ''
  } finally {
    copy.discard()
  }
}

test('without gate one, content is delivered that leaves no trace', LIMIT, async () => {
  expect(await brokenOn(NO_GATE_ONE)).toMatch(
    /delivered content without a trace|showed content before its hold was durable/,
  )
})
test('without gate two, whole answers are never charged', LIMIT, async () => {
  expect(await brokenOn(NO_GATE_TWO_WHOLE)).toMatch(/was seen complete and/)
})
test('without gate two, streams are never charged in full', LIMIT, async () => {
  expect(await brokenOn(NO_GATE_TWO_STREAMED)).toMatch(/was seen complete and/)
})
test('where less is charged than the upstream generated, its log tells', LIMIT, async () => {
  expect(await brokenOn(NO_OUTPUT_COUNTED)).toMatch(
    /was charged \d+ \(client_gone\), and its client saw what costs/,
  )
})
