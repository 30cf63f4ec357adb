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

/** The usage log of all users. `docs/api.md: Usage log`. */
export const usageLog = defineEndpoint({
  method: 'GET',
  path: '/api/log/',
  area: 'management',
  access: 'admin',
  summary: "All users' settled calls, the newest first",
  errorStatuses: [400],
  query: z.object({ ...usageQuery.shape, ...pageQuery.shape }),
  responseBody: pageSchema(usageSchema),
  handle: ({ query, parts }) => listUsage(parts, filterOf(query), pageOf(query), usageObject),
})

/** The account's own usage log. */
export const ownUsageLog = defineEndpoint({
  method: 'GET',
  path: '/api/log/self',
  area: 'management',
  access: 'account',
  summary: "The account's own settled calls, the newest first",
  errorStatuses: [400],
  query: z.object({ ...ownUsageQuery.shape, ...pageQuery.shape }),
  responseBody: pageSchema(ownUsageSchema),
  handle: ({ user, query, parts }) =>
    listUsage(parts, filterOf(query, user.id), pageOf(query), ownUsageObject),
})
