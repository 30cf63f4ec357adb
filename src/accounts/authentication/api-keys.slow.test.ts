import { createHash } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { collectAll } from '../../../test/fixtures/collect-young.ts'
import { newToken, SECRETS, storeWithAccount } from '../../../test/stores/rows.ts'
import { Ledger } from '../ledger/ledger.ts'
import { importedKeyHash } from '../../domain/api-key.ts'
import { keyHashes } from '../../store/secrets.ts'
import type { Store } from '../../store/store.ts'
import { ApiKeys } from './api-keys.ts'
import { bearerKey } from './key-from-request.ts'

async function opened() {
  const account = await storeWithAccount()
  const keys = new ApiKeys(account.store, new Ledger(account.store, 'run'), (key) => keyHashes(SECRETS, key))
  const calls = async (key = 'sk-k1') => keys.authenticate(key, '127.0.0.1')
  return { ...account, keys, calls }
}

/** API keys of a store in which something happens around a read. */
function keysWith(
  store: Store,
  around: (asked: readonly unknown[], read: () => Promise<unknown>) => Promise<unknown>,
): ApiKeys {
  const read = store.read.bind(store) as (...asked: unknown[]) => Promise<unknown>
  const watched: Store = new Proxy(store, {
    get: (target, name) =>
      name === 'read'
        ? (...asked: unknown[]) => around(asked, () => read(...asked))
        : (Reflect.get(target, name, target) as unknown),
  })
  return new ApiKeys(watched, new Ledger(watched, 'run'), (key) => keyHashes(SECRETS, key))
}

test('the store sees only HMACs of API keys, and does the same work for known, unknown and similar keys', async () => {
  const { store, userId, tokenId } = await opened()
  await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
  const reads: unknown[][] = []
  const read = store.read.bind(store) as (...asked: unknown[]) => Promise<unknown>
  const watched: Store = new Proxy(store, {
    get(target, name) {
      if (name !== 'read') return Reflect.get(target, name, target) as unknown
      return (...asked: unknown[]): Promise<unknown> => {
        reads.push(asked)
        return read(...asked)
      }
    },
  })
  const keys = new ApiKeys(watched, new Ledger(watched, 'run'), (key) => keyHashes(SECRETS, key))
  // A disabled key, a prefix of it, an extension of it, the same with one letter in upper case, and another
  // key.
  const sent = ['k1', 'k', 'k1x', 'K1', 'somethingelse']
  const calls = async (key: string): Promise<unknown> => keys.authenticate(`sk-${key}`, '127.0.0.1')
  for (const key of sent) await expect(calls(key)).rejects.toThrow('API key')
  expect(reads.map(([name]) => name)).toEqual(sent.map(() => 'tokenByKeyHash'))
  const hashes = reads.map(([, hash]) => String(hash))
  expect(new Set(hashes).size).toBe(sent.length)
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/)
})

describe('a flood of unknown keys', () => {
  const HEADER_LENGTH = 16_000
  const MIB = 2 ** 20
  const isRefused = async (keys: ApiKeys, sent: string): Promise<boolean> =>
    Promise.resolve()
      .then(() => keys.authenticate(sent, '127.0.0.1'))
      .then(
        () => false,
        () => true,
      )

  test.each([
    ['followed by a hyphen and other text', (key: string) => `Bearer sk-${key}-${'a'.repeat(HEADER_LENGTH)}`],
    ['followed by spaces', (key: string) => `Bearer sk-${key}${' '.repeat(HEADER_LENGTH)}`],
  ])('keeps the keys in memory, and not the headers that they are parts of: a key %s', async (_, header) => {
    const { keys } = await opened()
    const send = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        // As a header arrives: in a buffer, which becomes one text.
        const sent = Buffer.from(header(String(i).padStart(24, 'k'))).toString('latin1')
        expect(await isRefused(keys, bearerKey(sent) ?? '')).toBe(true)
      }
    }
    await send(0, 100)
    collectAll()
    const before = process.memoryUsage().heapUsed
    await send(100, 2_100)
    collectAll()
    // The headers have 32 MB.
    expect((process.memoryUsage().heapUsed - before) / MIB).toBeLessThan(8)
  })

  test('displaces no key that is in use from the cache', async () => {
    const { store, tokenId } = await opened()
    let isFlood = false
    let reads = 0
    const keys = keysWith(store, async (_, read) => {
      reads += 1
      return isFlood ? undefined : read()
    })
    await keys.authenticate('sk-k1', '127.0.0.1')
    isFlood = true
    for (let i = 0; i < 51_000; i++) expect(await isRefused(keys, `sk-stranger${i}`)).toBe(true)
    reads = 0
    expect(keys.authenticate('sk-k1', '127.0.0.1')).toMatchObject({ token: { id: tokenId } })
    expect(reads).toBe(0)
  })
})

