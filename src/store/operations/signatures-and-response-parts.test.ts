import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import { removeStoredDataOfUser } from '../stored-data-of-user.ts'
import type { UserSignatures } from './signatures-and-response-parts.ts'

const NOW = 1_760_000_000_000

const reply = (
  userId: number,
  hashes: readonly string[],
  of: Partial<UserSignatures> = {},
): UserSignatures => ({
  userId,
  signatures: hashes.map((hash) => ({ hash, content: `signed ${hash}` })),
  storedMs: NOW,
  expiresMs: NOW + 1_000,
  ...of,
})

describe.each(ENGINES)('kept signatures on $name', (engine) => {
  test("a user's stored signatures are found for that user until they expire; of several with one hash, the latest is found", async () => {
    const { store } = await openedRows(engine)
    const replies = [reply(2, ['a', 'b']), reply(2, ['b'], { expiresMs: NOW + 2_000 })]
    await store.write('storeSignatures', { replies })
    const find = async (userId: number, nowMs: number): Promise<string[]> => {
      const found = await store.read('findSignatures', { userId, hashes: ['a', 'b', 'c'], nowMs })
      return found.map(({ content, expiresMs }) => `${content} ${expiresMs - NOW}`).toSorted()
    }
    expect(await find(2, NOW)).toEqual(['signed a 1000', 'signed b 2000'])
    expect(await find(2, NOW + 1_000)).toEqual(['signed b 2000'])
    expect(await find(3, NOW)).toEqual([])
  })

  test('2,500 stored signatures are read in one database operation', async () => {
    const { store } = await openedRows(engine)
    const hashes = Array.from({ length: 2_500 }, (_, i) => `hash ${i}`)
    await store.write('storeSignatures', { replies: [reply(2, hashes)] })
    expect(await store.read('findSignatures', { userId: 2, hashes, nowMs: NOW })).toHaveLength(2_500)
  })

  test('stored signatures are encrypted for their row: a changed or moved one is not found', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('storeSignatures', { replies: [reply(2, ['a', 'b', 'c'])] })
    const rows = await database.sql('select content_cipher from kept_signatures')
    expect(rows.every(({ content_cipher: text }) => /^v1\.\w+\.[\w-]+$/.test(String(text)))).toBe(true)
    await database.sql("update kept_signatures set hash = 'd' where hash = 'a'")
    await database.sql("update kept_signatures set content_cipher = 'v1.x' where hash = 'b'")
    const found = await store.read('findSignatures', { userId: 2, hashes: ['a', 'b', 'c', 'd'], nowMs: NOW })
    expect(found.map(({ hash }) => hash)).toEqual(['c'])
  })

  test('stored signatures are pruned when they have expired, and deleted with their user', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const replies = [reply(userId, ['a', 'b', 'c']), reply(userId, ['d'], { expiresMs: NOW + 5_000 })]
    await store.write('storeSignatures', {
      replies: [...replies, reply(userId + 1, ['e'], { expiresMs: NOW + 5_000 })],
    })
    const prune = (): Promise<number> => store.write('pruneSignatures', { nowMs: NOW + 1_000, limit: 2 })
    expect([await prune(), await prune(), await prune()]).toEqual([2, 1, 0])
    await store.write('deleteUser', { userId, deleted_time: NOW / 1_000 })
    await removeStoredDataOfUser(store, userId)
    expect(await database.sql('select hash from kept_signatures')).toEqual([{ hash: 'e' }])
  })
})
