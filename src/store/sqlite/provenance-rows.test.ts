import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newToken, newUser, openedStore, settledCall, temporaryFolder } from '../../../test/stores/rows.ts'
import { NATIVE_RETENTION_MS, type StoredResponse } from '../../domain/stored-response.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { Store } from '../store.ts'

const WHO = { userId: 1, tokenId: 1 }
const ENDED_MS = 1_760_000_101_500
const LOOK_UP = { id: 'resp_a', userId: 1, nowMs: ENDED_MS }
const STORED: StoredResponse = {
  id: 'resp_a',
  userId: 1,
  model: 'm',
  group: 'default',
  channel: 'c',
  keyTag: 'tag',
  upstreamId: 'up_a',
  tokens: 30,
  previousId: 'resp_before',
  createdMs: ENDED_MS,
  expiresMs: ENDED_MS + NATIVE_RETENTION_MS,
  callId: null,
  rate: null,
}
const CALL: SettledCall = settledCall(WHO, 'a', {
  provenance: {
    keyTag: 'tag',
    response: { id: 'resp_a', upstreamId: 'up_a', tokens: 30, previousId: 'resp_before' },
    reasoning: ['h1', 'h2'],
  },
})

async function withAccount(): Promise<Store> {
  const store = await openedStore(join(temporaryFolder(), 'sluice.db'))
  const user = await store.write('createUser', newUser())
  await store.write('createToken', newToken(user.id))
  return store
}

test('the settlement of a call stores the channel and the key that made the response', async () => {
  const store = await withAccount()
  await store.write('settle', CALL)
  expect(await store.read('responseFacts', LOOK_UP)).toEqual({ response: STORED, contentBytes: 0 })
  const origins = await store.read('reasoningOrigins', { hashes: ['h1', 'h2', 'h3'], nowMs: ENDED_MS })
  expect(origins).toEqual(['h1', 'h2'].map((hash) => ({ hash, channel: 'c', keyTag: 'tag' })))
})

test('settling a call again does not restore the record of its response that was deleted', async () => {
  const store = await withAccount()
  await store.write('settle', CALL)
  await store.write('deleteResponse', { id: 'resp_a', userId: 1, nowMs: ENDED_MS })
  await store.write('settle', CALL)
  expect(await store.read('responseFacts', LOOK_UP)).toBeNull()
})

test('the settlement of a background call does not restore its response that was deleted meanwhile', async () => {
  const store = await withAccount()
  await store.write('storeResponse', { ...STORED, callId: 'a', rate: '{}' })
  await store.write('deleteResponse', { id: 'resp_a', userId: 1, nowMs: ENDED_MS })
  await store.write('settle', CALL)
  expect(await store.read('responseFacts', LOOK_UP)).toBeNull()
})

test('the settlement of a background call replaces its earlier response row', async () => {
  const store = await withAccount()
  await store.write('storeResponse', { ...STORED, callId: 'a', rate: '{}', tokens: 3 })
  await store.write('settle', CALL)
  expect(await store.read('responseFacts', LOOK_UP)).toEqual({ response: STORED, contentBytes: 0 })
})
