import { z } from 'zod'
import { listUsage } from '../../management/usage/list-usage.ts'
import { pageOf, pageQuery, pageSchema } from '../../management/page.ts'
import {
  ownUsageObject,
  ownUsageSchema,
  usageObject,
  usageSchema,
} from '../../management/usage/usage-object.ts'
import { filterOf, ownUsageQuery, usageQuery } from '../../management/usage/usage-query.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Usage log`, of all users. */
export const usageLog = defineEndpoint({
  method: 'GET',
  path: '/api/log/',
  area: 'management',
  access: 'admin',
  summary: "Everybody's settled calls, the newest first",
  errorStatuses: [400],
  query: z.object({ ...usageQuery.shape, ...pageQuery.shape }),
  responseBody: pageSchema(usageSchema),
  handle: ({ query, parts }) => listUsage(parts, filterOf(query), pageOf(query), usageObject),
})

/** The same of the caller alone. */
export const ownUsageLog = defineEndpoint({
  method: 'GET',
  path: '/api/log/self',
  area: 'management',
  access: 'account',
  summary: "The caller's own settled calls, the newest first",
  errorStatuses: [400],
  query: z.object({ ...ownUsageQuery.shape, ...pageQuery.shape }),
  responseBody: pageSchema(ownUsageSchema),
  handle: ({ user, query, parts }) =>
    listUsage(parts, filterOf(query, user.id), pageOf(query), ownUsageObject),
})
