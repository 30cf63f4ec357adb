import type { KeptKind, KeptShareName } from '../../src/domain/kept.ts'
import type { StoredResponse } from '../../src/domain/stored-response.ts'
import { KeptStore } from '../../src/store/kept-store.ts'
import type { EntryToKeep } from '../../src/store/operations/kept.ts'
import type { RowStore } from '../../src/store/store.ts'
import type { TestDatabase } from './engines.ts'

/** The store of what is kept, on these rows. A share without a maximum is unlimited. */
export function keptStore(
  rows: Pick<RowStore, 'read' | 'write'>,
  maxBytes: Partial<Record<KeptShareName, number>> = {},
): KeptStore {
  const limit = (share: KeptShareName) => (): number => maxBytes[share] ?? Number.POSITIVE_INFINITY
  return new KeptStore({
    rows,
    maxBytes: { user: limit('user'), cache: limit('cache'), files: limit('files') },
    room: undefined,
  })
}

/** An entry of user 2 that lasts an hour. */
export function keptEntry(kind: KeptKind, key: string, of: Partial<EntryToKeep> = {}): EntryToKeep {
  const nowMs = Date.now()
  return {
    kind,
    key,
    userId: 2,
    tokenId: 7,
    model: 'm',
    facts: `the facts of ${key}`,
    createdMs: nowMs,
    expiresMs: nowMs + 3_600_000,
    ...of,
  }
}

/** A response of user 2 that lasts an hour, as the gateway knows it without its content. */
export function responseRow(id: string, of: Partial<StoredResponse> = {}): StoredResponse {
  const nowMs = Date.now()
  return {
    id,
    userId: 2,
    model: 'm',
    group: 'default',
    channel: 'c',
    keyTag: 'tag',
    upstreamId: '',
    tokens: 1,
    previousId: null,
    createdMs: nowMs,
    expiresMs: nowMs + 3_600_000,
    callId: null,
    rate: null,
    ...of,
  }
}

/** Number of parts in the database. */
export async function partsIn({ sql }: Pick<TestDatabase, 'sql'>): Promise<number> {
  return Number((await sql('select count(*) as count from kept_parts'))[0]?.['count'])
}

/** Rows whose writes of one name fail, beginning with the write of this number. */
export function failingWrites(rows: RowStore, failing: string, number = 1): RowStore {
  let writes = 0
  return {
    ...rows,
    read: rows.read.bind(rows),
    write: (...write) =>
      write[0] === failing && ++writes >= number
        ? Promise.reject(new Error('stopped'))
        : rows.write(...write),
  }
}
