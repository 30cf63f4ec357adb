import { expect, test } from 'vitest'
import { GatewayError } from '../../errors.ts'
import { EventBudget, SHARED_EVENT_BYTES } from './event-budget.ts'
import { MessagesStreamDecoder } from '../messages/stream-decoder.ts'

const MIB = 1024 * 1024
const CHUNK = Buffer.alloc(MIB, 'x')
const START = Buffer.from('data: {"type":"message_start","message":{"id":"m","content":[]}}\n\n')

/** Decoder with the beginning of an event of this many MiB. */
function holding(mib: number, budget: EventBudget): MessagesStreamDecoder {
  const decoder = new MessagesStreamDecoder(budget)
  decoder.push(START)
  for (let i = 0; i < mib; i++) decoder.push(CHUNK)
  return decoder
}

test('streams share what unfinished events may take, and give it back when the event is whole or nothing more comes', () => {
  const budget = new EventBudget(40 * MIB)
  const [first, second] = [holding(20, budget), holding(20, budget)]
  expect(budget.available).toBe(2 * 65_536)
  expect(() => holding(1, budget)).toThrow(expect.objectContaining({ code: 'overloaded' }))
  first.push(Buffer.from('\n\n'))
  expect(budget.available).toBe(20 * MIB + 65_536)
  second.release()
  expect(budget.available).toBe(40 * MIB)
  first.release()
  second.release()
  expect(budget.available).toBe(40 * MIB)
})

test('an event of more than 32 MiB is refused, and what it took is given back', () => {
  const budget = new EventBudget()
  expect(budget.available).toBe(SHARED_EVENT_BYTES)
  const decoder = holding(32, budget)
  expect(() => decoder.push(CHUNK)).toThrow(GatewayError)
  decoder.release()
  expect(budget.available).toBe(256 * MIB)
})

test('a stream that ends gives back what it held', () => {
  const budget = new EventBudget()
  holding(3, budget).end()
  expect(budget.available).toBe(SHARED_EVENT_BYTES)
})

test('an event up to 64 KiB is read however much others hold', () => {
  const budget = new EventBudget(0)
  const decoder = new MessagesStreamDecoder(budget)
  decoder.push(START)
  for (const size of [1, 30_000, 65_536]) {
    for (let held = 0; held < size; held += 10_000)
      expect(decoder.push(CHUNK.subarray(0, Math.min(10_000, size - held)))).toEqual([])
    decoder.push(Buffer.from('\n\n'))
  }
  decoder.push(CHUNK.subarray(0, 65_536))
  expect(() => decoder.push(CHUNK.subarray(0, 1))).toThrow(expect.objectContaining({ code: 'overloaded' }))
  decoder.release()
  expect(budget.available).toBe(0)
})
