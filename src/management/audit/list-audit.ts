import { z } from 'zod'
import { type AuditEntry, type AuditFilter, OBJECT_KINDS, VIAS } from '../../domain/audit.ts'
import { offsetOf, type Page, pageSchema } from '../page.ts'
import type { ManagementParts } from '../parts.ts'

/** An entry of the audit log in responses; `docs/administration.md: Audit log`. */
export const auditSchema = z.object({
  id: z.int(),
  at: z.int().describe('Unix seconds'),
  actor_id: z.int().describe('0 = no user'),
  actor: z.string(),
  via: z.enum(VIAS),
  address: z.string(),
  action: z.string(),
  object: z.object({ kind: z.enum(OBJECT_KINDS), id: z.int().nullable(), name: z.string() }),
  changes: z.array(z.object({ field: z.string(), before: z.unknown(), after: z.unknown() })),
})

/** An entry in responses. */
function auditObject({
  id,
  atMs,
  actorId,
  actor,
  via,
  address,
  action,
  object,
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
    object: { ...object },
    changes: changes.map((change) => ({ ...change })),
  }
}

/** A page of the audit log. */
export const auditPageSchema = pageSchema(auditSchema)

/** A page of the audit log, newest first. */
export async function listAudit(
  { store }: Pick<ManagementParts, 'store'>,
  filter: AuditFilter,
  requested: Page,
): Promise<z.output<typeof auditPageSchema>> {
  const { page, pageSize } = requested
  const found = await store.read('auditPage', { filter, offset: offsetOf(requested), limit: pageSize })
  return { page, page_size: pageSize, total: found.total, items: found.entries.map(auditObject) }
}
