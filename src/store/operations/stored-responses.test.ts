import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import { keptEntry, keptStore, responseRow } from '../../../test/stores/kept.ts'
import {
  nativeResponseIdPrefix,
  MAX_PREVIOUS_RESPONSES,
  NATIVE_RETENTION_MS,
  type StoredResponse,
} from '../../domain/stored-response.ts'
import { removeKeptOfUser } from '../kept-of-deleted.ts'
import type { RowStore } from '../store.ts'
import type { CallProvenance } from './stored-responses.ts'

const NOW = 1_760_000_000_000
const DAY_MS = 24 * 3_600_000

function response(id: string, of: Partial<StoredResponse> = {}): StoredResponse {
  const upstreamId = `resp_upstream_${id}`
  return responseRow(id, { upstreamId, tokens: 150, createdMs: NOW, expiresMs: NOW + 1_000, ...of })
}

/** Stores a response with a content of so many bytes. */
function keep(
  store: RowStore,
  id: string,
  { bytes = 20, ...of }: Partial<StoredResponse> & { readonly bytes?: number } = {},
): Promise<boolean> {
  const record = response(id, { upstreamId: '', ...of })
  const { userId, createdMs, expiresMs } = record
  return keptStore(store).write(keptEntry('response', id, { userId, createdMs, expiresMs, bytes, record }))
}

const reasoned = (channel: string, endedMs: number): CallProvenance => ({
  user_id: 2,
  model: 'm',
  group: 'default',
  channel,
  ended_ms: endedMs,
  provenance: { keyTag: 't', response: null, reasoning: ['h'] },
})

