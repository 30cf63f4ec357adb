import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { requestMemory } from '../../../test/request-memory.ts'
import { SETTLED_CALL } from '../../../test/settled-call.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { LiveCalls, type OtherProcesses } from './live-calls.ts'
import type { LiveTurn, LiveWish } from './live-source.ts'

const TURN_MS = 250
const LINGER_MS = 60_000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Live calls of a process beside others, with a database that counts its reads. */
function started() {
  const ledger: { onSettled: ((call: SettledCall) => void) | undefined } = { onSettled: undefined }
  const follow: LiveWish[][] = []
  const sent: LiveTurn[] = []
  let onFollowed: (wishes: readonly LiveWish[]) => void = () => {}
  let onTurn: (name: string, turn: LiveTurn) => void = () => {}
  const others: OtherProcesses = {
    follow: (wishes) => follow.push([...wishes]),
    onFollowed: (listener) => (onFollowed = listener),
    send: (_, turn) => sent.push(turn),
    onTurn: (listener) => (onTurn = listener),
  }
  const asked: number[] = []
  const read = (_: 'tokenNames', { tokenIds }: { tokenIds: readonly number[] }) => {
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
    others,
  })
  let number = 0
  return {
    live,
    memory,
    ledger,
    follow,
    sent,
    asked,
    followed: (wishes: readonly LiveWish[]) => onFollowed(wishes),
    turn: (name: string, turn: LiveTurn) => onTurn(name, turn),
    open: (userId: number, model?: string) =>
      live.open({ userId, scope: 'all', filter: { model }, lastId: undefined }),
    settle: async (count: number) => {
      for (let n = 0; n < count; n += 1) ledger.onSettled?.({ ...SETTLED_CALL, id: String((number += 1)) })
      await vi.advanceTimersByTimeAsync(TURN_MS)
    },
  }
}

test('live calls are collected while somebody reads them, and for a minute after', async () => {
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

test('clients that leave with many different filters leave no more views than there may be readers', () => {
  const { open, follow } = started()
  for (let n = 0; n < 20; n += 1) open(n, `m${n}`).leave()
  expect(Math.max(...follow.map(({ length }) => length))).toBe(3)
})

test('other processes learn what is read here, and are sent what they requested, once a turn', async () => {
  const { follow, open, followed, settle, sent, asked, turn } = started()
  const readers = [open(1), open(2)]
  expect(follow).toEqual([[{ scope: 'all', filter: { model: undefined } }]])
  await settle(1000)
  expect(sent).toEqual([])
  followed([{ scope: 'own', filter: { user_id: 2 } }])
  await settle(300)
  expect(sent).toMatchObject([{ calls: { length: 20 }, missed: 280 }])
  // Only names of the calls that are shown are read.
  expect(asked).toEqual([1, 1])
  followed([])
  await settle(300)
  expect(sent).toHaveLength(1)
  const texts = readers.map((reader) => reader.text())
  for (const text of texts) await text.next()
  const first = await Promise.all(texts.map(async (text) => (await text.next()).value))
  expect(first[0]).toBe(first[1])
  await vi.advanceTimersByTimeAsync(1000)
  await Promise.all(texts.map((text) => text.next()))
  turn('["all",{}]', { calls: [{ id: 'elsewhere', text: '{}' }], missed: 0 })
  for (const text of texts) expect((await text.next()).value).toContain('id: elsewhere\n')
})

test('events that wait or are kept are in the memory of the user who reads them, as long as they exist', async () => {
  const { open, memory, settle } = started()
  const reader = open(1)
  expect(memory.held).toBe(0)
  await settle(3)
  const held = memory.heldBy(1)
  const text = reader.text()
  await text.next()
  const bytes = String((await text.next()).value).length
  // Once to be written, and once for a reader that returns.
  expect(held).toBe(2 * bytes)
  reader.leave()
  expect(memory.heldBy(1)).toBe(bytes)
  await settle(0)
  await vi.advanceTimersByTimeAsync(LINGER_MS)
  expect(memory.held).toBe(0)
})
