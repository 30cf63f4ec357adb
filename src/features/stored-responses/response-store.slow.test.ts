import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { scanObject } from '@sluice/wire/json/json-scan'
import { NO_USAGE } from '@sluice/wire/usage'
import { keptStore } from '../../../test/stores/kept.ts'
import { openedStore } from '../../../test/stores/rows.ts'
import type { AnswerOrigin } from '../../call/dialects/answer-reader.ts'
import type { RowStore } from '../../store/store.ts'
import { ResponseStore } from './response-store.ts'
import { RetainedResponse } from './retained-response.ts'

test('encrypted reasoning leads only calls of the user who received it to the account that made it', async () => {
  const rows = await openedStore()
  const tag = (_: string, text: string): string => hash('sha256', text)
  const responses = new ResponseStore({ rows, tag, kept: keptStore(rows), onLost: () => {} })
  const provenance = responses.provenance(2, 'key', null, ['encrypted'])
  const call = {
    user_id: 2,
    model: 'm',
    group: 'default',
    channel: 'first',
    ended_ms: Date.now(),
    provenance,
  }
  await rows.write('storeProvenance', { calls: [call] })
  expect(await responses.originOf(2, ['encrypted'])).toMatchObject({ channel: 'first' })
  expect(await responses.originOf(3, ['encrypted'])).toBeUndefined()
})

test("one user's items push out no item that is remembered of another user", async () => {
  const rows = await openedStore()
  const responses = new ResponseStore({ rows, tag: () => 'tag', kept: keptStore(rows), onLost: () => {} })
  const items = (name: string): string[] => Array.from({ length: 100 }, (_, at) => `${name}-${at}`)
  responses.rememberItems(2, items('first'), 'first')
  // As many as are remembered of all users, and some more.
  for (let n = 0; n <= 500; n++) responses.rememberItems(3, items(`of-${n}`), `response-${n}`)
  for (const id of items('first')) expect(responses.responseOfItem(2, id)).toBe('first')
  expect(responses.responseOfItem(3, 'of-500-99')).toBe('response-500')
  expect(responses.responseOfItem(3, 'of-0-99')).toBeUndefined()
  expect(responses.responseOfItem(3, 'first-0')).toBeUndefined()
})

/** Keeps a response in both ways, and returns how many were lost. */
async function lostOf(response: string, rows: Pick<RowStore, 'read' | 'write'>): Promise<number> {
  let lost = 0
  const responses = new ResponseStore({ rows, tag: () => 'tag', kept: keptStore(rows), onLost: () => lost++ })
  const scan = scanObject(Buffer.from('{"model":"m","input":"hi"}'))
  const retained = new RetainedResponse({ responses, scan, previousId: null, retentionMs: 60_000 })
  const origin = { userId: 2, model: 'm', group: 'g', channel: 'c', key: { value: 'key' } } as AnswerOrigin
  await retained.keep(response, NO_USAGE, origin)
  const event = `{"type":"response.completed","response":${response}}`
  await retained.keepStream(Buffer.from(`event: response.completed\ndata: ${event}\n\n`), NO_USAGE, origin)
  return lost
}

const ONE = `{"id":"resp_${'a'.repeat(32)}","output":[]}`

test('a response that cannot be read or stored fails no call: it is counted as lost', async () => {
  const rows = await openedStore()
  expect(await lostOf(ONE, rows)).toBe(0)
  expect(
    await lostOf(`{"id":"resp_1","output":[${Array.from({ length: 2_000_001 }, () => 0).join(',')}]}`, rows),
  ).toBe(2)
  const failing = { read: rows.read.bind(rows), write: () => Promise.reject(new Error('no store')) }
  expect(await lostOf(ONE, failing)).toBe(2)
})
