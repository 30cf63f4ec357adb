import { z } from 'zod'
import { daysQuery, ownDaysQuery, usageByDay, usageDaySchema } from '../../management/usage/usage-by-day.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Usage log`, days of all users together, or of one. */
export const usageDays = defineEndpoint({
  method: 'GET',
  path: '/api/data/',
  area: 'management',
  access: 'admin',
  summary: 'What each model used on each day',
  errorStatuses: [400],
  query: daysQuery,
  responseBody: z.array(usageDaySchema),
  handle: ({ query, parts }) => usageByDay(parts, query, { username: query.username }, query.username),
})

/** The same of the caller alone. */
export const ownUsageDays = defineEndpoint({
  method: 'GET',
  path: '/api/data/self',
  area: 'management',
  access: 'account',
  summary: "What each model used on each day, of the caller's own",
  errorStatuses: [400],
  query: ownDaysQuery,
  responseBody: z.array(usageDaySchema),
  handle: ({ user, query, parts }) => usageByDay(parts, query, { userId: user.id }, user.username),
})
