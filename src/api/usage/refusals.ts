import type { z } from 'zod'
import type { User } from '../../domain/records/user.ts'
import type { ManagementParts } from '../../management/parts.ts'
import {
  ownRefusalsQuery,
  refusalsCsv,
  refusalsQuery,
  refusalsSchema,
  refusedCalls,
} from '../../management/usage/refusals.ts'
import { periodOf } from '../../management/usage/series-query.ts'
import { defineEndpoint } from '../endpoint.ts'
import { wholeText } from '../send-text.ts'

const CSV = { type: 'text/csv; charset=utf-8', filename: 'refusals.csv' }

/** Refused calls of all users as a series. `docs/api.md: Refused calls`. */
export const refusals = defineEndpoint({
  method: 'GET',
  path: '/api/usage/refusals',
  area: 'management',
  access: 'admin',
  summary: 'Refused calls by hour, day or month, and by code, API key or user',
  errorStatuses: [400],
  query: refusalsQuery,
  responseBody: refusalsSchema,
  text: CSV,
  handle: ({ query, parts }) => refusalsAs(parts, query),
})

/** Refused calls with the account's own keys as a series. */
export const ownRefusals = defineEndpoint({
  method: 'GET',
  path: '/api/usage/self/refusals',
  area: 'management',
  access: 'account',
  summary: "Refused calls with the account's own keys by hour, day or month",
  errorStatuses: [400],
  query: ownRefusalsQuery,
  responseBody: refusalsSchema,
  text: CSV,
  handle: ({ user, query, parts }) => refusalsAs(parts, query, user),
})

async function refusalsAs(
  parts: ManagementParts,
  query: z.output<typeof refusalsQuery> | z.output<typeof ownRefusalsQuery>,
  user?: User,
) {
  const period = periodOf(query, parts.nowMs())
  const { username } = query as z.output<typeof refusalsQuery>
  const filter = { user_id: user?.id, username, token_name: query.token_name, code: query.code }
  const made = await refusedCalls(parts, { period, filter, by: query.by ?? 'code' })
  return query.format === 'csv' ? wholeText(refusalsCsv(made, period)) : made
}
