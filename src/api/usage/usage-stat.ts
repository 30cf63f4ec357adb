import { usageStat } from '../../management/usage/sum-usage.ts'
import { usageStatSchema } from '../../management/usage/usage-object.ts'
import { filterOf, ownUsageQuery, usageQuery } from '../../management/usage/usage-query.ts'
import { defineEndpoint } from '../endpoint.ts'

/** Sums over the usage log of all users. `docs/api.md: Usage log`. */
export const usageSums = defineEndpoint({
  method: 'GET',
  path: '/api/log/stat',
  area: 'management',
  access: 'admin',
  summary: 'Sums of usage, in total and in the last minute',
  errorStatuses: [400],
  query: usageQuery,
  responseBody: usageStatSchema,
  handle: ({ query, parts }) => usageStat(parts, filterOf(query)),
})

/** Sums over the account's own usage log. */
export const ownUsageSums = defineEndpoint({
  method: 'GET',
  path: '/api/log/self/stat',
  area: 'management',
  access: 'account',
  summary: "Sums of the account's usage, in total and in the last minute",
  errorStatuses: [400],
  query: ownUsageQuery,
  responseBody: usageStatSchema,
  handle: ({ user, query, parts }) => usageStat(parts, filterOf(query, user.id)),
})
