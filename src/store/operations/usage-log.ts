import { sql, type Expression, type ExpressionBuilder, type SqlBool } from 'kysely'
import type { AttemptEntry, CallExtraFacts } from '../../domain/call-detail.ts'
import { type CALL_ORDERS, USAGE, type UsageEntry, type UsageLogRow } from '../../domain/records/usage.ts'
import { type FilterValues, type UsageFilter, filterValueList } from '../../domain/usage-filter.ts'
import { usageFromRow } from '../usage-row.ts'
import { channelIds, presentChannelNames, withLoggedChannelNames } from './channel-names.ts'
import { type Db, inChunks } from './operation.ts'
import type { Database } from '../row-types.ts'
import { firstCallIdAt, MAX_CALL_MS, timeOfBatchId } from '../usage-id.ts'

/**
 * Maximum number of rows in one list: the newest of its period. To see older rows, choose a period that ends
 * earlier.
 */
export const MAX_LISTED_ROWS = 100_000

const ONE = sql`1`.as('one')

/** Whether any call was settled that the log still has. */
export async function hasCalls(db: Db): Promise<boolean> {
  return (await db.selectFrom('usage_log').select('id').limit(1).executeTakeFirst()) !== undefined
}

/**
 * Reads a page of the matching rows, starting with the call that ended last, and the number of matching rows
 * among the newest 100,000.
 */
export async function listUsage(
  db: Db,
  {
    filter,
    offset,
    limit,
    order,
    withTexts,
  }: {
    readonly filter: UsageFilter
    readonly offset: number
    readonly limit: number
    /** Whether the rows have the texts in `CALL_TEXTS` too; null otherwise. */
    readonly withTexts?: true
    /** Order of the rows; if not given, the call that ended last comes first. */
    readonly order?: CallOrder | undefined
  },
): Promise<{ readonly total: number; readonly entries: readonly UsageEntry[] }> {
  const scan = await resolveScanBounds(db, { filter, after: null, maxRows: MAX_LISTED_ROWS })
  if (!scan) return { total: 0, entries: [] }
  const all = selectMatchingCalls(db, scan)
  const { total } = await db
    .selectFrom(all.select(ONE).limit(MAX_LISTED_ROWS).as('listed'))
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const ordered = order
    ? orderedBy(all, order)
    : all.orderBy('ended_ms', 'desc').orderBy('usage_log.id', 'desc')
  const page = await ordered
    .select('usage_log.id')
    .offset(offset)
    .limit(Math.max(0, Math.min(limit, MAX_LISTED_ROWS - offset)))
    .execute()
  if (page.length === 0) return { total, entries: [] }
  // The ids are written into the statement, so that PostgreSQL reads only their partitions.
  const rows = await withNames(db, withTexts ? [] : CALL_TEXTS)
    .where(
      'usage_log.id',
      'in',
      page.map(({ id }) => id),
    )
    .orderBy('ended_ms', 'desc')
    .orderBy('usage_log.id', 'desc')
    .execute()
  const places = new Map(page.map(({ id }, place) => [id, place]))
  const sorted = order ? rows.toSorted((one, other) => places.get(one.id)! - places.get(other.id)!) : rows
  return { total, entries: await entriesFromRows(db, sorted) }
}

/**
 * An order of calls. Calls that have no value in the column come last; calls with equal values are ordered by
 * id.
 */
export interface CallOrder {
  readonly by: (typeof CALL_ORDERS)[number]
  readonly isAscending: boolean
}

function orderedBy(rows: RowsQuery, { by, isAscending }: CallOrder) {
  const direction = isAscending ? 'asc' : 'desc'
  const column = `usage_log.${by === 'created_at' ? 'ended_ms' : by}`
  return rows
    .orderBy(sql`${sql.ref(column)} is null`)
    .orderBy(sql.ref(column), direction)
    .orderBy('usage_log.id', direction)
}

type RowsQuery = ReturnType<typeof selectMatchingCalls>

