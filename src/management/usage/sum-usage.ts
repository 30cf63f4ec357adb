import type { z } from 'zod'
import { addedUsage, NO_USAGE, promptTokens } from '../../domain/usage.ts'
import type { UsageFilter, UsageTotals } from '../../domain/usage-filter.ts'
import type { UsageCursor } from '../../store/operations/usage-scan.ts'
import type { Store } from '../../store/store.ts'
import type { ManagementParts } from '../parts.ts'
import { countsObject, type usageStatSchema } from './usage-object.ts'
import { wholeDays } from './whole-days.ts'

/** Rows that one read of the store scans, so that other reads run in between. */
const BATCH_ROWS = 20_000
const MINUTE_MS = 60_000
/** Newest rows that are scanned for the last minute. */
const MAX_ROWS_OF_LAST_MINUTE = 100_000

interface Batch {
  readonly totals: UsageTotals
  readonly next: UsageCursor | null
}

const NO_TOTALS: UsageTotals = { requests: 0, quota: 0, usage: NO_USAGE }

/**
 * The usage of a period, and the current rate. Whole days (UTC) come from the daily sums, which are never
 * pruned; parts of a day, and single calls, from the rows of the log. The rate is of the minute before now,
 * whatever the period.
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
  // The daily sums know neither calls nor how these ended.
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
