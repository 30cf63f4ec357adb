import { beforeEach, describe, expect, test } from 'vitest'
import { type Behaviour, USUAL_OUTCOME } from './behaviour.ts'
import { type AnsweredLine, SimulatedBatch, WINDOW_MS } from './simulated-batch.ts'

const USUAL: Behaviour = {
  validating_ms: 10,
  running_ms: 100,
  finalizing_ms: 10,
  cancelling_ms: 10,
  pending_ms: 0,
  ...USUAL_OUTCOME,
}
const MADE = { id: 'batch_1', account: 'a', createdMs: 0, endpoint: '', stated: {}, tokens: 0 }

let nowMs = 0
beforeEach(() => {
  nowMs = 0
})

function line(customId: string, isError = false): AnsweredLine {
  const billed = { input: 1, cached: 0, written: 0, output: isError ? 0 : 2, reasoning: 0 }
  return { customId, model: 'm', at: 0, bytes: 1, isError, billed }
}

/** A batch whose lines have been read. */
function batchWith(changes: Partial<Behaviour> = {}, lines = ['a', 'b', 'c', 'd'].map((id) => line(id))) {
  const behaviour = { ...USUAL, ...changes }
  const batch = new SimulatedBatch(MADE, behaviour, () => nowMs)
  batch.setLines({ lines, errors: [], behaviour, results: { path: '', bytes: 0 }, readyMs: 0 })
  return batch
}

function phasesAt(batch: SimulatedBatch, times: readonly number[]): string[] {
  return times.map((ms) => {
    nowMs = ms
    return `${batch.phase} ${batch.done.length}`
  })
}

function idsOf(batch: SimulatedBatch): string[] {
  return [...batch.resultsInOrder()].map(({ kind, line: { customId } }) => `${kind} ${customId}`)
}

describe('the README of the simulator: Batches', () => {
  test('a batch goes through its phases as time passes, and its lines are done one after another', () => {
    expect(phasesAt(batchWith(), [9, 10, 59, 60, 109, 110, 119, 120])).toEqual([
      'validating 0',
      'in_progress 0',
      'in_progress 1',
      'in_progress 2',
      'in_progress 3',
      'finalizing 4',
      'finalizing 4',
      'completed 4',
    ])
  })

  test('a batch stays in validation until its lines have been read', () => {
    const batch = new SimulatedBatch(MADE, USUAL, () => nowMs)
    expect(phasesAt(batch, [1_000])).toEqual(['validating 0'])
  })

  test('a cancelled batch keeps what was done, and has results for the rest', () => {
    const batch = batchWith()
    nowMs = 60
    expect(batch.cancel()).toBe(true)
    expect(phasesAt(batch, [69, 70])).toEqual(['cancelling 2', 'cancelled 2'])
    expect(idsOf(batch)).toEqual(['answered a', 'answered b', 'cancelled c', 'cancelled d'])
    expect(batch.billed).toMatchObject({ input: 2, output: 4 })
    expect(batch.cancel()).toBe(false)
  })

  test('a batch that expires is billed for the lines that were done', () => {
    const batch = batchWith({ end: 'expired', done: 1 })
    expect(phasesAt(batch, [110])).toEqual(['expired 1'])
    expect(idsOf(batch)).toEqual(['answered a', 'expired b', 'expired c', 'expired d'])
    expect(batch.billed).toMatchObject({ input: 1, output: 2 })
  })

  test('a batch that runs for longer than its window expires', () => {
    const batch = batchWith({ running_ms: 2 * WINDOW_MS })
    expect(phasesAt(batch, [WINDOW_MS - 1, WINDOW_MS])).toEqual(['in_progress 1', 'expired 1'])
  })

  test('nothing is billed before the end, and no line with an error', () => {
    const batch = batchWith({}, [line('a'), line('b', true)])
    nowMs = 115
    expect(batch.billed.output).toBe(0)
    nowMs = 120
    expect([...batch.billedLines()].map(({ customId }) => customId)).toEqual(['a'])
  })

  test('results may be missing, there twice, of no line, and in another order; each line is billed once', () => {
    const batch = batchWith({ missing: 1, duplicates: 1, unknown: 1 })
    nowMs = 120
    expect(idsOf(batch)).toEqual(['answered b', 'answered c', 'answered d', 'unknown a', 'answered b'])
    expect([...batch.billedLines()].map(({ customId }) => customId)).toEqual(['b', 'c', 'd'])
    const ids = Array.from({ length: 20 }, (_, at) => String(at))
    const shuffled = batchWith(
      { shuffled: true },
      ids.map((id) => line(id)),
    )
    const found = [...shuffled.resultsInOrder()].map(({ line: { customId } }) => customId)
    expect(found).not.toEqual(ids)
    expect(found.toSorted((one, other) => Number(one) - Number(other))).toEqual(ids)
  })
})