/** A settled call with everything needed to explain its cost. */
export interface CallDetail {
  readonly entry: UsageEntry
  /** Attempts of the call; undefined if they were not recorded, because the first attempt succeeded. */
  readonly attempts: readonly AttemptEntry[] | undefined
  readonly particulars: CallExtraFacts
  /**
   * The prices of the call as JSON text (`PriceSet`); undefined for the estimated charge of a node that
   * stopped responding.
   */
  readonly priceSet: string | undefined
}

/** Reads a settled call; if `userId` is given, only of this user. Null if there is none. */
export async function callDetail(
  db: Db,
  { id, userId }: { readonly id: string; readonly userId?: number | undefined },
): Promise<CallDetail | null> {
  const { entries } = await listUsage(db, { filter: { id }, offset: 0, limit: 1, withTexts: true })
  const [entry] = entries
  if (!entry || (userId !== undefined && entry.user_id !== userId)) return null
  const set = await db
    .selectFrom('price_sets')
    .select('content')
    .where('version', '=', entry.price_version)
    .where('model', '=', entry.model)
    .where('group_name', '=', entry.group)
    .executeTakeFirst()
  return {
    entry,
    attempts: entry.attempts === null ? undefined : (JSON.parse(entry.attempts) as AttemptEntry[]),
    particulars: entry.particulars === null ? {} : (JSON.parse(entry.particulars) as CallExtraFacts),
    priceSet: set?.content,
  }
}

/** Reads the prices of several price versions, by model and group. */
export async function priceSets(
  db: Db,
  { versions }: { readonly versions: readonly string[] },
): Promise<
  readonly {
    readonly version: string
    readonly model: string
    readonly group: string
    readonly content: string
  }[]
> {
  return await db
    .selectFrom('price_sets')
    .select(['version', 'model', 'group_name as group', 'content'])
    .where('version', 'in', versions)
    .execute()
}

/**
 * Reads the matching rows of one scan, newest first, without the texts of `NOT_SCANNED`. `next` is the cursor for the next scan, or null at the
 * end of the log. It may be present even if no row matched, because a scan reads a limited number of rows.
 */
export async function scanUsage(
  db: Db,
  given: UsageScan,
): Promise<{ readonly entries: readonly UsageEntry[]; readonly next: UsageCursor | null }> {
  const scan = await resolveScanBounds(db, given)
  if (!scan) return { entries: [], next: null }
  let query = withNames(db, NOT_SCANNED)
    .where((eb) => withinScan(eb, scan))
    .where((eb) => matchesFilter(eb, scan.filter))
  if (scannedIndex(scan.filter)) query = query.orderBy('ended_ms', 'desc')
  const rows = await query.orderBy('usage_log.id', 'desc').execute()
  return { entries: await entriesFromRows(db, rows), next: scan.end }
}

/** Returns the bytes of all texts that `scanUsage` would read now. */
export async function bytesOfScan(db: Db, given: UsageScan): Promise<number> {
  const scan = await resolveScanBounds(db, given)
  const row =
    scan &&
    (await selectMatchingCalls(db, scan)
      .select(sql<number | null>`cast(sum(${SCANNED_BYTES}) as bigint)`.as('bytes'))
      .executeTakeFirst())
  return row?.bytes ?? 0
}

/** Texts of a row that may be long, and that lists do not show. */
const CALL_TEXTS = ['attempts', 'error', 'particulars'] as const
type CallText = (typeof CALL_TEXTS)[number]
const NOT_SCANNED: readonly CallText[] = ['attempts', 'error']

const COLUMNS = USAGE.columns.map(({ name }) => name as keyof UsageLogRow)
const SCANNED_BYTES = sql.join(
  USAGE.columns
    .filter(({ name, type }) => type.column === 'text' && !NOT_SCANNED.some((text) => text === name))
    .map(({ name }) => sql`coalesce(octet_length(${sql.ref(`usage_log.${name}`)}), 0)`),
  sql` + `,
)

