import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../test/stores/engines.ts'
import { holdOf, settledCall, storeWithAccount } from '../../test/stores/rows.ts'
import type { StoredResponse } from '../domain/stored-response.ts'
import { isLargeContent, LargeContents, removeResponseParts } from './large-contents.ts'
import { pruneOrphanedParts } from './prune.ts'
import type { RowStore } from './store.ts'
import { removeStoredDataOfUser } from './stored-data-of-user.ts'

const HOUR_MS = 3_600_000
const MIB = 1_048_576

/** A response whose input is cut within a character, and stored in `parts` parts with its output. */
function large(id: string, of: Partial<StoredResponse> = {}) {
  const content = { input: `"x${'😀'.repeat(150_000)}"`, response: `{"output":"${'x'.repeat(300_000)}"}` }
  return { ...response(id, of), content }
}

function response(id: string, of: Partial<StoredResponse> = {}): StoredResponse {
  return {
    id,
    userId: 2,
    model: 'm',
    group: 'default',
    channel: 'c',
    keyTag: 'tag',
    upstreamId: '',
    tokens: 150,
    previousId: null,
    createdMs: Date.now(),
    expiresMs: Date.now() + HOUR_MS,
    content: null,
    callId: null,
    rate: null,
    ...of,
  }
}

/** The texts of a response, assembled from their parts. */
async function contentOf(store: Pick<RowStore, 'read'>, id: string): Promise<Record<string, string>> {
  const texts: Record<string, string> = {}
  for (const name of ['input', 'response'] as const)
    for (let part = 0, isLast = false; !isLast; part += 1) {
      const found = await store.read('readStoredText', { id, userId: 2, nowMs: Date.now(), of: name, part })
      texts[name] = (texts[name] ?? '') + (found?.text ?? '')
      isLast = found?.isLast ?? true
    }
  return texts
}

/** Rows whose writes fail, beginning with the write of this number. */
function failingFrom(rows: RowStore, number: number): Pick<RowStore, 'write'> {
  let writes = 0
  return {
    write: (name, ...input) =>
      ++writes < number ? rows.write(name, ...input) : Promise.reject(new Error('stopped')),
  }
}

describe.each(ENGINES)('a large content on $name', (engine) => {
  test('the large content of a stored response is stored in encrypted parts, and read back with its size', async () => {
    const { store, database } = await openedRows(engine)
    await new LargeContents(store).store(large('a'))
    await new LargeContents(store).store({ ...large('b', { previousId: 'a' }) })
    const { content } = large('a')
    expect(isLargeContent(content)).toBe(true)
    const parts = await database.sql("select content_cipher from response_parts where response_id = 'a'")
    expect(parts).toHaveLength(4)
    expect(parts.every(({ content_cipher: text }) => /^v1\.\w+\.[\w-]+$/.test(String(text)))).toBe(true)
    const lookUp = { id: 'b', userId: 2, nowMs: Date.now() }
    expect(await contentOf(store, 'a')).toEqual(content)
    const bytes = Buffer.byteLength(content.input) + Buffer.byteLength(content.response)
    expect((await store.read('responseFacts', lookUp))?.contentBytes).toBe(bytes)
    const links = await store.read('responseChain', { ...lookUp, maxBytes: 10 * bytes })
    expect(links).toEqual([
      { id: 'b', previousId: 'a', bytes },
      { id: 'a', previousId: null, bytes },
    ])
  })

  test('the large content of a stored response is stored completely or not at all, and a second attempt succeeds', async () => {
    const { store } = await openedRows(engine)
    for (const failing of [2, 5]) {
      await expect(new LargeContents(failingFrom(store, failing)).store(large('a'))).rejects.toThrow(
        'stopped',
      )
      expect(await store.read('responseFacts', { id: 'a', userId: 2, nowMs: Date.now() })).toBeNull()
    }
    await new LargeContents(store).store(large('a'))
    expect(await contentOf(store, 'a')).toEqual(large('a').content)
  })

  test('the large content of a stored response is removed with the response', async () => {
    const { store, database } = await openedRows(engine)
    await new LargeContents(store).store(large('a'))
    expect(await removeResponseParts(store, 'a')).toBe(0)
    await store.write('deleteResponse', { id: 'a', userId: 2, nowMs: Date.now() })
    expect(await removeResponseParts(store, 'a')).toBe(4)
    expect(await database.sql('select part from response_parts')).toEqual([])
  })

  test('large content without a response is pruned after an hour, and that of a deleted user is removed at once', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const contents = new LargeContents(store)
    await contents.store(large('live'))
    await contents.store(large('expired', { expiresMs: Date.now() }))
    await contents.store(large('of a deleted user', { userId }))
    await store.write('deleteUser', { userId, deleted_time: 1 })
    await removeStoredDataOfUser(store, userId)
    await contents.store(large('too late', { userId }))
    expect(
      await database.sql('select distinct response_id from response_parts order by response_id'),
    ).toEqual([{ response_id: 'expired' }, { response_id: 'live' }])
    await expect(new LargeContents(failingFrom(store, 3)).store(large('cut'))).rejects.toThrow('stopped')
    await store.write('pruneResponses', { nowMs: Date.now(), limit: 10 })
    expect(await pruneOrphanedParts(store, Date.now())).toBe(0)
    expect(await pruneOrphanedParts(store, Date.now() + HOUR_MS + 60_000)).toBe(4 + 2)
    expect(await database.sql('select distinct response_id from response_parts')).toEqual([
      { response_id: 'live' },
    ])
  })
})

test('charges are settled while a response content of 32 MiB is being stored', async () => {
  const { store, who } = await storeWithAccount()
  const content = { input: `"${'x'.repeat(32 * MIB)}"`, response: '{}' }
  const stored = { yet: false }
  const storing = new LargeContents(store).store({ ...response('a'), content }).then(() => {
    stored.yet = true
  })
  let settled = 0
  for (; !stored.yet; settled += 1) {
    await store.write('hold', holdOf(who, `call ${settled}`))
    await store.write('settle', settledCall(who, `call ${settled}`))
  }
  await storing
  const parts = 32 * 4
  // Each of a call's two writes shares the commit of one part. If the content were stored in one piece,
  // hardly any call would end in time.
  expect(settled).toBeGreaterThanOrEqual(parts / 4)
})
