import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { heldBytes, requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { SETTLED_CALL } from '../../../test/ledger/settled-call.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { LiveCalls, LiveCallBroadcast } from './live-calls.ts'
import { LiveStreamClient } from './live-stream-client.ts'

const TURN_MS = 250
const LINGER_MS = 60_000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Live calls, with a database that counts its reads. */
function started() {
  const ledger: { onSettled: ((call: SettledCall) => void) | undefined } = { onSettled: undefined }
  const asked: number[] = []
  const read = (name: 'tokenNames' | 'channelIds', { tokenIds }: { tokenIds: readonly number[] }) => {
    if (name === 'channelIds') return Promise.resolve(new Map())
    asked.push(tokenIds.length)
    return Promise.resolve(
      tokenIds.map((tokenId) => ({ token_id: tokenId, token_name: 'one', username: 'ann' })),
    )
  }
  const memory = requestMemory()
  const live = new LiveCalls({
    ledger,
    store: { read: read as never },
    memory,
    maxReaders: () => 3,
    nowMs: () => Date.now(),
  })
  let number = 0
  return {
    live,
    memory,
    ledger,
    asked,
    open: (userId: number, model?: string) =>
      live.open({ userId, scope: 'all', filter: { model }, lastId: undefined }),
    settle: async (count: number) => {
      for (let n = 0; n < count; n += 1) ledger.onSettled?.({ ...SETTLED_CALL, id: String((number += 1)) })
      await vi.advanceTimersByTimeAsync(TURN_MS)
    },
  }
}

test('live calls are collected while a client reads them, and for a minute after the last client has left', async () => {
  const { ledger, open, asked, settle } = started()
  expect(ledger.onSettled).toBeUndefined()
  const reader = open(1)
  await settle(1)
  expect(asked).toEqual([1])
  reader.leave()
  await vi.advanceTimersByTimeAsync(LINGER_MS - TURN_MS)
  expect(ledger.onSettled).toBeDefined()
  await vi.advanceTimersByTimeAsync(2 * TURN_MS)
  expect(ledger.onSettled).toBeUndefined()
})

test('the filters of live calls kept after their readers have left are limited to the maximum number of readers', async () => {
  const { open, asked, settle } = started()
  for (const model of ['m', 'm1', 'm2']) open(1, model).leave()
  await settle(1)
  expect(asked).toEqual([1])
  open(1, 'm3').leave()
  await settle(1)
  expect(asked).toEqual([1])
})

test('all readers with the same filter get the same 20 calls of a second, and only names of these are read', async () => {
  const { open, settle, asked } = started()
  const readers = [open(1), open(2)].map((reader) => reader.text())
  for (const text of readers) await text.next()
  await settle(300)
  const [first, second] = await Promise.all(readers.map(async (text) => (await text.next()).value))
  expect(first?.match(/event: call/g)).toHaveLength(20)
  expect(second).toBe(first)
  expect(asked).toEqual([1])
  await settle(300)
  expect(asked).toEqual([1])
})

test('events of live calls count as memory of the user who reads them, as long as they exist', async () => {
  const { open, memory, settle } = started()
  const reader = open(1)
  expect(memory.held).toBe(0)
  await settle(3)
  const held = memory.usedBy(1)
  const text = reader.text()
  await text.next()
  const bytes = String((await text.next()).value).length
  // Once to be written, and once for a reader that returns.
  expect(held).toBe(2 * bytes)
  reader.leave()
  expect(memory.usedBy(1)).toBe(bytes)
  await settle(0)
  await vi.advanceTimersByTimeAsync(LINGER_MS)
  expect(memory.held).toBe(0)
})

function opened(broadcast: LiveCallBroadcast, lastId?: string) {
  const reader = new LiveStreamClient(() => {}, heldBytes())
  broadcast.add(reader, lastId)
  const text = reader.text()
  /** The waiting events, as `call ID` and `gap NUMBER`. */
  return async (): Promise<string[]> => {
    const { value } = await text.next()
    return [...(value ?? '').matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/g)].map(
      ([, event, data = '']) => `${event} ${Object.values(JSON.parse(data)).join()}`,
    )
  }
}
const turn = (from: number, to: number, missed: number | null = 0) => ({
  calls: Array.from({ length: to - from + 1 }, (_, n) => ({
    id: String(from + n),
    text: `{"id":${from + n}}`,
  })),
  missed,
})
const NOTHING = { calls: [], missed: 0 }
const calls = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => `call ${from + n}`)