/** Selects rows with the names of their users and API keys, including deleted ones; null for these texts. */
function withNames(db: Db, without: readonly CallText[]) {
  return db
    .selectFrom('usage_log')
    .innerJoin('users', 'users.id', 'usage_log.user_id')
    .innerJoin('tokens', 'tokens.id', 'usage_log.token_id')
    .select(
      COLUMNS.filter((name) => !without.some((text) => text === name)).map(
        (name) => `usage_log.${name}` as const,
      ),
    )
    .select(without.map((name) => sql<null>`null`.as(name)))
    .select(['users.username', 'tokens.name as token_name'])
}

/** Converts rows that `withNames` selects to entries of the usage log with the present names of channels. */
async function entriesFromRows(
  db: Db,
  rows: readonly (UsageLogRow & { readonly username: string; readonly token_name: string })[],
): Promise<UsageEntry[]> {
  const present = await presentChannelNames(db)
  const nameOf = (name: string): string => present.get(name) ?? name
  const idOf = await channelIds(db, { names: [...new Set(rows.map(({ channel }) => nameOf(channel)))] })
  return rows.map((row) => {
    const { username, token_name } = row
    const channel = nameOf(row.channel)
    const channel_id = channel === '' ? 0 : (idOf.get(channel) ?? 0)
    return { ...USAGE.fromRow(row), usage: usageFromRow(row), username, token_name, channel, channel_id }
  })
}

/** A row of the usage log at which a scan stopped. */
export interface UsageCursor {
  readonly id: string
  readonly ended_ms: number
}

/**
 * A scan of the usage log, newest first, over an index: of one session, one user, ids, or the ends of calls.
 */
export interface UsageScan {
  readonly filter: UsageFilter
  /** The scan begins after this row; null to begin with the newest row. */
  readonly after: UsageCursor | null
  /** Maximum number of rows to read, matching or not. This limits the time of one operation. */
  readonly maxRows: number
}

/** A scan whose last row has been determined. */
interface BoundedScan extends UsageScan {
  /** Last row of the scan; null if it reaches the end of the log. */
  readonly end: UsageCursor | null
}

type Rows = ExpressionBuilder<Pick<Database, 'tokens' | 'usage_log'>, 'usage_log'>

/**
 * Determines the last row of a scan, and the user's id if the filter has a username. Null if that user is
 * unknown.
 */
export async function resolveScanBounds(db: Db, scan: UsageScan): Promise<BoundedScan | null> {
  const filter = await resolveFilterNames(db, scan.filter)
  if (!filter) return null
  const open: BoundedScan = { ...scan, filter, end: null }
  let query = db
    .selectFrom('usage_log')
    .select(['id', 'ended_ms'])
    .where((eb) => withinScan(eb, open))
    .offset(scan.maxRows - 1)
    .limit(1)
  if (scannedIndex(filter)) query = query.orderBy('ended_ms', 'desc')
  const end = await query.orderBy('id', 'desc').executeTakeFirst()
  return { ...open, end: end ? { id: end.id, ended_ms: end.ended_ms } : null }
}

export function selectMatchingCalls(db: Db, scan: BoundedScan) {
  return db
    .selectFrom('usage_log')
    .where((eb) => withinScan(eb, scan))
    .where((eb) => matchesFilter(eb, scan.filter))
}

/**
 * Replaces the usernames in a filter by user ids, because the index has ids. A single id is returned as a
 * number. Null if no user can match.
 */
export async function withUserIds<Filter extends Pick<UsageFilter, 'user_id' | 'username'>>(
  db: Db,
  filter: Filter,
): Promise<(Filter & { readonly user_id?: FilterValues<number> | undefined }) | null> {
  const { user_id: given, username } = filter
  const wanted = given === undefined ? undefined : filterValueList(given)
  if (username === undefined) return wanted ? { ...filter, user_id: oneOrMore(wanted) } : filter
  const named = await db
    .selectFrom('users')
    .select('id')
    .where('username', 'in', filterValueList(username))
    .execute()
  const ids = named.map(({ id }) => id).filter((id) => wanted?.includes(id) ?? true)
  return ids.length > 0 ? { ...filter, user_id: oneOrMore(ids) } : null
}

