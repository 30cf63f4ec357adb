import { queryOptions } from '@tanstack/react-query'
import { queryText, request } from './client.ts'

/** Kinds of objects that the audit log is about. */
export const AUDIT_KINDS = ['user', 'key', 'channel', 'option', 'group', 'model', 'price', 'session'] as const

/** An entry of the audit log. */
export interface AuditEntry {
  readonly id: number
  /** Unix seconds. */
  readonly at: number
  /** 0: no user. */
  readonly actor_id: number
  readonly actor: string
  readonly via: 'console' | 'api' | 'command' | 'file'
  readonly address: string
  /** Kind of the object and what happened to it: `channel.update`. */
  readonly action: string
  readonly object: {
    readonly kind: (typeof AUDIT_KINDS)[number]
    readonly id: number | null
    readonly name: string
  }
  readonly changes: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[]
}

/** A page of the audit log. */
interface AuditPage {
  readonly total: number
  readonly items: readonly AuditEntry[]
}

/** Filters of the audit log; undefined ones are absent. */
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
      request<AuditPage>('GET', `/api/audit${queryText({ ...filter, p: page, page_size: AUDIT_PAGE_SIZE })}`),
  })
}

/** The address of the entries that a filter finds, as CSV. */
export function auditCsvUrl(filter: AuditFilter): string {
  return `/api/audit/export${queryText({ ...filter })}`
}
