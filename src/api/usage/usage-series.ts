import type { z } from 'zod'
import type { User } from '../../domain/records/user.ts'
import type { ManagementParts } from '../../management/parts.ts'
import { ownSeriesQuery, periodOf, seriesFilterOf, seriesQuery } from '../../management/usage/series-query.ts'
import { seriesCsv, usageSeries, usageSeriesSchema } from '../../management/usage/usage-series.ts'
import { defineEndpoint } from '../endpoint.ts'
import { wholeText } from '../send-text.ts'

const CSV = { type: 'text/csv; charset=utf-8', filename: 'usage.csv' }

/** The usage of all users as a series. `docs/api.md: Usage series`. */
export const usageSeriesEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/usage',
  area: 'management',
  access: 'admin',
  summary: 'Usage by hour, day or month in any time zone',
  errorStatuses: [400],
  query: seriesQuery,
  responseBody: usageSeriesSchema,
  text: CSV,
  handle: ({ query, parts }) => seriesAs(parts, query),
})

/** The account's own usage as a series. */
export const ownUsageSeries = defineEndpoint({
  method: 'GET',
  path: '/api/usage/self',
  area: 'management',
  access: 'account',
  summary: "The account's own usage by hour, day or month in any time zone",
  errorStatuses: [400],
  query: ownSeriesQuery,
  responseBody: usageSeriesSchema,
  text: CSV,
  handle: ({ user, query, parts }) => seriesAs(parts, query, user),
})

async function seriesAs(
  parts: ManagementParts,
  query: z.output<typeof seriesQuery> | z.output<typeof ownSeriesQuery>,
  user?: User,
) {
  const period = periodOf(query, parts.nowMs())
  const { by = 'model' } = query
  const made = await usageSeries(parts, { period, filter: seriesFilterOf(query, user?.id), by })
  return query.format === 'csv' ? wholeText(seriesCsv(made, period)) : made
}