/**
 * Replaces usernames and channels in a filter by what the usage log contains; null if there is no such user
 * or channel.
 */
export async function resolveFilterNames(db: Db, filter: UsageFilter): Promise<UsageFilter | null> {
  const ofUser = await withUserIds(db, filter)
  return ofUser && withLoggedChannelNames(db, ofUser)
}

const oneOrMore = (ids: readonly number[]): FilterValues<number> => {
  const [first] = ids
  return ids.length === 1 && first !== undefined ? first : ids
}

/**
 * The index in which the scan reads calls by their ends: that of a single user or session, or that of all
 * calls. Undefined if the calls are selected by their ids.
 */
function scannedIndex({
  id,
  user_id: userId,
  session,
  batch,
}: UsageFilter):
  | { readonly column: 'user_id'; readonly value: number }
  | { readonly column: 'session'; readonly value: string }
  | { readonly column: 'ended_ms' }
  | undefined {
  const sessions = session === undefined ? [] : filterValueList(session)
  const [value] = sessions
  if (value !== undefined && sessions.length === 1) return { column: 'session', value }
  if (typeof userId === 'number') return { column: 'user_id', value: userId }
  return id === undefined && timesOfBatches(batch).length === 0 ? { column: 'ended_ms' } : undefined
}

/** The times in the ids of batches, which the ids of their calls have too; none if a text is not such an id. */
function timesOfBatches(batch: UsageFilter['batch']): readonly number[] {
  const times = (batch === undefined ? [] : filterValueList(batch)).map(timeOfBatchId)
  return times.every(Number.isSafeInteger) ? times : []
}

/**
 * SQL condition for the index that is used: `usage_log_by_session`, `usage_log_by_user`, `usage_log_by_end` or the
 * primary key. A range has only one limit on each side, because SQLite would use the first of two limits and
 * read all rows up to the other. A cursor is always closer than the filter's time.
 */
function withinScan(eb: Rows, scan: BoundedScan): Expression<SqlBool> {
  const { filter, after, end } = scan
  const { fromMs, beforeMs } = filter
  const index = scannedIndex(filter)
  if (!index) return withinIds(eb, scan)
  const bounds: Expression<SqlBool>[] = [withinIds(eb, scan)]
  if (index.column !== 'ended_ms') bounds.push(eb(`usage_log.${index.column}`, '=', index.value))
  // This condition is needed to use the index, which contains only rows with a session.
  if (index.column === 'session') bounds.push(eb('usage_log.session', '<>', sql.lit('')))
  if (after) bounds.push(eb('usage_log.ended_ms', '<=', after.ended_ms), pastCursor(eb, '<', after))
  else if (beforeMs !== undefined) bounds.push(eb('usage_log.ended_ms', '<', beforeMs))
  if (end)
    bounds.push(
      eb('usage_log.ended_ms', '>=', end.ended_ms),
      eb.or([eb('usage_log.id', '=', end.id), pastCursor(eb, '>', end)]),
    )
  else if (fromMs !== undefined) bounds.push(eb('usage_log.ended_ms', '>=', fromMs))
  return eb.and(bounds)
}

/**
 * SQL condition on the ids of a scan, from which PostgreSQL determines the partitions to read. In a scan by
 * the ends of calls, SQLite must not choose the primary key because of it, and does not for a negation.
 */
