import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { auditPageSchema, auditSchema } from '../../src/management/audit-log.ts'
import { basePath } from './base-path.ts'
import { queryString, request } from './client.ts'

export type AuditEntry = z.output<typeof auditSchema>

/** Filters of the audit log; a filter that is not set is absent. */
export interface AuditFilter {
  readonly actor?: string | undefined
  readonly kind?: string | undefined
  readonly object?: string | undefined
  readonly from?: number | undefined
}

export const AUDIT_PAGE_SIZE = 50

/** A page of the audit log, the newest entry first. */
export function auditQuery(userId: number, filter: AuditFilter, page: number) {
  return queryOptions({
    queryKey: [userId, 'audit', filter, page],
    queryFn: () =>
      request<z.output<typeof auditPageSchema>>(
        'GET',
        `/api/audit${queryString({ ...filter, p: page, page_size: AUDIT_PAGE_SIZE })}`,
      ),
  })
}

/** The URL of the CSV file with the audit entries that a filter selects. */
export function auditCsvUrl(filter: AuditFilter): string {
  return `${basePath}/api/audit/export${queryString({ ...filter })}`
}
