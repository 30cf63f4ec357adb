import { z } from 'zod'
import { promptTokens } from '@sluice/wire/usage'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'
import { wantedText, wholeNumber } from '../query-fields.ts'
import { timesOf } from './usage-query.ts'

/** The default number of days, and the maximum. */
const DEFAULT_DAYS = 30
const MAX_DAYS = 366

/** The period of a user's own daily usage, in Unix seconds. */
export const ownDaysQuery = z.object({ start_timestamp: wholeNumber(), end_timestamp: wholeNumber() })

/** The period of daily usage of all users, or of one. */
export const daysQuery = ownDaysQuery.extend({ username: wantedText() })

/** The usage of one model on one day; `docs/api.md: Usage log`, days. */
export const usageDaySchema = z.object({
  created_at: z.int().meta({ description: 'Unix seconds of the start of the day, UTC' }),
  model_name: z.string(),
  username: z.string().optional(),
  count: z.int(),
  quota: z.int(),
  token_used: z.int(),
})

/**
 * The usage of each model on each day (UTC) of the period, earliest first. The period is the 30 days before
 * its end unless a start is given, and at most 366 days (`invalid_request`). `username` is the user of the
 * rows, if they are of a single user.
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
