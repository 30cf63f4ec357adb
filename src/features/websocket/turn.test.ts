import { expect, test } from 'vitest'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { ResizableAllocation } from '../../limits/request-memory.ts'
import { createFrame, steerFrame } from './provider-frame.ts'
import { readFrame, readTurnFrame } from './turn-frame.ts'
import { AnswerCollector } from './turn.ts'

const FRAME = readTurnFrame(
  readFrame(Buffer.from('{"type":"response.create","model":"m","input":"hi","store":false}')),
)
/** More than the reserve for small amounts has for one purpose. */
const TEXT = 'x'.repeat(300 * 1024)

function collected({ isUsedUp = false, store = false } = {}) {
  const memory = requestMemory()
  if (isUsedUp) usedUp(memory)
  const before = memory.held
  const collector = new AnswerCollector(new ResizableAllocation(memory, { client: 1, key: 1 }))
  const item = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: TEXT }] }
  collector.add(JSON.stringify({ type: 'response.output_item.done', output_index: 0, item }))
  collector.add(JSON.stringify({ type: 'response.completed', response: { id: 'resp_1', store } }))
  return { collector, held: () => memory.held - before }
}

test('the items of an answer count as memory of their user until they are dropped', () => {
  const { collector, held } = collected()
  expect(held()).toBeGreaterThan(TEXT.length)
  expect(collector.stateAfter(FRAME, undefined, [])?.items.toString()).toContain(TEXT)
  collector.release()
  expect(held()).toBe(0)
})

test('an answer without memory for its items can be continued only if its provider has stored it', () => {
  const { collector, held } = collected({ isUsedUp: true })
  expect([collector.isLost, held()]).toEqual([true, 0])
  expect(collector.stateAfter(FRAME, undefined, [])).toBeUndefined()
  const stored = collected({ isUsedUp: true, store: true })
  expect(stored.collector.stateAfter(FRAME, undefined, [])).toMatchObject({ id: 'resp_1', after: 'resp_1' })
})

test('a turn that has more JSON values than a message of a client, because it was composed, is sent to a socket of its provider', () => {
  const item = JSON.stringify({ type: 'message', content: Array.from({ length: 200_001 }, () => 0) })
  const body = Buffer.from(`{"model":"m","input":[${item}]}`)
  const sent = createFrame(body, { generates: true, isEmpty: false }, undefined).toString()
  expect(JSON.parse(sent)).toMatchObject({ type: 'response.create', model: 'm' })
  expect(sent).toContain(item)
  expect(steerFrame(body, 1, 'resp_1').toString()).toContain(item)
})