function withinIds(eb: Rows, { filter, after, end }: BoundedScan): Expression<SqlBool> {
  const { id, batch } = filter
  const times = timesOfBatches(batch)
  const { fromMs, beforeMs } = times.length > 0 ? {} : filter
  const bounds: Expression<SqlBool>[] = []
  // Of several limits on a side, SQLite would use the first one.
  let first = times.length > 0 ? firstCallIdAt(Math.min(...times)) : ''
  let limit = times.length > 0 ? firstCallIdAt(Math.max(...times) + 1) : undefined
  if (typeof id === 'string') bounds.push(eb('usage_log.id', '=', id))
  else if (id !== undefined) bounds.push(eb('usage_log.id', 'in', id))
  if (scannedIndex(filter)) {
    if (fromMs !== undefined)
      bounds.push(eb.not(eb('usage_log.id', '<', firstCallIdAt(fromMs - MAX_CALL_MS))))
    if (beforeMs !== undefined) bounds.push(eb.not(eb('usage_log.id', '>=', firstCallIdAt(beforeMs))))
  } else {
    if (end && end.id > first) first = end.id
    if (after && (limit === undefined || after.id < limit)) limit = after.id
  }
  if (first !== '') bounds.push(eb('usage_log.id', '>=', first))
  if (limit !== undefined) bounds.push(eb('usage_log.id', '<', limit))
  return eb.and(bounds)
}

// Calls that ended at the same time are ordered by id.
function pastCursor(eb: Rows, side: '<' | '>', { id, ended_ms: endedMs }: UsageCursor): Expression<SqlBool> {
  return eb.or([eb('usage_log.ended_ms', side, endedMs), eb('usage_log.id', side, id)])
}

/** SQL condition for the parts of the filter that the index does not cover. */
function matchesFilter(eb: Rows, filter: UsageFilter): Expression<SqlBool> {
  const { user_id: users, fromMs, beforeMs, token_id, token_name, model, channel, group } = filter
  const { service_tier: tier, region, reasons, causes, session, batch, cache_break: broke } = filter
  const index = scannedIndex(filter)
  const wanted: Expression<SqlBool>[] = []
  // The plus sign makes SQLite use the index of sessions, whose rows are fewer, or that of ends, whose order is
  // that of the scan, instead of that of users.
  if (users !== undefined && index?.column !== 'user_id')
    wanted.push(eb(sql<number>`${sql.raw(index ? '+' : '')}usage_log.user_id`, 'in', filterValueList(users)))
  if (session !== undefined && index?.column !== 'session')
    wanted.push(eb('usage_log.session', 'in', filterValueList(session)))
  if (batch !== undefined) wanted.push(eb('batch', 'in', filterValueList(batch)))
  // An index of ends already selects the rows by time; with ids, the plus sign makes SQLite use the primary key.
  const ended = sql<number>`+usage_log.ended_ms`
  if (!index && fromMs !== undefined) wanted.push(eb(ended, '>=', fromMs))
  if (!index && beforeMs !== undefined) wanted.push(eb(ended, '<', beforeMs))
  if (token_name !== undefined)
    wanted.push(
      eb(
        'token_id',
        'in',
        eb.selectFrom('tokens').select('tokens.id').where('tokens.name', 'in', filterValueList(token_name)),
      ),
    )
  if (token_id !== undefined) wanted.push(eb('token_id', 'in', filterValueList(token_id)))
  if (model !== undefined) wanted.push(eb('model', 'in', filterValueList(model)))
  if (channel !== undefined) wanted.push(eb('channel', 'in', filterValueList(channel)))
  if (group !== undefined) wanted.push(eb('usage_log.group_name', 'in', filterValueList(group)))
  if (tier !== undefined) wanted.push(eb('service_tier', 'in', filterValueList(tier)))
  if (region !== undefined) wanted.push(eb('region', 'in', filterValueList(region)))
  if (reasons !== undefined) wanted.push(eb('reason', 'in', reasons))
  if (causes !== undefined) wanted.push(eb('cause', 'in', causes))
  if (broke !== undefined) wanted.push(eb('cache_break', 'in', filterValueList(broke)))
  return eb.and(wanted)
}

/** Which of the calls with these ids are settled. */
export async function settledCalls(db: Db, { ids }: { readonly ids: readonly string[] }): Promise<string[]> {
  const select = (some: readonly string[]) =>
    db.selectFrom('usage_log').select('id').where('id', 'in', some).execute()
  return (await inChunks(ids, select)).map(({ id }) => id)
}
