import type { z } from 'zod'
import type { UsageFilter, UsageTotals } from '../../domain/usage-filter.ts'
import { addedUsage, NO_USAGE, promptTokens } from '@sluice/wire/usage'
import type { UsageCursor } from '../../store/operations/usage-scan.ts'
import type { Store } from '../../store/store.ts'
import type { ManagementParts } from '../parts.ts'
import { countsObject, type usageStatSchema } from './usage-object.ts'

/** Number of rows scanned by one read of the store, so that other reads run in between. */
const BATCH_ROWS = 20_000
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
/** Maximum number of newest rows scanned for the last minute. */
const MAX_ROWS_OF_LAST_MINUTE = 100_000

interface Batch {
  readonly totals: UsageTotals
  readonly next: UsageCursor | null
}

const NO_TOTALS: UsageTotals = { requests: 0, quota: 0, usage: NO_USAGE }

/**
 * The usage of a period, and the current rate. Whole days (UTC) come from the daily sums, which are never
 * pruned; parts of a day, and single calls, come from the rows of the log. The rate is that of the last
 * minute, whatever the period.
 */
export async function usageStat(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
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

async function totalOf(store: Pick<Store, 'read'>, filter: UsageFilter, nowMs: number): Promise<UsageTotals> {
  // The daily sums contain neither single calls nor the reasons of their charges.
  if (filter.id !== undefined || filter.reasons !== undefined) return rowsTotal(store, filter)
  const { days, edges } = wholeDays(filter, nowMs)
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
    usage: addedUsage(one.usage, other.usage),
  }
}

/** A period split into the whole days (UTC) in it and the remaining parts. */
interface WholeDays {
  /** Days since 1970-01-01, both inclusive; undefined if there is no whole day. A missing bound is open. */
  readonly days: { readonly first?: number | undefined; readonly last?: number | undefined } | undefined
  /** The partial first and last days. */
  readonly edges: readonly { readonly fromMs: number; readonly beforeMs: number }[]
}

/**
 * Splits a period. `fromMs` is inclusive, `beforeMs` exclusive; undefined is open. An end in the future is
 * open too, because today's sums end now.
 */
export function wholeDays(
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
