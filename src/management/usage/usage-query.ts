import { z } from 'zod'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { wantedText, wholeNumber } from '../query-fields.ts'

/** The type of all rows in the log: a settled call. */
const CONSUMED = 2

/** The filters of a user's own rows; `docs/api.md: Usage log`. Times are Unix seconds, both inclusive. */
export const ownUsageQuery = z.object({
  type: wholeNumber(),
  start_timestamp: wholeNumber(),
  end_timestamp: wholeNumber(),
  token_name: wantedText(),
  model_name: wantedText(),
  group: wantedText(),
  request_id: wantedText(),
  reason: wantedText(),
})

/** The filters of all rows. */
export const usageQuery = ownUsageQuery.extend({ username: wantedText(), channel: wantedText() })

/** Converts a query to a filter; with `userId`, for the rows of that user only. Null if no row can match. */
export function filterOf(
  query: z.output<typeof usageQuery> | z.output<typeof ownUsageQuery>,
  userId?: number,
): UsageFilter | null {
  if ((query.type ?? 0) !== 0 && query.type !== CONSUMED) return null
  const { username, channel } = query as z.output<typeof usageQuery>
  return {
    user_id: userId,
    ...timesOf(query),
    username,
    channel,
    token_name: query.token_name,
    model: query.model_name,
    group: query.group,
    id: query.request_id,
    reasons: query.reason?.split(','),
  }
}

/** The period of a query. An end of 0 counts as absent, because consoles of older gateways send it. */
export function timesOf(query: {
  readonly start_timestamp?: number | undefined
  readonly end_timestamp?: number | undefined
}): Pick<UsageFilter, 'fromMs' | 'beforeMs'> {
  const { start_timestamp: start, end_timestamp: end } = query
  return { fromMs: start ? start * 1000 : undefined, beforeMs: end ? (end + 1) * 1000 : undefined }
}
