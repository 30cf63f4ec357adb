import { z } from 'zod'
import { auditFilter, auditQuery } from '../../management/audit/audit-query.ts'
import { auditCsv } from '../../management/audit/export-audit.ts'
import { auditPageSchema, listAudit } from '../../management/audit/list-audit.ts'
import { pageOf, pageQuery } from '../../management/page.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Audit log`. */
export const auditLog = defineEndpoint({
  method: 'GET',
  path: '/api/audit',
  area: 'management',
  access: 'admin',
  summary: 'Changes of users, keys, channels and settings, and sign-ins, the newest first',
  errorStatuses: [400],
  query: z.object({ ...auditQuery.shape, ...pageQuery.shape }),
  responseBody: auditPageSchema,
  handle: ({ query, parts }) => listAudit(parts, auditFilter(query), pageOf(query)),
})

/** The audit log as a file. */
export const auditExport = defineEndpoint({
  method: 'GET',
  path: '/api/audit/export',
  area: 'management',
  access: 'admin',
  summary: 'The audit log as CSV',
  errorStatuses: [400],
  query: auditQuery,
  text: { type: 'text/csv; charset=utf-8', filename: 'audit.csv' },
  handle: ({ query, parts }) => Promise.resolve(auditCsv(parts, auditFilter(query))),
})