describe('a broadcast of live calls', () => {
  test('a live broadcast shows all its readers 20 calls in a second, and how many they missed before the next one', async () => {
    const broadcast = new LiveCallBroadcast(heldBytes())
    const readers = [opened(broadcast), opened(broadcast)]
    for (const read of readers) expect(await read()).toEqual([])
    broadcast.show(turn(1, 15), 5000)
    broadcast.show(turn(16, 30, 5), 5500)
    for (const read of readers) expect(await read()).toEqual(calls(1, 20))
    broadcast.show(turn(31, 31), 6000)
    for (const read of readers) expect(await read()).toEqual(['gap 15', 'call 31'])
  })

  test('a live broadcast reports missed calls as soon as its limit per second permits showing calls, even if no call arrives', async () => {
    const broadcast = new LiveCallBroadcast(heldBytes())
    const read = opened(broadcast)
    await read()
    broadcast.show(turn(1, 21), 5000)
    await read()
    broadcast.show(NOTHING, 6000)
    expect(await read()).toEqual(['gap 1'])
  })

  test('a live broadcast sends a new reader no calls that were settled before it connected', async () => {
    const broadcast = new LiveCallBroadcast(heldBytes())
    const before = opened(broadcast)
    await before()
    broadcast.show(turn(1, 20, 5), 5000)
    await before()
    const read = opened(broadcast)
    await read()
    expect(await before()).toEqual(['gap 5'])
    broadcast.show(turn(26, 26), 6000)
    expect([await before(), await read()]).toEqual([['call 26'], ['call 26']])
  })

  test('a live broadcast sends a returning reader the calls and gaps after its last call, at most 20 events at once', async () => {
    const broadcast = new LiveCallBroadcast(heldBytes())
    broadcast.show(turn(1, 3, 7), 5000)
    broadcast.show(turn(4, 22), 6000)
    broadcast.show(turn(23, 25), 7000)
    const read = opened(broadcast, '2')
    await read()
    expect(await read()).toEqual(['call 3', 'gap 7', ...calls(4, 21)])
    broadcast.show(NOTHING, 8000)
    expect(await read()).toEqual(['gap 4'])
  })

  test('a live broadcast reports a gap of unknown size to a returning reader whose last call it no longer knows', async () => {
    const broadcast = new LiveCallBroadcast(heldBytes())
    for (let second = 0; second <= 10; second += 1)
      broadcast.show(turn(second * 20 + 1, second * 20 + 20), second * 1000)
    for (const [lastId, events] of [
      ['20', ['gap ']],
      ['elsewhere', ['gap ']],
      ['219', ['call 220']],
    ] as const) {
      const read = opened(broadcast, lastId)
      await read()
      broadcast.show(NOTHING, 60_000)
      expect(await read()).toEqual(events)
    }
  })

  test("a live broadcast keeps only its newest events for returning readers when its user's memory share is used up", async () => {
    const memory = requestMemory()
    const broadcast = new LiveCallBroadcast(heldBytes(memory))
    broadcast.show(turn(1, 3), 5000)
    usedUp(memory)
    broadcast.show(turn(4, 5), 6000)
    for (const [lastId, events] of [
      ['2', ['gap ']],
      ['4', ['call 5']],
    ] as const) {
      const read = opened(broadcast, lastId)
      await read()
      broadcast.show(NOTHING, 60_000)
      expect(await read()).toEqual(events)
    }
  })
})
