import { z } from 'zod'
import { promptTokens } from '../../domain/usage.ts'
import type { UsageFilter } from '../../domain/usage-entry.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'
import { wantedText, wholeNumber } from '../query-fields.ts'
import { timesOf } from './usage-query.ts'

const DAY_MS = 86_400_000
/** Days that are shown where no start is asked for, and the most that are. */
const DEFAULT_DAYS = 30
const MAX_DAYS = 366

/** Which days of a user's own are asked for, in Unix seconds. */
export const ownDaysQuery = z.object({ start_timestamp: wholeNumber(), end_timestamp: wholeNumber() })

/** The same of all users, or of one. */
export const daysQuery = ownDaysQuery.extend({ username: wantedText() })

/** What one model used on one day; `docs/api.md: Usage log`, days. */
export const usageDaySchema = z.object({
  created_at: z.int().meta({ description: 'Unix seconds of the start of the day, UTC' }),
  model_name: z.string(),
  username: z.string().optional(),
  count: z.int(),
  quota: z.int(),
  token_used: z.int(),
})

/**
 * What each model used on each day (UTC) that the times asked for touch, the earliest first; of 30 days to
 * the end unless a start is given, of 366 at most (`invalid_request`). `username` is whose rows these are,
 * where they are one user's.
 */
export async function usageByDay(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  query: z.output<typeof ownDaysQuery>,
  filter: UsageFilter,
  username: string | undefined,
): Promise<z.output<typeof usageDaySchema>[]> {
  const { fromMs, beforeMs } = timesOf(query)
  const last = Math.floor(((beforeMs ?? nowMs() + 1) - 1) / DAY_MS)
  const first = fromMs === undefined ? last - DEFAULT_DAYS + 1 : Math.floor(fromMs / DAY_MS)
  if (last - first >= MAX_DAYS) {
    throw new GatewayError(
      'invalid_request',
      `start_timestamp: expected at most ${MAX_DAYS} days before the end`,
    )
  }
  const days = await store.read('usageByDay', { filter, days: { first, last } })
  return days.map(({ day, model, requests, quota, usage }) => ({
    created_at: (day * DAY_MS) / 1000,
    model_name: model,
    ...(username === undefined ? {} : { username }),
    count: requests,
    quota,
    token_used: promptTokens(usage) + usage.output,
  }))
}
