import { z } from 'zod'
import { type AuditFilter, OBJECT_KINDS } from '../../domain/audit.ts'
import { wantedText, wholeNumber } from '../query-fields.ts'

const KIND = `expected one of ${OBJECT_KINDS.join(', ')}`

/** The filters of the audit log; `docs/administration.md: Audit log`. Times are Unix seconds. */
export const auditQuery = z.object({
  actor: wantedText().describe('Name or id of who made the change'),
  kind: z
    .enum(['', ...OBJECT_KINDS], { error: KIND })
    .transform((kind) => (kind === '' ? undefined : kind))
    .optional(),
  object: wantedText().describe('Name or id of the object'),
  from: wholeNumber().describe('Included'),
  to: wholeNumber().describe('Excluded'),
})

/** Converts a query. */
export function auditFilter({ from, to, ...wanted }: z.output<typeof auditQuery>): AuditFilter {
  return {
    ...wanted,
    fromMs: from === undefined ? undefined : from * 1000,
    beforeMs: to === undefined ? undefined : to * 1000,
  }
}
