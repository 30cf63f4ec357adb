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
import { offsetOf, orderQuery, pageObject, type PageRequest } from '../page.ts'
import { calendarOf } from '../calendar-of.ts'
import { type ContentAgeServices, contentsInTime } from './content-age.ts'
import { type Cell, csvLine } from '../csv.ts'
import { idsFilter, namesFilter, textsFilter, unixSeconds, wholeNumber } from '../input-fields.ts'
import type { AdministrationServices, ManagementServices } from '../services.ts'

/** What reading the usage log needs. */
export type LogServices = ContentAgeServices & {
  readonly content: Pick<AdministrationServices['content'], 'find'>
}

/** Maximum milliseconds for which a list waits for the content log, which may be slow or unavailable. */
const FIND_MS = 1_000

/** Adds to each call the address and digest of its content, if the content log answers in time. */
export async function withContentState<Entry extends UsageEntry>(
  services: LogServices,
  entries: readonly Entry[],
): Promise<readonly (Entry & Pick<ShownCall, 'content'>)[]> {
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(late.resolve, FIND_MS, undefined)
  const finding = services.content.find(entries.map(({ id }) => id)).catch(() => undefined)
  const found = await Promise.race([finding, late.promise])
  clearTimeout(timer)
  if (!found || found.size === 0) return entries
  const groups = new Map(entries.map(({ id, group }) => [id, group]))
  const kept = await contentsInTime(services, [...found.values()], (id) => groups.get(id))
  const contents = new Map(kept.map((summary) => [summary.id, summary]))
  return entries.map((entry) => ({ ...entry, content: contents.get(entry.id) }))
}

/**
 * A page of the usage log, the newest calls first. `total` counts at most the newest 100,000 calls of the
 * period.
 */
export async function listUsage<Shown>(
  services: LogServices,
  filter: UsageFilter | null,
  page: PageRequest,
  shown: (entry: ShownCall) => Shown,
  { sort = 'created_at', order = 'desc' }: z.output<typeof callOrderQuery> = {},
) {
  if (!filter) return pageObject<Shown>(page, 0, [])
  const { total, entries } = await services.store.read('listUsage', {
    filter,
    offset: offsetOf(page),
    limit: page.pageSize,
    order: sort === 'created_at' && order === 'desc' ? undefined : { by: sort, isAscending: order === 'asc' },
  })
  return pageObject(page, total, (await withContentState(services, entries)).map(shown))
}

interface Batch {
  readonly entries: readonly UsageEntry[]
  readonly next: UsageCursor | null
}

/**
 * Number of rows that are read from the database at a time. It is small, to save memory and to let other
 * reads run in between.
 */
const BATCH_ROWS = 2_000

/**
 * The usage log as CSV, the newest calls first. It is yielded in pieces of whole lines, so that little is
 * buffered for a slow client.
 */
export async function* usageCsv<Shown extends Readonly<Record<string, Cell>>>(
  services: LogServices,
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
    const batch: Batch = await services.store.read('scanUsage', { filter, after, maxRows: BATCH_ROWS })
    for (const entry of await withContentState(services, batch.entries)) {
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

/** Query parameters for the order of a list of calls; descending by default. */
export const callOrderQuery = orderQuery(CALL_ORDERS)

/** What is needed to compute the columns of a CSV file. */
export interface CsvFormat {
  readonly calendar: Calendar
  /** Converts quota units to dollars, as a decimal. */
  readonly usdOf: (quota: number) => string
}

/**
 * The format of a CSV file whose times are in the time zone of the query. Throws if there is no such zone.
 */
export function csvFormat(
  { settings }: Pick<ManagementServices, 'settings'>,
  { tz = 'UTC' }: { readonly tz?: string | undefined },
): CsvFormat {
  const { options } = settings()
  const inUsd = { ...options, display: 'USD' } as const
  return { calendar: calendarOf(tz), usdOf: (quota) => decimalText(displayAmount(quota, inUsd)) }
}

/** The number that the API states as the type of every settled call. */
const CONSUMED = 2

/** Filters for a user's own calls, for lists and for sums. A call must match one value of each filter. */
export const ownCallFilters = {
  token_id: idsFilter(),
  token_name: textsFilter(),
  model_name: textsFilter(),
  group: textsFilter(),
  service_tier: textsFilter(),
  region: textsFilter(),
}

/** Filters for the calls of all users, both for lists and for sums. */
export const callFilters = {
  ...ownCallFilters,
  user_id: idsFilter(),
  username: textsFilter(),
  channel: textsFilter(),
  channel_id: idsFilter(),
}

const callFiltersSchema = z.object(callFilters)

/**
 * Converts the query parameters that filter calls to a filter for the database. With `userId`, only calls of
 * that user match.
 */
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
    // Some tiers have two names, such as `priority` and `fast`.
    service_tier: service_tier?.map((name) => tierName(name) ?? name),
    region,
  }
}

/**
 * Filters for a list of a user's own calls; `docs/api.md: Usage log`. Times are in Unix seconds; start and
 * end are included.
 */
export const ownUsageQuery = z.object({
  type: wholeNumber(),
  start_timestamp: unixSeconds(),
  end_timestamp: unixSeconds(),
  ...ownCallFilters,
  session: textsFilter(),
  batch: textsFilter(),
  cache_break: namesFilter(CACHE_BREAKS),
  request_id: textsFilter(),
  reason: textsFilter(),
  cause: namesFilter(FAILURE_CAUSES),
})

/** Filters for a list of the calls of all users. */
export const usageQuery = ownUsageQuery.extend(callFilters)

const zone = { tz: z.string().max(100, { error: 'expected at most 100 characters' }).optional() }

/** Query parameters for a CSV file with a user's own calls. */
export const ownExportQuery = ownUsageQuery.extend(zone)

/** Query parameters for a CSV file with the calls of all users. */
export const exportQuery = usageQuery.extend(zone)

/** Converts a query to a filter. With `userId`, only calls of that user match. Null if no call can match. */
export function usageFilterOfQuery(
  query: z.output<typeof usageQuery> | z.output<typeof ownUsageQuery>,
  userId?: number,
): UsageFilter | null {
  if ((query.type ?? 0) !== 0 && query.type !== CONSUMED) return null
  return {
    ...callFilterOf(query, userId),
    ...periodOfQuery(query),
    session: query.session,
    batch: query.batch,
    cache_break: query.cache_break,
    id: query.request_id,
    reasons: query.reason?.flatMap((reasons) => reasons.split(',')),
    causes: query.cause,
  }
}

/** The period of a query. An end of 0 counts as missing, because consoles of older gateways send it. */
export function periodOfQuery(query: {
  readonly start_timestamp?: number | undefined
  readonly end_timestamp?: number | undefined
}): Pick<UsageFilter, 'fromMs' | 'beforeMs'> {
  const { start_timestamp: start, end_timestamp: end } = query
  return { fromMs: start ? start * 1000 : undefined, beforeMs: end ? (end + 1) * 1000 : undefined }
}
