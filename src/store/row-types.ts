import type { Generated, Selectable } from 'kysely'
import type { CHANNEL } from '../domain/records/channel.ts'
import type { Fields, FieldsWithDefault, Row } from '../domain/records/record.ts'
import type { REFUSAL } from '../domain/records/refusal.ts'
import type { TOKEN } from '../domain/records/token.ts'
import type { UsageColumns } from '../domain/records/usage-counts.ts'
import type { HoldRow, UsageLogRow } from '../domain/records/usage.ts'
import type { USER } from '../domain/records/user.ts'
import type { TABLES } from './tables.ts'

/**
 * The tables, which are the same in every database. Quota, seconds and milliseconds are 64-bit integers,
 * booleans are 1 and 0, and texts never contain NUL. The column for a group is called `group_name`, because
 * `group` is an SQL keyword.
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
 * Sums of the usage log, kept after the log's rows are removed: by half hour for `options.slot_days`, and by
 * day forever (`SUM_KINDS`). Sums by user and key have no causes
 * of failures and no histograms (`ROUTE_COLUMNS`). Only SQLite also has the tables `unsummed_calls` and
 * `sums_watermark`, which `GatheredSums` describes.
 */
interface UsageSumsTable extends UsageColumns {
  kind: number
  /** Number of the half hour or day in which the calls ended, counted from 1970-01-01, UTC. */
  start: number
  user_id: number
  token_id: number
  model: string
  channel: string
  group_name: string
  service_tier: string
  region: string
  /** Number of answered calls, as in `request_count` of a user. */
  requests: number
  /** Number of failed calls (`FAILED_REASONS`), including those that got a part of the response. */
  failed: number
  quota: number
}

export type StoredResponseRow = Selectable<Database['stored_responses']>

export type StoredSettingRow = Selectable<Database['stored_settings']>

/** A row of `declared_settings`: a setting in the configuration file. */
export type DeclaredRow = Selectable<Database['declared_settings']>

export type AuditLogRow = Selectable<Database['audit_log']>

type OtherTables = {
  readonly [Name in keyof typeof TABLES]: RowOf<(typeof TABLES)[Name]['columns']>
}

type RowOf<Columns> = { -readonly [Name in keyof Columns]: ColumnOf<Columns[Name]> }

/** Type of a column in TypeScript, from its format in `Table.columns`. */
type ColumnOf<Format> = Format extends `${infer Plain}?`
  ? ColumnOf<Plain> | null
  : Format extends 'id' | `${string} default ${string}`
    ? Generated<ValueOf<Format>>
    : ValueOf<Format>

type ValueOf<Format> = Format extends 'id' | `integer${string}` ? number : string

type ColumnsOf<F extends Fields> = Row<Omit<F, FieldsWithDefault<F>>> & {
  [Name in keyof Row<Pick<F, FieldsWithDefault<F>>>]: Generated<Row<Pick<F, FieldsWithDefault<F>>>[Name]>
}

/**
 * The table of a record, as SQL statements see it. Ids and columns with a default may be left out of an
 * insert.
 */
type TableOf<R> = R extends {
  readonly fields: infer F extends Fields
  readonly parts: infer P extends Fields
}
  ? ColumnsOf<F> & ColumnsOf<P>
  : never
