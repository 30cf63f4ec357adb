/**
 * Tables of sums for series, and of refused calls, the same on every database. SQLite alone has
 * `unsummed_calls`, which `SeriesSums` describes.
 */
export interface SeriesTables {
  readonly usage_slots: UsageSlotsTable
  readonly usage_slot_routes: Omit<UsageSlotsTable, 'user_id' | 'token_id'>
  readonly usage_day_routes: Omit<UsageSlotsTable, 'slot' | 'user_id' | 'token_id'> & DayColumn
  readonly usage_day_keys: Omit<UsageSlotsTable, 'slot' | 'model' | 'channel' | 'group_name'> & DayColumn
  readonly usage_refusals: UsageRefusalsTable
}

interface DayColumn {
  /** Days since 1970-01-01, UTC. */
  day: number
}

/**
 * Sums of the usage log for series, kept for `options.slot_days`. The same sums without users and API keys,
 * and by days, are in tables of their own (`POINT_TABLES`); those by days are kept for ever. The columns of
 * the two histograms of latencies are not listed here: `LATENCY_COLUMNS`.
 */
interface UsageSlotsTable {
  /** Half hour in which the calls ended: half hours since 1970-01-01, UTC. */
  slot: number
  user_id: number
  token_id: number
  model: string
  channel: string
  group_name: string
  /** Number of calls that were answered. */
  requests: number
  failed: number
  quota: number
  input_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  output_tokens: number
  reasoning_tokens: number
}

/** Counters of refused calls, kept as long as the half hours of `usage_slots`. */
interface UsageRefusalsTable {
  slot: number
  /** Code of the error that the client got. */
  code: string
  /** 0 = the call had no valid key, or counts together with those of other keys. */
  user_id: number
  token_id: number
  calls: number
}
