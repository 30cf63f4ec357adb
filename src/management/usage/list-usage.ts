import { z } from 'zod'
import { tierName } from '@sluice/wire/service-tier'
import type { Calendar } from '../../domain/calendar.ts'
import { CACHE_BREAKS } from '../../domain/cache-break.ts'
import { STATUS_WORDS } from '../../domain/call-outcome.ts'
import { decimalText } from '../../domain/decimal.ts'
import { displayAmount } from '../../domain/display-amount.ts'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import { CALL_ORDERS, type ShownCall, type UsageEntry } from '../../domain/records/usage.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import { offsetOf, orderQuery, pageObject, type Page } from '../page.ts'
import { calendarOf } from '../calendar-of.ts'
import { type Cell, csvLine } from '../csv.ts'
import { idsFilter, namesFilter, textsFilter, wholeNumber } from '../input-fields.ts'
import type { AdministrationServices, ManagementServices } from '../services.ts'

/** Services that read the usage log. */
export type LogServices = Pick<AdministrationServices, 'store' | 'content'>

/** Time for which rows wait for the content log, which may be slow or away. */
const FIND_MS = 1_000

/** Rows with what the content log keeps of their calls; without it if the log does not say so in time. */
export async function withContent<Entry extends UsageEntry>(
  content: LogServices['content'],
  entries: readonly Entry[],
): Promise<readonly (Entry & Pick<ShownCall, 'content'>)[]> {
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(late.resolve, FIND_MS, undefined)
  const finding = content.find(entries.map(({ id }) => id)).catch(() => undefined)
  const found = await Promise.race([finding, late.promise])
  clearTimeout(timer)
  return !found || found.size === 0
    ? entries
    : entries.map((entry) => ({ ...entry, content: found.get(entry.id) }))
}

/** A page of the usage log, newest first. `total` counts at most the newest 100,000 rows of the period. */
export async function listUsage<Shown>(
  { store, content }: LogServices,
  filter: UsageFilter | null,
  page: Page,
  shown: (entry: ShownCall) => Shown,
  { sort = 'created_at', order = 'desc' }: z.output<typeof callOrderQuery> = {},
) {
  if (!filter) return pageObject<Shown>(page, 0, [])
  const { total, entries } = await store.read('listUsage', {
    filter,
    offset: offsetOf(page),
    limit: page.pageSize,
    order: sort === 'created_at' && order === 'desc' ? undefined : { by: sort, isAscending: order === 'asc' },
  })
  return pageObject(page, total, (await withContent(content, entries)).map(shown))
}

interface Batch {
  readonly entries: readonly UsageEntry[]
  readonly next: UsageCursor | null
}

/**
 * Number of rows scanned by one read of the store, small enough for memory and to let other reads run in
 * between.
 */
const BATCH_ROWS = 2_000

/**
 * The usage log as CSV, newest first, in pieces of whole lines. For a slow client at most one piece is
 * buffered.
 */
export async function* usageCsv<Shown extends Readonly<Record<string, Cell>>>(
  { store, content }: LogServices,
  filter: UsageFilter | null,
  columns: readonly (keyof Shown & string)[],
  shown: (entry: ShownCall) => Shown,
  { calendar, usdOf }: CsvFormat,
): AsyncGenerator<string, void, undefined> {
  const header = csvLine([...columns, 'time', 'cost_usd', 'status'])
  if (!filter) return yield header
  let piece = header
  let after: UsageCursor | null = null
  do {
    const batch: Batch = await store.read('scanUsage', { filter, after, maxRows: BATCH_ROWS })
    for (const entry of await withContent(content, batch.entries)) {
      const row = shown(entry)
      const { ended_ms, quota, reason } = entry
      const more = [calendar.format(ended_ms), usdOf(quota), STATUS_WORDS[reason]]
      piece += csvLine([...columns.map((column) => row[column] ?? null), ...more])
    }
    if (piece !== '') yield piece
    piece = ''
    after = batch.next
  } while (after)
}

/** The order of a list of calls: descending unless given. */
export const callOrderQuery = orderQuery(CALL_ORDERS)

/** How the columns of a file are computed. */
interface CsvFormat {
  readonly calendar: Calendar
  readonly usdOf: (quota: number) => string
}

/** The format of a file with times in the zone of its query. Throws if there is no such zone. */
export function csvFormat(
  { settings }: Pick<ManagementServices, 'settings'>,
  { tz = 'UTC' }: { readonly tz?: string | undefined },
): CsvFormat {
  const { options } = settings()
  const inUsd = { ...options, display: 'USD' } as const
  return { calendar: calendarOf(tz), usdOf: (quota) => decimalText(displayAmount(quota, inUsd)) }
}

/** The type of all rows in the log: a settled call. */
const CONSUMED = 2

/** Filters that rows and sums of a user's own calls have in common; a call matches one value of each. */
export const ownCallFilters = {
  token_id: idsFilter(),
  token_name: textsFilter(),
  model_name: textsFilter(),
  group: textsFilter(),
  service_tier: textsFilter(),
  region: textsFilter(),
}

/** Filters that rows and sums of all calls have in common. */
export const callFilters = {
  ...ownCallFilters,
  user_id: idsFilter(),
  username: textsFilter(),
  channel: textsFilter(),
  channel_id: idsFilter(),
}

const callFiltersSchema = z.object(callFilters)

/** Converts the common filters; with `userId`, for the calls of that user only. */
export function callFilterOf(
  query: Partial<z.output<typeof callFiltersSchema>>,
  userId?: number,
): UsageFilter {
  const { user_id, model_name: model, ...others } = query
  const { username, channel, channel_id, token_id, token_name, group, service_tier, region } = others
  return {
    user_id: userId ?? user_id,
    username,
    channel,
    channel_id,
    token_id,
    token_name,
    model,
    group,
    // `priority` and `default` are other names of tiers.
    service_tier: service_tier?.map((name) => tierName(name) ?? name),
    region,
  }
}

/** The filters of a user's own rows; `docs/api.md: Usage log`. Times are Unix seconds, both inclusive. */
export const ownUsageQuery = z.object({
  type: wholeNumber(),
  start_timestamp: wholeNumber(),
  end_timestamp: wholeNumber(),
  ...ownCallFilters,
  session: textsFilter(),
  cache_break: namesFilter(CACHE_BREAKS),
  request_id: textsFilter(),
  reason: textsFilter(),
  cause: namesFilter(FAILURE_CAUSES),
})

/** The filters of all rows. */
export const usageQuery = ownUsageQuery.extend(callFilters)

const zone = { tz: z.string().max(100, { error: 'expected at most 100 characters' }).optional() }

/** The query for a file of a user's own calls. */
export const ownExportQuery = ownUsageQuery.extend(zone)

/** The query for a file of all calls. */
export const exportQuery = usageQuery.extend(zone)

/** Converts a query to a filter; with `userId`, for the rows of that user only. Null if no row can match. */
export function filterOf(
  query: z.output<typeof usageQuery> | z.output<typeof ownUsageQuery>,
  userId?: number,
): UsageFilter | null {
  if ((query.type ?? 0) !== 0 && query.type !== CONSUMED) return null
  return {
    ...callFilterOf(query, userId),
    ...timesOf(query),
    session: query.session,
    cache_break: query.cache_break,
    id: query.request_id,
    reasons: query.reason?.flatMap((reasons) => reasons.split(',')),
    causes: query.cause,
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
