import { usageCsv } from '../../management/usage/export-usage.ts'
import {
  ownUsageObject,
  ownUsageSchema,
  usageObject,
  usageSchema,
} from '../../management/usage/usage-object.ts'
import { filterOf, ownUsageQuery, usageQuery } from '../../management/usage/usage-query.ts'
import { defineEndpoint } from '../endpoint.ts'

const CSV = { type: 'text/csv; charset=utf-8', filename: 'usage.csv' }

/** The usage log of all users as a file. `docs/api.md: Usage log`. */
export const usageExport = defineEndpoint({
  method: 'GET',
  path: '/api/log/export',
  area: 'management',
  access: 'admin',
  summary: "All users' settled calls as CSV",
  errorStatuses: [400],
  query: usageQuery,
  text: CSV,
  handle: ({ query, parts }) =>
    Promise.resolve(usageCsv(parts, filterOf(query), usageSchema.keyof().options, usageObject)),
})

/** The account's own usage log as a file. */
export const ownUsageExport = defineEndpoint({
  method: 'GET',
  path: '/api/log/self/export',
  area: 'management',
  access: 'account',
  summary: "The account's own settled calls as CSV",
  errorStatuses: [400],
  query: ownUsageQuery,
  text: CSV,
  handle: ({ user, query, parts }) =>
    Promise.resolve(
      usageCsv(parts, filterOf(query, user.id), ownUsageSchema.keyof().options, ownUsageObject),
    ),
})
