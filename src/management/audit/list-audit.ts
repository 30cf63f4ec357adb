import type { z } from 'zod'
import type { AuditFilter } from '../../domain/audit.ts'
import { offsetOf, type Page, pageSchema } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { auditObject, auditSchema } from './audit-object.ts'

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
