import { expect, test } from 'vitest'
import { openedStore } from '../../../test/stores/rows.ts'
import type { RefusedCall } from '../../domain/refused-call.ts'

const HOURS_72 = 72 * 3_600_000
const AT_MS = 1_760_000_000_000

test('a refused call is listed for 72 hours, and then removed', async () => {
  const store = await openedStore()
  const call: RefusedCall = {
    id: 'a',
    refused_ms: AT_MS,
    user_id: 0,
    token_id: 0,
    model: 'm',
    group: '',
    kind: 'chat',
    status: 401,
    type: 'authentication_error',
    code: 'invalid_api_key',
    message: 'this API key is unknown',
    retry_after: null,
    limit: null,
  }
  await store.write('addRefusedCalls', { calls: [call], maxRows: 10 })
  const listedAt = async (nowMs: number): Promise<number> =>
    (await store.read('listRefusedCalls', { filter: {}, offset: 0, limit: 10, nowMs })).total
  expect(await listedAt(AT_MS + HOURS_72)).toBe(1)
  expect(await listedAt(AT_MS + HOURS_72 + 1)).toBe(0)
  expect(await store.write('pruneRefusedCalls', { nowMs: AT_MS + HOURS_72, limit: 10 })).toBe(0)
  expect(await store.write('pruneRefusedCalls', { nowMs: AT_MS + HOURS_72 + 1, limit: 10 })).toBe(1)
})
