import type { Generated, Selectable } from 'kysely'
import type { CHANNEL } from '../domain/records/channel.ts'
import type { REFUSAL } from '../domain/records/refusal.ts'
import type { USER } from '../domain/records/user.ts'
import type { TOKEN } from '../domain/records/token.ts'
import type { HoldRow, UsageLogRow } from '../domain/records/usage.ts'
import type { UsageColumns } from '../domain/records/usage-counts.ts'
import type { TableOf } from './record-table.ts'
import type { AlertTables } from './alert-tables.ts'
import type { AuditLogTable, DeclaredRow } from './audit-table.ts'
import type { BudgetCrossingsTable, BudgetPeriodsTable } from './budget-tables.ts'
import type { ReasoningOriginsTable, ResponsePartsTable } from './response-tables.ts'
import type { IdentitiesTable, SessionsTable, UsedStatesTable } from './sign-in-tables.ts'
import type { KeptSignaturesTable, KeptSumsTable } from './kept-tables.ts'

/**
 * Tables, the same on every database. Quota, seconds and milliseconds are 64-bit integers, booleans are 1 and
 * 0, and text never contains NUL. The column of a group is `group_name`, because `group` is an SQL keyword.
 */
export interface Database extends AlertTables {
  readonly users: TableOf<typeof USER>
  readonly audit_log: AuditLogTable
  readonly declared_settings: DeclaredRow
  readonly tokens: TableOf<typeof TOKEN>
  readonly holds: HoldRow
  readonly usage_log: UsageLogRow
  readonly usage_sums: UsageSumsTable
  readonly usage_refusals: TableOf<typeof REFUSAL>
  readonly price_sets: PriceSetsTable
  readonly sessions: SessionsTable
  readonly identities: IdentitiesTable
  readonly used_states: UsedStatesTable
  readonly channels: TableOf<typeof CHANNEL>
  readonly stored_settings: StoredSettingsTable
  readonly store_identity: StoreIdentityTable
  readonly stored_responses: StoredResponsesTable
  readonly reasoning_origins: ReasoningOriginsTable
  readonly kept_signatures: KeptSignaturesTable
  readonly kept_sums: KeptSumsTable
  readonly response_parts: ResponsePartsTable
  readonly budget_periods: BudgetPeriodsTable
  readonly budget_crossings: BudgetCrossingsTable
}

/** Prices of a model in a group by version, written once: `priceSetText`. */
interface PriceSetsTable {
  version: string
  model: string
  group_name: string
  content: string
}

/**
 * Sums of the usage log, kept after its rows are removed: by half hours for `options.slot_days`, and by days
 * for ever (`SUM_KINDS`). The columns of the two histograms of latencies are not listed here:
 * `LATENCY_COLUMNS`. SQLite alone has `unsummed_calls` beside it, which `UsageSums` describes.
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
  /** Number of calls that were answered, as in `request_count` of a user. */
  requests: number
  /** Number of calls that failed, whether or not a part was answered: `FAILED_REASONS`. */
  failed: number
  quota: number
}

/** Settings made over HTTP, one row per entry of a section. */
interface StoredSettingsTable {
  /** Section of gateway.yaml (`options` or `groups`), or `ratios`, the model prices set over HTTP. */
  section: string
  name: string
  /** JSON as in gateway.yaml; of `ratios`, a mapping to decimals as texts. */
  value: string
}

/** Identity of the database, in one row. */
interface StoreIdentityTable {
  id: number
  /** Check value of the secret that this database was made with. */
  key_check: string
}

/** Responses by the ids that the gateway issued: `StoredResponse`. */
interface StoredResponsesTable {
  id: string
  user_id: number
  model: string
  group_name: string
  channel: string
  key_tag: string
  upstream_id: string
  tokens: number
  previous_id: string | null
  created_ms: number
  expires_ms: number
  /** Encrypted JSON of `StoredContent` or `ContentParts`; null for a native response. */
  content_cipher: string | null
  /** Bytes of the content as texts; null for a native response. */
  kept_bytes: number | null
  call_id: string | null
  /** Prices of a background call, as `priceSetText` writes them. */
  rate: string | null
  /** 1 where a background call offered tools without a price. */
  price_incomplete: Generated<number>
  /** JSON of a background response's end, for the node that holds its quota; null before. */
  outcome: string | null
  /** JSON of the `StreamedPart`s of a background response; null = none was streamed. */
  streamed: string | null
}

/** Row of a stored response. */
export type StoredResponseRow = Selectable<StoredResponsesTable>

/** Row of a setting. */
export type StoredSettingRow = Selectable<StoredSettingsTable>
