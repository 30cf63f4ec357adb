import { z } from 'zod'
import { daysQuery, ownDaysQuery, usageByDay, usageDaySchema } from '../../management/usage/usage-by-day.ts'
import { defineEndpoint } from '../endpoint.ts'

/** Daily usage of all users together, or of one. `docs/api.md: Usage log`. */
export const usageDays = defineEndpoint({
  method: 'GET',
  path: '/api/data/',
  area: 'management',
  access: 'admin',
  summary: 'Usage of each model on each day',
  errorStatuses: [400],
  query: daysQuery,
  responseBody: z.array(usageDaySchema),
  handle: ({ query, parts }) => usageByDay(parts, query, { username: query.username }, query.username),
})

/** Daily usage of the requesting account. */
export const ownUsageDays = defineEndpoint({
  method: 'GET',
  path: '/api/data/self',
  area: 'management',
  access: 'account',
  summary: "Usage of each model on each day, of the account's own calls",
  errorStatuses: [400],
  query: ownDaysQuery,
  responseBody: z.array(usageDaySchema),
  handle: ({ user, query, parts }) => usageByDay(parts, query, { user_id: user.id }, user.username),
})
