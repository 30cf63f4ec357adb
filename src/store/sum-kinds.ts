import { CACHE_BREAKS } from '../domain/cache-break.ts'
import { FAILED_REASONS } from '../domain/call-outcome.ts'
import { FAILURE_CAUSES } from '../domain/failure-cause.ts'
import { bucketOf } from '../domain/latency.ts'
import type { SettledCall } from '../domain/records/usage.ts'
import { addCounts, COUNT_COLUMNS } from './usage-row.ts'

/** Half an hour in milliseconds, the shortest time that a sum covers. */
export const SLOT_MS = 1_800_000

/** Number of half hours in a day (UTC). */
export const SLOTS_PER_DAY = 48

/** Columns of `usage_sums` by which sums are divided: model, channel, user and so on. */
export const DIMENSION_COLUMNS = [
  'user_id',
  'token_id',
  'model',
  'channel',
  'group_name',
  'service_tier',
  'region',
] as const

/** A column by which sums are divided. */
export type DimensionColumn = (typeof DIMENSION_COLUMNS)[number]

/** Values stored in those columns by which a kind of sums is not divided. */
export const NO_DIMENSION = {
  user_id: 0,
  token_id: 0,
  model: '',
  channel: '',
  group_name: '',
  service_tier: '',
  region: '',
} as const

/** Primary key of `usage_sums`. */
export const USAGE_SUMS_KEY = ['kind', 'start', ...DIMENSION_COLUMNS] as const

/** A kind of sums: by half hour or by day (UTC), and divided by some of the dimensions. */
export interface SumKind {
  readonly kind: number
  readonly unit: 'slot' | 'day'
  readonly name: string
  /** Dimensions by which the sums are divided. The other columns have the values of `NO_DIMENSION`. */
  readonly by: ReadonlySet<DimensionColumn>
}

const ACCOUNT: readonly DimensionColumn[] = ['user_id', 'token_id']
/** Dimensions that describe where a call was served: its model and channel, with tier and region. */
export const ROUTE_DIMENSIONS: readonly DimensionColumn[] = [
  'model',
  'channel',
  'group_name',
  'service_tier',
  'region',
]

/**
 * The kinds of sums in `usage_sums`. Each kind contains all calls. A query reads the smallest kind that has
 * the dimensions it needs. Only kinds that are not divided by user and key have `ROUTE_COLUMNS`, because the
 * others have the most rows.
 */
export const SUM_KINDS: readonly SumKind[] = [
  { kind: 1, unit: 'slot', name: 'slots', by: new Set([...ACCOUNT, ...ROUTE_DIMENSIONS]) },
  { kind: 2, unit: 'slot', name: 'slot_routes', by: new Set(ROUTE_DIMENSIONS) },
  { kind: 3, unit: 'day', name: 'days', by: new Set([...ACCOUNT, ...ROUTE_DIMENSIONS]) },
  { kind: 4, unit: 'day', name: 'day_routes', by: new Set(ROUTE_DIMENSIONS) },
  { kind: 5, unit: 'day', name: 'day_keys', by: new Set(ACCOUNT) },
]

/**
 * Returns the kind of sums with the fewest rows that is divided by these dimensions; `withRoutes` if
 * `ROUTE_COLUMNS` are needed, which sums by user or key do not have.
 */
export function smallestSumKind(
  unit: SumKind['unit'],
  by: Iterable<DimensionColumn>,
  { withRoutes = false }: { readonly withRoutes?: boolean } = {},
): SumKind {
  const needed = [...by]
  const fitting = SUM_KINDS.filter(
    (kind) =>
      kind.unit === unit &&
      needed.every((name) => kind.by.has(name)) &&
      (!withRoutes || hasRouteColumns(kind)),
  )
  const [smallest] = fitting.toSorted((one, other) => sizeOf(one) - sizeOf(other))
  if (!smallest) throw new Error('there are no such sums')
  return smallest
}

/** Whether sums of this kind have `ROUTE_COLUMNS`. In the others these are 0 or empty. */
export function hasRouteColumns({ by }: Pick<SumKind, 'by'>): boolean {
  return !by.has('token_id')
}

/**
 * Returns the values of the dimensions under which a call is added to the sums of a kind, in the order of
 * `DIMENSION_COLUMNS`.
 */
export function dimensionValuesOfCall(
  { by }: SumKind,
  values: Readonly<Record<DimensionColumn, string | number>>,
): (string | number)[] {
  return DIMENSION_COLUMNS.map((name) => (by.has(name) ? values[name] : NO_DIMENSION[name]))
}

// Sums that are divided by users and keys have the most rows.
const sizeOf = ({ by }: SumKind): number => by.size + (by.has('user_id') ? DIMENSION_COLUMNS.length : 0)

/**
 * Columns of the histograms of latencies, as texts of `serializeHistogram`: of the durations of whole calls,
 * and of the times to the first byte. Each has the column of the usage log, in milliseconds, that it counts.
 */
