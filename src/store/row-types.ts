import type { Generated, Selectable } from 'kysely'
import type { CHANNEL } from '../domain/records/channel.ts'
import type { Fields, FilledFields, Row } from '../domain/records/record.ts'
import type { REFUSAL } from '../domain/records/refusal.ts'
import type { TOKEN } from '../domain/records/token.ts'
import type { UsageColumns } from '../domain/records/usage-counts.ts'
import type { HoldRow, UsageLogRow } from '../domain/records/usage.ts'
import type { USER } from '../domain/records/user.ts'
import type { TABLES } from './tables.ts'

/**
 * Tables, the same on every database. Quota, seconds and milliseconds are 64-bit integers, booleans are 1 and
 * 0, and text never contains NUL. The column of a group is `group_name`, because `group` is an SQL keyword.
 */
export interface Database extends OtherTables {
  readonly users: TableOf<typeof USER>
  readonly tokens: TableOf<typeof TOKEN>
  readonly channels: TableOf<typeof CHANNEL>
  readonly holds: HoldRow
  readonly usage_log: UsageLogRow
  readonly usage_sums: UsageSumsTable
  readonly usage_refusals: TableOf<typeof REFUSAL>
}

/**
 * Sums of the usage log, kept after its rows are removed: by half hour for `options.slot_days`, and by day
 * forever (`SUM_KINDS`). The columns of the two latency histograms are not listed here; see
 * `LATENCY_COLUMNS`. Only SQLite has the additional table `unsummed_calls`, which `DeferredSums` describes.
 */
interface UsageSumsTable extends UsageColumns {
  kind: number
  /** Half hour or day in which the calls ended, since 1970-01-01, UTC. */
  start: number
  user_id: number
  token_id: number
  model: string
  channel: string
  group_name: string
  service_tier: string
  region: string
  /** Number of calls that were answered, as in `request_count` of a user. */
  requests: number
  /** Number of calls that failed, even if a part was answered: `FAILED_REASONS`. */
  failed: number
  quota: number
}

/** Row of a stored response. */
export type StoredResponseRow = Selectable<Database['stored_responses']>

/** Row of a setting. */
export type StoredSettingRow = Selectable<Database['stored_settings']>

/** Row of a setting that the configuration file declares. */
export type DeclaredRow = Selectable<Database['declared_settings']>

/** Row of the audit log. */
export type AuditLogRow = Selectable<Database['audit_log']>

type OtherTables = {
  readonly [Name in keyof typeof TABLES]: RowOf<(typeof TABLES)[Name]['columns']>
}

type RowOf<Columns> = { -readonly [Name in keyof Columns]: ColumnOf<Columns[Name]> }

/** Type of a column, by its format in `Table.columns`. */
type ColumnOf<Format> = Format extends `${infer Plain}?`
  ? ColumnOf<Plain> | null
  : Format extends 'id' | `${string} default ${string}`
    ? Generated<ValueOf<Format>>
    : ValueOf<Format>

type ValueOf<Format> = Format extends 'id' | `integer${string}` ? number : string

type ColumnsOf<F extends Fields> = Row<Omit<F, FilledFields<F>>> & {
  [Name in keyof Row<Pick<F, FilledFields<F>>>]: Generated<Row<Pick<F, FilledFields<F>>>[Name]>
}

/** Table of a record, for statements. The database fills in the id, and columns that have a default. */
type TableOf<R> = R extends {
  readonly fields: infer F extends Fields
  readonly parts: infer P extends Fields
}
  ? ColumnsOf<F> & ColumnsOf<P>
  : never
