import { z } from 'zod'
import { type AuditEntry, type AuditFilter, OBJECT_KINDS, CHANGE_INTERFACES } from '../domain/audit.ts'
import type { Json } from '../domain/json.ts'
import { equalityFilterField, unixSeconds } from './input-fields.ts'
import { offsetOf, type PageRequest, pageObject, pageSchema } from './page.ts'
import type { ManagementServices } from './services.ts'
import { type Cell, csvLine } from './csv.ts'

/** An entry of the audit log in responses; `docs/administration.md: Audit log`. */
export const auditSchema = z.object({
  id: z.int(),
  at: z.int().describe('Unix seconds'),
  actor_id: z.int().describe('0 = no user'),
  actor: z.string(),
  via: z.enum(CHANGE_INTERFACES),
  address: z.string(),
  action: z.string(),
  object: z.object({
    kind: z.enum(OBJECT_KINDS),
    id: z.int().nullable(),
    name: z.string(),
    owner: z
      .object({ id: z.int(), name: z.string() })
      .optional()
      .describe('Of keys: the user whom it belongs to'),
  }),
  changes: z.array(z.object({ field: z.string(), before: z.unknown(), after: z.unknown() })),
})

/** Converts an entry of the audit log to its form in responses. */
function auditObject({
  id,
  atMs,
  actorId,
  actor,
  via,
  address,
  action,
  object,
  owner,
  changes,
}: AuditEntry): z.output<typeof auditSchema> {
  return {
    id,
    at: Math.floor(atMs / 1000),
    actor_id: actorId,
    actor,
    via,
    address,
    action,
    object: { ...object, ...(owner && { owner: { ...owner } }) },
    changes: changes.map((change) => ({ ...change })),
  }
}

export const auditPageSchema = pageSchema(auditSchema)

/** A page of the audit log, newest first. */
export async function listAudit(
  { store }: Pick<ManagementServices, 'store'>,
  filter: AuditFilter,
  page: PageRequest,
): Promise<z.output<typeof auditPageSchema>> {
  const { entries, total } = await store.read('auditPage', {
    filter,
    offset: offsetOf(page),
    limit: page.pageSize,
  })
  return pageObject(page, total, entries.map(auditObject))
}

const KIND = `expected one of ${OBJECT_KINDS.join(', ')}`

/** The filters of the audit log; `docs/administration.md: Audit log`. Times are Unix seconds. */
export const auditQuery = z.object({
  actor: equalityFilterField().describe('Name or id of who made the change'),
  kind: z
    .enum(['', ...OBJECT_KINDS], { error: KIND })
    .transform((kind) => (kind === '' ? undefined : kind))
    .optional(),
  object: equalityFilterField().describe('Name or id of the object'),
  from: unixSeconds().describe('Included'),
  to: unixSeconds().describe('Excluded'),
})

/** Converts the query parameters of the audit log to a filter for the database. */
export function auditFilter({ from, to, ...wanted }: z.output<typeof auditQuery>): AuditFilter {
  return {
    ...wanted,
    fromMs: from === undefined ? undefined : from * 1000,
    beforeMs: to === undefined ? undefined : to * 1000,
  }
}

/** Number of entries that are read from the database at a time. */
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
 * The audit log as CSV, the newest entries first, with one line per changed field. It is yielded in pieces of
 * whole lines, so that little is buffered for a slow client.
 */
export async function* auditCsv(
  { store }: Pick<ManagementServices, 'store'>,
  filter: AuditFilter,
): AsyncGenerator<string, void, undefined> {
  // The header is sent with the first entries, so that a failure of the first read can still be an error
  // response.
  let head = csvLine(COLUMNS)
  for (let beforeId: number | null = null; ; ) {
    const entries: readonly AuditEntry[] = await store.read('auditEntriesBefore', {
      filter,
      beforeId,
      limit: BATCH,
    })
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
