import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import {
  nativeResponseIdPrefix,
  MAX_PREVIOUS_RESPONSES,
  NATIVE_RETENTION_MS,
  type StoredResponse,
} from '../../domain/stored-response.ts'
import { removeStoredDataOfUser } from '../stored-data-of-user.ts'
import type { CallProvenance } from './stored-responses.ts'

const NOW = 1_760_000_000_000
const DAY_MS = 24 * 3_600_000

function response(id: string, of: Partial<StoredResponse> = {}): StoredResponse {
  return {
    id,
    userId: 2,
    model: 'm',
    group: 'default',
    channel: 'c',
    keyTag: 'tag',
    upstreamId: `resp_upstream_${id}`,
    tokens: 150,
    previousId: null,
    createdMs: NOW,
    expiresMs: NOW + 1_000,
    content: null,
    callId: null,
    rate: null,
    ...of,
  }
}

const kept = (id: string, previousId: string | null = null): StoredResponse =>
  response(id, { previousId, upstreamId: '', content: { input: `["${id}"]`, response: '{"output":[]}' } })

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

  test('storing a later state of a response replaces the earlier one', async () => {
    const { store } = await openedRows(engine)
    await store.write('storeResponse', response('a', { callId: 'call', rate: '{}', tokens: 3 }))
    await store.write('storeResponse', response('a'))
    const facts = await store.read('responseFacts', { id: 'a', userId: 2, nowMs: NOW })
    expect(facts?.response).toEqual(response('a'))
  })

  test('stored responses with content are encrypted, and read along the chain of previous_response_id', async () => {
    const { store, database } = await openedRows(engine)
    for (const [id, previous] of [
      ['a', null],
      ['b', 'a'],
      ['c', 'b'],
    ] as const)
      await store.write('storeResponse', kept(id, previous))
    const rows = await database.sql('select content_cipher from stored_responses')
    expect(rows.every(({ content_cipher: text }) => /^v1\.\w+\.[\w-]+$/.test(String(text)))).toBe(true)
    const lookUp = { id: 'c', userId: 2, nowMs: NOW, maxBytes: 1_000 }
    const chain = await store.read('responseChain', lookUp)
    const bytes = '["a"]'.length + '{"output":[]}'.length
    expect(chain).toEqual([
      { id: 'c', previousId: 'b', bytes },
      { id: 'b', previousId: 'a', bytes },
      { id: 'a', previousId: null, bytes },
    ])
    const text = (of: 'input' | 'response', part = 0) => store.read('readStoredText', { ...lookUp, of, part })
    expect(await text('input')).toEqual({ text: '["c"]', isLast: true })
    expect(await text('response')).toEqual({ text: '{"output":[]}', isLast: true })
    expect(await text('input', 1)).toBeNull()
    expect(await store.read('readStoredText', { ...lookUp, userId: 3, of: 'input', part: 0 })).toBeNull()
    await store.write('deleteResponse', { id: 'b', userId: 3, nowMs: NOW })
    await store.write('deleteResponse', { id: 'a', userId: 2, nowMs: NOW })
    expect(await store.read('responseChain', lookUp)).toEqual(chain.slice(0, 2))
  })

  test('a chain of stored responses that is too long is read only up to the first response above the maximum length or size', async () => {
    const { store } = await openedRows(engine)
    for (let n = 0; n < MAX_PREVIOUS_RESPONSES + 3; n += 1)
      await store.write('storeResponse', kept(`r${n}`, n === 0 ? null : `r${n - 1}`))
    const chain = (maxBytes: number, id = `r${MAX_PREVIOUS_RESPONSES + 2}`) =>
      store.read('responseChain', { id, userId: 2, nowMs: NOW, maxBytes })
    expect(await chain(1_000_000)).toHaveLength(MAX_PREVIOUS_RESPONSES + 1)
    expect(await chain(1_000_000, `r${MAX_PREVIOUS_RESPONSES - 1}`)).toHaveLength(MAX_PREVIOUS_RESPONSES)
    const [link] = await chain(1_000_000)
    expect(await chain((link?.bytes ?? 0) * 2)).toHaveLength(3)
  })

  test('stored responses are pruned when they have expired, and those of background calls only once these are settled', async () => {
    const { store, database } = await openedRows(engine)
    const prune = (nowMs: number): Promise<number> => store.write('pruneResponses', { nowMs, limit: 10 })
    await store.write('storeResponse', kept('a'))
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
    await store.write('storeResponse', { ...kept('resp_000'), expiresMs: expiryMs + DAY_MS })
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
    await store.write('storeResponse', { ...kept('a'), userId })
    await store.write('deleteUser', { userId, deleted_time: NOW / 1_000 })
    await removeStoredDataOfUser(store, userId)
    await store.write('storeResponse', { ...kept('b'), userId })
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