describe.each(ENGINES)('stored responses on $name', (engine) => {
  test('stored responses are readable by their user until they expire', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a'))
    const find = async (userId: number, nowMs: number): Promise<StoredResponse | undefined> =>
      (await store.read('responseFacts', { id: 'a', userId, nowMs }))?.response
    expect(await find(2, NOW)).toEqual(response('a'))
    expect(await find(3, NOW)).toBeUndefined()
    expect(await find(2, NOW + 1_000)).toBeUndefined()
  })

  test('the chain of a stored response ends before a response of another user', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a', { userId: 3 }))
    await store.write('storeResponse', response('b', { previousId: 'a' }))
    const chain = (id: string) => store.read('responseChain', { id, userId: 2, nowMs: NOW, maxBytes: 1_000 })
    expect(await chain('b')).toEqual([{ id: 'b', previousId: 'a', bytes: null }])
    expect(await chain('a')).toEqual([])
  })

  test('storing a later state of a response replaces the earlier one', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a', { callId: 'call', rate: '{}', tokens: 3 }))
    await store.write('storeResponse', response('a'))
    const facts = await store.read('responseFacts', { id: 'a', userId: 2, nowMs: NOW })
    expect(facts?.response).toEqual(response('a'))
  })

  test('the size of the content of a stored response is found with it, and along the chain of previous_response_id', async () => {
    const { store } = await openedRows(engine)
    await keep(store, 'a', { bytes: 10 })
    await keep(store, 'b', { bytes: 20, previousId: 'a' })
    await keep(store, 'c', { bytes: 30, previousId: 'b' })
    const lookUp = { id: 'c', userId: 2, nowMs: NOW }
    const record = response('c', { upstreamId: '', previousId: 'b' })
    expect(await store.read('responseFacts', lookUp)).toEqual({ response: record, contentBytes: 30 })
    const chain = await store.read('responseChain', { ...lookUp, maxBytes: 1_000 })
    expect(chain).toEqual([
      { id: 'c', previousId: 'b', bytes: 30 },
      { id: 'b', previousId: 'a', bytes: 20 },
      { id: 'a', previousId: null, bytes: 10 },
    ])
    await keptStore(store).remove({ kind: 'response', key: 'b', userId: 3 })
    await keptStore(store).remove({ kind: 'response', key: 'a', userId: 2 })
    expect(await store.read('responseChain', { ...lookUp, maxBytes: 1_000 })).toEqual(chain.slice(0, 2))
    expect(await store.read('responseFacts', { ...lookUp, id: 'a' })).toBeNull()
  })

  test('a chain of stored responses that is too long is read only up to the first response above the maximum length or size', async () => {
    const { store } = await openedRows(engine)
    for (let n = 0; n < MAX_PREVIOUS_RESPONSES + 3; n += 1)
      await keep(store, `r${n}`, { previousId: n === 0 ? null : `r${n - 1}` })
    const chain = (maxBytes: number, id = `r${MAX_PREVIOUS_RESPONSES + 2}`) =>
      store.read('responseChain', { id, userId: 2, nowMs: NOW, maxBytes })
    expect(await chain(1_000_000)).toHaveLength(MAX_PREVIOUS_RESPONSES + 1)
    expect(await chain(1_000_000, `r${MAX_PREVIOUS_RESPONSES - 1}`)).toHaveLength(MAX_PREVIOUS_RESPONSES)
    const [link] = await chain(1_000_000)
    expect(await chain((link?.bytes ?? 0) * 2)).toHaveLength(3)
  })

  test('stored responses are pruned when they have expired, and those of background calls only once these are settled', async () => {
    const { store, database } = await openedRows(engine)
    const prune = async (nowMs: number): Promise<number> =>
      (await store.write('pruneKept', { nowMs, limit: 10 })) +
      (await store.write('pruneResponses', { nowMs, limit: 10 }))
    await keep(store, 'a')
    await store.write('storeResponse', response('b', { callId: 'call', rate: '{}' }))
    await store.write('storeProvenance', { calls: [reasoned('c', NOW + 1_000 - NATIVE_RETENTION_MS)] })
    expect(await prune(NOW)).toBe(0)
    expect(await prune(NOW + 1_000)).toBe(2)
    await store.write('deleteResponse', { id: 'b', userId: 2, nowMs: NOW })
    expect(await store.read('responseFacts', { id: 'b', userId: 2, nowMs: NOW })).toBeNull()
    expect(await store.read('backgroundOutcomes', { callIds: ['call', 'other'] })).toMatchObject([
      { response: { id: 'b', callId: 'call' }, outcome: null },
    ])
    expect(await prune(NOW + 8 * DAY_MS)).toBe(1)
    expect(await database.sql('select id from stored_responses')).toEqual([])
  })

  test('expired records of native calls are pruned in the order of their ids, and responses stored beside them stay', async () => {
    const { store, database } = await openedRows(engine)
    // A call takes time, so it ends after its id was issued.
    const call = (issuedMs: number, index: number): CallProvenance => ({
      ...reasoned('c', issuedMs + 500),
      provenance: {
        keyTag: 't',
        response: {
          id: `${nativeResponseIdPrefix(issuedMs)}${index}`,
          upstreamId: `up_${index}`,
          tokens: 1,
          previousId: null,
        },
        reasoning: [],
      },
    })
    const calls = Array.from({ length: 25 }, (_, index) => call(NOW + index, index))
    await store.write('storeProvenance', { calls })
    const expiryMs = NOW + 500 + NATIVE_RETENTION_MS
    await keep(store, 'resp_000', { expiresMs: expiryMs + DAY_MS })
    const prune = (nowMs: number): Promise<number> => store.write('pruneResponses', { nowMs, limit: 10 })
    expect(await prune(expiryMs - 1)).toBe(0)
    expect(await prune(expiryMs + 19)).toBe(10)
    expect(await prune(expiryMs + 19)).toBe(10)
    expect(await prune(expiryMs + 19)).toBe(0)
    expect(await prune(expiryMs + 24)).toBe(5)
    expect(await database.sql('select id from stored_responses')).toEqual([{ id: 'resp_000' }])
  })

  test('the content of a response is not stored if its user was deleted meanwhile', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    await keep(store, 'a', { userId })
    await store.write('deleteUser', { userId, deleted_time: NOW / 1_000 })
    await removeKeptOfUser(store, userId)
    expect(await keep(store, 'b', { userId })).toBe(false)
    await store.write('storeResponse', response('c', { userId, callId: 'call', rate: '{}' }))
    expect(await database.sql('select id from stored_responses')).toEqual([{ id: 'c' }])
  })

  test('a background response keeps the first outcome that was recorded', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a', { callId: 'call', rate: '{}' }))
    for (const outcome of ['first', 'second']) await store.write('recordOutcome', { id: 'a', outcome })
    expect(await store.read('backgroundOutcomes', { callIds: ['call'] })).toMatchObject([
      { outcome: 'first' },
    ])
  })

  test('each streamed part of a background response is recorded once, even if several nodes record it', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a', { callId: 'call', rate: '{}' }))
    const parts = Array.from({ length: 20 }, (_, n) => ({ first: 10 * n, last: 10 * n + 9, tokens: n + 1 }))
    await Promise.all(
      [...parts, ...parts].map((part) => store.write('recordStreamedPart', { id: 'a', part })),
    )
    await store.write('recordStreamedPart', { id: 'unknown', part: { first: 0, last: 0, tokens: 1 } })
    const [known] = await store.read('backgroundOutcomes', { callIds: ['call'] })
    expect(known?.streamed.toSorted((a, b) => a.first - b.first)).toEqual(parts)
  })

  test('the provenance of a settled call does not restore its response that was deleted meanwhile', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a', { callId: 'call', rate: '{}' }))
    await store.write('deleteResponse', { id: 'a', userId: 2, nowMs: NOW })
    const made = { id: 'a', upstreamId: 'up_a', tokens: 1, previousId: null }
    const provenance = { keyTag: 't', response: made, reasoning: [] }
    await store.write('storeProvenance', { calls: [{ ...reasoned('c', NOW), provenance }] })
    expect(await store.read('responseFacts', { id: 'a', userId: 2, nowMs: NOW })).toBeNull()
  })

  test('the channel and key that can decrypt the reasoning of a response are stored until it expires', async () => {
    const { store } = await openedRows(engine)
    const [older, newer] = [NOW + 1, NOW + 1_000].map((expiryMs) => expiryMs - NATIVE_RETENTION_MS) as [
      number,
      number,
    ]
    const calls = [reasoned('old', older), reasoned('c', newer)]
    await store.write('storeProvenance', { calls: calls.slice(0, 1) })
    await store.write('storeProvenance', { calls })
    const find = (nowMs: number): Promise<unknown> =>
      store.read('reasoningOrigins', { hashes: ['h', 'other'], nowMs })
    expect(await find(NOW + 500)).toEqual([{ hash: 'h', channel: 'c', keyTag: 't' }])
    expect(await find(NOW + 1_000)).toEqual([])
  })
})
