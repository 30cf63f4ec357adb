import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { keptStore } from '../../../test/stores/kept.ts'
import { openedStore } from '../../../test/stores/rows.ts'
import { ResponseStore } from './response-store.ts'

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
