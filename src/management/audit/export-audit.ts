import type { AuditEntry, AuditFilter } from '../../domain/audit.ts'
import type { Json } from '../../domain/json.ts'
import { type Cell, csvLine } from '../usage/csv.ts'
import type { ManagementParts } from '../parts.ts'

/** Entries that one read of the store returns. */
const BATCH = 500

const COLUMNS = [
  'id',
  'at',
  'actor_id',
  'actor',
  'via',
  'address',
  'action',
  'object_kind',
  'object_id',
  'object_name',
  'field',
  'before',
  'after',
]

/**
 * The audit log as CSV, newest first, a line for each changed field. Pieces are whole lines; a slow client
 * makes it buffer one at most.
 */
export async function* auditCsv(
  { store }: Pick<ManagementParts, 'store'>,
  filter: AuditFilter,
): AsyncGenerator<string, void, undefined> {
  // The header waits for the first read: if that fails, the response is an error.
  let head = csvLine(COLUMNS)
  for (let beforeId: number | null = null; ; ) {
    const entries: readonly AuditEntry[] = await store.read('auditBefore', { filter, beforeId, limit: BATCH })
    const piece = head + entries.map(linesOf).join('')
    if (piece !== '') yield piece
    const last = entries.at(-1)
    if (!last) return
    head = ''
    beforeId = last.id
  }
}

function linesOf({ id, atMs, actorId, actor, via, address, action, object, changes }: AuditEntry): string {
  const time = new Date(atMs).toISOString()
  const { kind, id: objectId, name } = object
  const head = [id, time, actorId, actor, via, address, action, kind, objectId, name]
  if (changes.length === 0) return csvLine([...head, '', null, null])
  return changes
    .map(({ field, before, after }) => csvLine([...head, field, cellOf(before), cellOf(after)]))
    .join('')
}

function cellOf(value: Json): Cell {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}