export const HISTOGRAM_COLUMNS = { total_latencies: 'duration_ms', first_latencies: 'first_byte_ms' } as const

export type HistogramColumn = keyof typeof HISTOGRAM_COLUMNS

/** The columns of both histograms. */
export const HISTOGRAMS = ['total_latencies', 'first_latencies'] as const satisfies HistogramColumn[]

/** Columns that count failed calls by cause. Failed calls without a cause ended because their client left. */
export const FAILURE_CAUSE_COLUMNS: readonly string[] = FAILURE_CAUSES.map((cause) => `failed_${cause}`)

/**
 * Column that counts failed calls without any part of a response. Such a call is not counted in `requests`.
 */
export const UNANSWERED_COLUMN = 'unanswered'

/** Columns that count the breaks of prompt caches by their reason, in the order of `CACHE_BREAKS`. */
export const CACHE_BREAK_COLUMNS: readonly string[] = CACHE_BREAKS.map((reason) => `break_${reason}`)

/** Columns that only sums without users and keys have. */
export const ROUTE_COLUMNS: readonly string[] = [...FAILURE_CAUSE_COLUMNS, ...HISTOGRAMS]

/** Columns of `usage_sums` that contain sums of numbers. */
export const SUM_COLUMNS: readonly string[] = [
  'requests',
  'failed',
  'quota',
  ...COUNT_COLUMNS,
  ...FAILURE_CAUSE_COLUMNS,
  UNANSWERED_COLUMN,
  'cache_saved',
  'cache_surcharge',
  ...CACHE_BREAK_COLUMNS,
  'hits',
  'hit_saved',
]

/**
 * Final reasons of calls whose response was complete. Only the durations of these calls are in the histogram.
 */
export const COMPLETE_REASONS = ['complete', 'estimated'] as const

const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)
const WHOLE: ReadonlySet<string> = new Set(COMPLETE_REASONS)

/** Values of a call that are added to sums. */
export type SummedCall = Pick<
  SettledCall,
  'delivered' | 'quota' | 'usage' | (typeof HISTOGRAM_COLUMNS)[HistogramColumn]
> & {
  readonly reason: string
  readonly cause?: string | undefined
  readonly cache_saved?: number | undefined
  readonly cache_surcharge?: number | undefined
  readonly cache_break?: string | undefined
  readonly cache?: string | undefined
  readonly hit_saved?: number | undefined
}

/** Adds a call to an array of sums, which are in the order of `SUM_COLUMNS`, without `ROUTE_COLUMNS`. */
export function addCallToSums(
  sums: number[],
  {
    delivered,
    reason,
    quota,
    usage,
    cache_saved = 0,
    cache_surcharge = 0,
    cache_break = '',
    cache = '',
    hit_saved = 0,
  }: SummedCall,
): void {
  if (delivered) sums[0]! += 1
  if (FAILED.has(reason)) {
    sums[1]! += 1
    if (!delivered) sums[UNANSWERED_AT]! += 1
  }
  sums[2]! += quota
  addCounts(sums, COUNTS_START, usage)
  sums[CACHE_AT]! += cache_saved
  sums[CACHE_AT + 1]! += cache_surcharge
  if (cache_break !== '') {
    const index = BREAKS.indexOf(cache_break)
    if (index !== -1) sums[BREAKS_START + index]! += 1
  }
  if (cache === 'hit') sums[HITS_AT]! += 1
  sums[HITS_AT + 1]! += hit_saved
}

/** Adds the cause of a failed call to an array of sums, which are in the order of `SUM_COLUMNS`. */
export function addCauseToSums(sums: number[], { reason, cause = '' }: SummedCall): void {
  if (cause === '' || !FAILED.has(reason)) return
  const index = CAUSES.indexOf(cause)
  if (index !== -1) sums[CAUSES_START + index]! += 1
}

/** Adds a call to its histograms, whose counts by bucket are in the order of `HISTOGRAMS`. */
export function addCallToHistograms(
  [total, first]: readonly [number[], number[]],
  {
    delivered,
    reason,
    duration_ms,
    first_byte_ms,
  }: Pick<SummedCall, 'delivered' | 'reason' | 'duration_ms' | 'first_byte_ms'>,
): void {
  if (WHOLE.has(reason)) total[bucketOf(duration_ms)]! += 1
  if (delivered && first_byte_ms !== null && first_byte_ms !== undefined) first[bucketOf(first_byte_ms)]! += 1
}

const COUNTS_START = 3
const CAUSES_START = COUNTS_START + COUNT_COLUMNS.length
const UNANSWERED_AT = CAUSES_START + FAILURE_CAUSE_COLUMNS.length
const CACHE_AT = UNANSWERED_AT + 1
const BREAKS_START = CACHE_AT + 2
const HITS_AT = BREAKS_START + CACHE_BREAK_COLUMNS.length
const CAUSES: readonly string[] = FAILURE_CAUSES
const BREAKS: readonly string[] = CACHE_BREAKS
