import { expect, test } from 'vitest'
import { LocalPreviousCalls, type PreviousCall } from './previous-calls.ts'

const MINUTE_MS = 60_000

function callAt(atMs: number, longest = 0): PreviousCall {
  return {
    atMs,
    channel: 'c',
    place: 1,
    model: 'm',
    tools: '',
    system: '',
    messages: '',
    turns: 1,
    longest,
    cached: [0, 0, 0, 0, 0],
    answerId: '',
    isSure: true,
  }
}

test('beyond the maximum number of remembered sessions, the one that was used longest ago is forgotten', () => {
  const calls = new LocalPreviousCalls()
  for (const session of ['a', 'b', 'c']) calls.remember(1, session, callAt(0), 3)
  calls.remember(1, 'a', callAt(1), 3)
  calls.remember(1, 'd', callAt(2), 3)
  expect(calls.size).toBe(3)
  expect(calls.find(1, 'b')).toBeUndefined()
  expect(calls.find(1, 'a')).toEqual(callAt(1))
  expect(calls.find(1, 'd')).toEqual(callAt(2))
})

test('after the maximum number of remembered sessions is lowered, the next calls remove the surplus sessions', () => {
  const calls = new LocalPreviousCalls()
  for (let n = 0; n < 20; n++) calls.remember(1, String(n), callAt(0), 20)
  for (let n = 0; n < 20; n++) calls.remember(1, 'again', callAt(0), 2)
  expect(calls.size).toBe(2)
})

test('remembered sessions whose cache has expired are forgotten before their maximum number is reached', () => {
  const calls = new LocalPreviousCalls()
  for (let n = 0; n < 10; n++) calls.remember(1, String(n), callAt(0), 100)
  for (let n = 0; n < 5; n++) calls.remember(1, 'again', callAt(6 * MINUTE_MS), 100)
  expect(calls.size).toBe(1)
  calls.remember(1, 'hour', callAt(6 * MINUTE_MS, 2), 100)
  calls.remember(1, 'again', callAt(12 * MINUTE_MS), 100)
  expect(calls.find(1, 'hour')).toBeDefined()
})
