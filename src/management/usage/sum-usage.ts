import { addUsage, NO_USAGE, promptTokens } from '@sluice/wire/usage'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import { z } from 'zod'
import { USAGE_DIMENSIONS, type UsageFilter, type UsageTotals } from '../../domain/usage-filter.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { readInput, equalityFilterField, unixSeconds } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { periodOfQuery } from './list-usage.ts'
import { countsObject, type usageStatSchema } from './usage-object.ts'

/** Number of rows that are read from the database at a time, so that other reads can run in between. */
const BATCH_ROWS = 20_000
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Maximum number of most recent rows that are read to compute the rates of the last minute. */
const MAX_ROWS_OF_LAST_MINUTE = 100_000

interface Batch {
  readonly totals: UsageTotals
  readonly next: UsageCursor | null
}

const NO_TOTALS: UsageTotals = { requests: 0, quota: 0, usage: NO_USAGE }

/**
 * The usage of a period, and the requests and tokens of the last minute, whatever the period. Whole days
 * (UTC) are taken from daily sums, which are never removed; parts of a day and single calls are taken from
 * the rows of the usage log.
 */
export async function usageStat(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  filter: UsageFilter | null,
): Promise<z.output<typeof usageStatSchema>> {
  const total = filter ? await totalOf(store, filter, nowMs()) : NO_TOTALS
  const minute = filter ? await lastMinute(store, filter, nowMs()) : NO_TOTALS
  return {
    quota: total.quota,
    ...countsObject(total.usage),
    requests: total.requests,
    rpm: minute.requests,
    tpm: promptTokens(minute.usage) + minute.usage.output,
  }
}

/** Filters for which daily sums have a column, or that select whole days. */
type SummedFilter =
  | 'user_id'
  | 'fromMs'
  | 'beforeMs'
  | 'username'
  | 'token_id'
  | 'token_name'
  | 'model'
  | 'channel'
  | 'channel_id'
  | 'group'
  | 'service_tier'
  | 'region'
/** All others, so that none can be forgotten. */
const UNSUMMED = Object.keys({
  id: true,
  session: true,
  batch: true,
  reasons: true,
  causes: true,
  cache_break: true,
} satisfies Record<Exclude<keyof UsageFilter, SummedFilter>, true>) as (keyof UsageFilter)[]

async function totalOf(store: Pick<Store, 'read'>, filter: UsageFilter, nowMs: number): Promise<UsageTotals> {
  if (UNSUMMED.some((one) => filter[one] !== undefined)) return rowsTotal(store, filter)
  const { days, edges } = splitIntoWholeDays(filter, nowMs)
  let total = days ? await store.read('sumUsageDays', { filter, days }) : NO_TOTALS
  for (const edge of edges) total = added(total, await rowsTotal(store, { ...filter, ...edge }))
  return total
}

async function rowsTotal(store: Pick<Store, 'read'>, filter: UsageFilter): Promise<UsageTotals> {
  let total = NO_TOTALS
  let after: UsageCursor | null = null
  do {
    const batch: Batch = await store.read('sumUsageScan', { filter, after, maxRows: BATCH_ROWS })
    total = added(total, batch.totals)
    after = batch.next
  } while (after)
  return total
}

async function lastMinute(
  store: Pick<Store, 'read'>,
  filter: UsageFilter,
  nowMs: number,
): Promise<UsageTotals> {
  const recent = { ...filter, fromMs: nowMs - MINUTE_MS, beforeMs: undefined }
  const { totals } = await store.read('sumUsageScan', {
    filter: recent,
    after: null,
    maxRows: MAX_ROWS_OF_LAST_MINUTE,
  })
  return totals
}

function added(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    requests: one.requests + other.requests,
    quota: one.quota + other.quota,
    usage: addUsage(one.usage, other.usage),
  }
}

/** A period, divided into whole days (UTC) and the rest. */
interface WholeDays {
  /**
   * First and last day, both included, as numbers of days since 1970-01-01; undefined if the period contains
   * no whole day. A missing bound is open.
   */
  readonly days: { readonly first?: number | undefined; readonly last?: number | undefined } | undefined
  /** The parts of the first and the last day that are not whole days. */
  readonly edges: readonly { readonly fromMs: number; readonly beforeMs: number }[]
}

