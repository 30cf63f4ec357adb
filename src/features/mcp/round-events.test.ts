import { scanObject } from '@sluice/wire/json/json-scan'
import { expect, test } from 'vitest'
import { EventResponse } from '../../call/answers/event-response.ts'
import { ResponseMemory } from '../../limits/request-memory.ts'
import { requestMemory } from '../../../test/samples/request-memory.ts'
import { ComposedResponse } from './composed-response.ts'
import { OfferedTools } from './gateway-tools.ts'
import { RoundEvents } from './round-events.ts'

function round(): RoundEvents {
  const memory = new ResponseMemory(requestMemory(), { client: 1, key: 1 })
  const output = { event: () => true, whole() {}, ended: (sent: () => void) => sent(), broke() {} }
  const response = new EventResponse(memory, output)
  const composed = new ComposedResponse(response, scanObject(Buffer.from('{"tools":[]}')), false, {})
  return new RoundEvents(composed, new OfferedTools([], [], [], 0), () => {})
}

const CREATED = '{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}'
const COMPLETED = '{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}'

test.each([
  ['before its first event', []],
  ['after its first event', [CREATED]],
  ['while its last event is sent', [CREATED, COMPLETED]],
])('a round whose connection breaks %s has no answer', (_, events) => {
  const broken = round()
  broken.begun({})
  for (const event of events) broken.event(event)
  broken.broke()
  expect(broken.answer()).toMatchObject({ kind: 'refusal', error: { code: 'upstream_error' } })
})

test('a round that is answered by a refusal has it in place of an answer', () => {
  const refused = round()
  refused.whole(429, { 'retry-after': '5' }, Buffer.from('{}'))
  expect(refused.answer()).toMatchObject({ kind: 'refusal', refused: { status: 429 } })
})

test('a round that ends has the status of its last event', () => {
  const complete = round()
  for (const event of [CREATED, COMPLETED]) complete.event(event)
  expect(complete.answer()).toEqual({ kind: 'answer', status: 'completed', items: [] })
})
