import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { keptStore } from '../../../test/stores/kept.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { RowStore } from '../../store/store.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import { findReferences } from './item-references.ts'
import { ResponseStore } from './response-store.ts'

test('while the database is away, a request with encrypted reasoning and references fails alone', async () => {
  const lost = new StoreUnavailable('the database is away')
  const rows = {
    // The other reads fail a turn after that of the reasoning's origin.
    read: (name: string) =>
      name === 'reasoningOrigins' ? Promise.reject(lost) : setImmediate().then(() => Promise.reject(lost)),
    write: () => Promise.reject(lost),
  } as unknown as Pick<RowStore, 'read' | 'write'>
  const responses = new ResponseStore({ rows, tag: () => 'tag', kept: keptStore(rows), onLost: () => {} })
  responses.rememberItems(1, ['msg_1'], `resp_${'a'.repeat(32)}`)
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' }
  const input = [reasoning, { type: 'item_reference', id: 'msg_1' }]
  const channel = { name: 'c', protocol: ['responses'], keys: ['first', 'second'] }
  const reader = {
    caller: { user: { id: 1 } },
    settings: { options: { body_limit: 1_000 }, channels: [channel] },
    readStore: () => ({ begin: () => Promise.resolve(), hold: () => Promise.resolve(), end: () => {} }),
  } as unknown as RequestReaderContext
  const scan = scanObject(Buffer.from(JSON.stringify({ model: 'm', input })))
  const unhandled = vi.fn<() => void>()
  process.on('unhandledRejection', unhandled)
  await expect(findReferences(scan, undefined, reader, responses)).rejects.toBe(lost)
  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})