/**
 * Divides a period into whole days and the rest. `fromMs` is inclusive, `beforeMs` exclusive; an undefined
 * bound is open. An end in the future counts as open, because today's sums contain nothing after now.
 */
export function splitIntoWholeDays(
  { fromMs, beforeMs }: { readonly fromMs?: number | undefined; readonly beforeMs?: number | undefined },
  nowMs: number,
): WholeDays {
  const endMs = beforeMs === undefined || beforeMs > nowMs ? undefined : beforeMs
  const first = fromMs === undefined ? undefined : Math.ceil(fromMs / DAY_MS)
  const endDay = endMs === undefined ? undefined : Math.floor(endMs / DAY_MS)
  if (
    fromMs !== undefined &&
    endMs !== undefined &&
    first !== undefined &&
    endDay !== undefined &&
    first > endDay
  )
    return { days: undefined, edges: fromMs < endMs ? [{ fromMs, beforeMs: endMs }] : [] }
  const edges: { fromMs: number; beforeMs: number }[] = []
  if (fromMs !== undefined && first !== undefined && first * DAY_MS > fromMs)
    edges.push({ fromMs, beforeMs: first * DAY_MS })
  if (endMs !== undefined && endDay !== undefined && endDay * DAY_MS < endMs)
    edges.push({ fromMs: endDay * DAY_MS, beforeMs: endMs })
  const isNone = first !== undefined && endDay !== undefined && first === endDay
  return { days: isNone ? undefined : { first, last: endDay === undefined ? undefined : endDay - 1 }, edges }
}

/** Number of days of a period whose start is not given; `MAX_DAYS` is the maximum of any period. */
const DEFAULT_DAYS = 30
const MAX_DAYS = 366

/** Query parameters with the period of a user's own daily usage, in Unix seconds. */
export const ownDaysQuery = z.object({ start_timestamp: unixSeconds(), end_timestamp: unixSeconds() })

/** Query parameters with the period of daily usage of all users, or of one. */
export const daysQuery = ownDaysQuery.extend({ username: equalityFilterField() })

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
 * The usage of each model on each day (UTC) of a period, the earliest first. Without a start, the period is
 * the 30 days before its end. Throws `invalid_request` for more than 366 days. `username` is added to each
 * row if all rows belong to one user.
 */
export async function usageByDay(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  query: z.output<typeof ownDaysQuery>,
  filter: UsageFilter,
  username: string | undefined,
): Promise<z.output<typeof usageDaySchema>[]> {
  const { fromMs, beforeMs } = periodOfQuery(query)
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

const EXPECTED_DAY = 'expected a day such as 2027-01-31'
const day = z
  .string({ error: EXPECTED_DAY })
  .refine((text) => z.iso.date().safeParse(text).success, { error: EXPECTED_DAY })
  .optional()

const INPUT = z.object(
  {
    by: z.enum(USAGE_DIMENSIONS, { error: `expected one of ${USAGE_DIMENSIONS.join(', ')}` }),
    /** The first day (UTC) of the usage; `to` is the last day, which is included. */
    from: day,
    to: day,
  },
  { error: 'expected an object with by' },
)

/** The usage of one model, user, key, channel or day in a period. */
export interface UsageLine {
  readonly name: string
  /** The id of the user or key; null for other dimensions. */
  readonly id: number | null
  readonly requests: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  /** Quota units charged. */
  readonly quota: number
}

/** The usage over whole days (UTC), grouped by a dimension; by default the last 30 days including today. */
export async function usageByDimension(
  { store, nowMs }: ManagementServices,
  given: z.input<typeof INPUT>,
): Promise<UsageLine[]> {
  const { by, from, to } = readInput(INPUT, given)
  const last = dayNumber(to) ?? Math.floor(nowMs() / DAY_MS)
  const first = dayNumber(from) ?? last - DEFAULT_DAYS + 1
  if (first > last) throw new GatewayError('invalid_request', 'from: expected a day that is not after "to"')
  const groups = await store.read('usageGroups', { by, days: { first, last } })
  return groups.map(({ name, id, requests, quota, usage }) => ({
    name,
    id: id ?? null,
    requests,
    prompt_tokens: promptTokens(usage),
    completion_tokens: usage.output,
    quota,
  }))
}

function dayNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text) / DAY_MS
}
