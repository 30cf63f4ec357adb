import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { StorageHealth } from '../accounts/ledger/ledger-writer.ts'
import { openStorageWatch, StorageWatch } from './storage-watch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const FULL = new Error('no room')

function watched() {
  const storage = new StorageHealth()
  const lines: string[] = []
  const state = { hasRoom: true, announcements: 0 }
  const watch = new StorageWatch({
    storage,
    probe() {
      storage.note('file', state.hasRoom ? undefined : FULL)
      return Promise.resolve(state.hasRoom)
    },
    announce: () => (state.announcements += 1),
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
  expect(state.announcements).toBe(1)
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

test('the first of several workers logs a storage failure that another worker found', async () => {
  const listeners: ((text: string) => void)[] = []
  const lines: string[] = []
  const announcer = {
    announce: (text: string) => Promise.resolve(listeners.forEach((received) => received(text))),
    listen: (listener: { received(text: string): void }) =>
      void listeners.push((text) => listener.received(text)),
  }
  const storages = [1, 2].map((index) => {
    const storage = new StorageHealth()
    const isReady = () => (storage.note('file', FULL), Promise.resolve(false))
    const note = (line: string) => () => void lines.push(`${line} of ${index}`)
    const log = { error: note('error'), info: note('info') }
    const accounts = { ledger: { writes: { storage } }, others: { link: {}, index, announcer }, isReady }
    onTestFinished(() => watch.close())
    const watch = openStorageWatch(accounts as never, log as never)
    return storage
  })
  storages[1]?.note('file', FULL)
  await vi.advanceTimersByTimeAsync(500)
  expect(storages.map(({ isOk }) => isOk)).toEqual([false, false])
  expect(lines).toEqual(['error of 1'])
})