describe('changes of a key', () => {
  test("disabling a user applies to the next call with any of the user's keys", async () => {
    const { store, userId, keys, calls } = await opened()
    await calls()
    await store.write('changeUser', { userId, fields: { status: 2 } })
    keys.forgetUser(userId)
    await expect(calls()).rejects.toThrow('the user of this API key is disabled')
  })

  test('disabling a token applies to the next call with it', async () => {
    const { store, userId, tokenId, keys, calls } = await opened()
    await calls()
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    keys.forget(tokenId)
    await expect(calls()).rejects.toThrow('this API key is disabled')
  })

  test('a key that is created after a failed lookup of it works from the next call on once its creation is announced', async () => {
    const { store, userId, keys, calls } = await opened()
    await expect(calls('sk-late')).rejects.toThrow('unknown')
    await store.write('createToken', newToken(userId, { key: 'late' }))
    await expect(calls('sk-late')).rejects.toThrow('unknown')
    keys.forgetKey('late')
    expect((await calls('sk-late')).user.id).toBe(userId)
  })

  test('a change of a token that was not announced applies within a minute, without a call that waits for it', async () => {
    const { store, userId, tokenId } = await opened()
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const hash = (key: string): readonly string[] => keyHashes(SECRETS, key)
    const keys = new ApiKeys(store, new Ledger(store, 'run'), hash, () => {})
    const calls = (): unknown => keys.authenticate('sk-k1', '127.0.0.1')
    await calls()
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    vi.advanceTimersByTime(29_000)
    expect(calls()).toMatchObject({ token: { id: tokenId } })
    vi.advanceTimersByTime(2_000)
    // The first call starts a refresh but does not wait for it.
    expect(calls()).toMatchObject({ token: { id: tokenId } })
    await vi.waitFor(() => expect(calls).toThrow('this API key is disabled'), 60_000)
  })

  test('a change of a key that was not used for a minute applies to its next call without an announcement', async () => {
    const { store, userId, tokenId } = await opened()
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const hash = (key: string): readonly string[] => keyHashes(SECRETS, key)
    const keys = new ApiKeys(store, new Ledger(store, 'run'), hash, () => {})
    const calls = async (): Promise<unknown> => keys.authenticate('sk-k1', '127.0.0.1')
    await calls()
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    vi.advanceTimersByTime(60_001)
    await expect(calls()).rejects.toThrow('this API key is disabled')
  })

  test('a change of a key or user also applies if a call was reading the old state when the change was announced', async () => {
    const { store, userId, tokenId, keys, calls } = await opened()
    const reading = [calls(), calls('sk-late')]
    keys.forgetUser(userId)
    await Promise.allSettled(reading)
    // With an outdated cache these calls would fail the test.
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    await store.write('createToken', newToken(userId, { key: 'late' }))
    await expect(calls()).rejects.toThrow('this API key is disabled')
    expect((await calls('sk-late')).user.id).toBe(userId)
  })
})

describe('a key of which only the SHA-256 digest was imported', () => {
  const SENT = ['sk-0123456789abcdefABCDEF', 'sk-zH-_7q2mKp4wXy9-v.B1nA'] as const
  const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

  async function imported(sent: string) {
    const account = await opened()
    const { store, userId } = account
    const fields = { name: 'imported', key: digestOf(sent), key_form: 'digest' as const }
    const { id } = await store.write('createToken', newToken(userId, fields))
    const reveal = (): Promise<string | null> => store.read('revealKey', { tokenId: id, userId })
    return { ...account, id, reveal }
  }

  test.each(SENT)('works as it was sent, and can then be revealed: %s', async (sent) => {
    const { calls, reveal, id } = await imported(sent)
    expect(await reveal()).toBe('')
    expect((await calls(sent)).token.id).toBe(id)
    expect(await reveal()).toBe(sent.slice('sk-'.length))
    expect((await calls(sent)).token.id).toBe(id)
  })

  test.each(SENT)('works for all calls that use it first at the same time: %s', async (sent) => {
    const { calls, id } = await imported(sent)
    const callers = await Promise.all(Array.from({ length: 20 }, () => calls(sent)))
    expect(new Set(callers.map(({ token }) => token.id))).toEqual(new Set([id]))
  })

  test.each(SENT)('works for a call that looks it up while another one stores it: %s', async (sent) => {
    const { store, calls, id } = await imported(sent)
    const keys = keysWith(store, async ([name, hash], read) => {
      if (name === 'tokenByKeyHash' && hash === importedKeyHash(digestOf(sent))) await calls(sent)
      return read()
    })
    expect((await keys.authenticate(sent, '127.0.0.1')).token.id).toBe(id)
  })

  test('works from its announcement on, also if a call was looking then whether there are such keys', async () => {
    const { store, userId } = await opened()
    const fields = { name: 'imported', key: digestOf(SENT[0]), key_form: 'digest' as const }
    let isImported = false
    const keys = keysWith(store, async ([name], read) => {
      const found = await read()
      if (name === 'hasImportedKeys' && !isImported) {
        isImported = true
        await store.write('createToken', newToken(userId, fields))
        keys.forgetUnknown()
      }
      return found
    })
    const calls = async () => keys.authenticate(SENT[0], '127.0.0.1')
    await expect(calls()).rejects.toThrow('unknown')
    expect((await calls()).token.name).toBe('imported')
  })

  test.each(SENT)('is no other text: %s', async (sent) => {
    const { calls, reveal } = await imported(sent)
    const bare = sent.slice('sk-'.length)
    for (const other of [
      bare,
      `sk-${sent}`,
      `${sent}x`,
      sent.slice(0, -1),
      digestOf(sent),
      `sk-${digestOf(sent)}`,
    ])
      await expect(calls(other), other).rejects.toThrow('unknown')
    await calls(sent)
    for (const other of [
      `sk-${sent}-x`,
      digestOf(sent),
      `sk-${digestOf(sent)}`,
      `sk-sha256:${digestOf(sent)}`,
    ])
      await expect(calls(other), other).rejects.toThrow('unknown')
    expect(await reveal()).toBe(bare)
  })

  test('that could be guessed does not work', async () => {
    const { calls } = await imported('sk-012345678901234')
    await expect(calls('sk-012345678901234')).rejects.toThrow('unknown')
  })

  test('works no more once it was replaced', async () => {
    const { store, userId, keys, id, calls } = await imported(SENT[1])
    await calls(SENT[1])
    await store.write('rotateToken', { tokenId: id, userId, key: 'anotherkey' })
    keys.forget(id)
    await expect(calls(SENT[1])).rejects.toThrow('unknown')
    expect((await calls('sk-anotherkey')).token.id).toBe(id)
  })
})
