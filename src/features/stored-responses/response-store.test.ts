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
