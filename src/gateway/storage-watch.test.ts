import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StorageHealth } from '../accounts/ledger/ledger-writer.ts'
import { StorageWatch } from './storage-watch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const FULL = new Error('no room')

function watched() {
  const storage = new StorageHealth()
  const lines: string[] = []
  const state = { hasRoom: true }
  const watch = new StorageWatch({
    storage,
    probe() {
      storage.note('file', state.hasRoom ? undefined : FULL)
      return Promise.resolve(state.hasRoom)
    },
    log: {
      error: (fields: { err: Error }) => void lines.push(`error: ${fields.err.message}`),
      info: (sentence: string) => void lines.push(sentence),
    },
    nowMs: () => performance.now(),
  })
  return { storage, watch, lines, state }
}

test('a database that cannot be written is checked each second, and logged once a minute until it can be used again', async () => {
  const { storage, lines, state } = watched()
  state.hasRoom = false
  storage.note('file', FULL)
  await vi.advanceTimersByTimeAsync(59_000)
  expect(lines).toEqual(['error: no room'])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(lines).toEqual(['error: no room', 'error: no room'])
  state.hasRoom = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(storage.isOk).toBe(true)
  expect(lines.at(-1)).toBe('the storage can be used again')
  await vi.advanceTimersByTimeAsync(600_000)
  expect(lines).toHaveLength(3)
})

test('a database that fails repeatedly causes at most one log line of level error a minute', async () => {
  const { storage, watch, lines } = watched()
  for (let second = 0; second < 59; second += 1) {
    storage.note('bank', FULL)
    watch.report(FULL)
    storage.note('bank', undefined)
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(1)
})

test('the storage counts as failed while its file or its accounts database fails', () => {
  const { storage } = watched()
  storage.note('file', FULL)
  storage.note('bank', new Error('read-only'))
  storage.note('file', undefined)
  expect([storage.isOk, storage.failure?.message]).toEqual([false, 'read-only'])
  storage.note('bank', undefined)
  expect([storage.isOk, storage.failure]).toEqual([true, undefined])
})
