import type { Generated, Selectable } from 'kysely'
import type { CHANNEL } from '../domain/records/channel.ts'
import type { Fields, Filled, Row } from '../domain/records/record.ts'
import type { REFUSAL } from '../domain/records/refusal.ts'
import type { TOKEN } from '../domain/records/token.ts'
import type { UsageColumns } from '../domain/records/usage-counts.ts'
import type { HoldRow, UsageLogRow } from '../domain/records/usage.ts'
import type { USER } from '../domain/records/user.ts'

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
 * Sums of the usage log, kept after its rows are removed: by half hour for `options.slot_days`, and by day
 * forever (`SUM_KINDS`). The columns of the two latency histograms are not listed here; see
 * `LATENCY_COLUMNS`. Only SQLite has the additional table `unsummed_calls`, which `UsageSums` describes.
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
  /** Number of calls that failed, even if a part was answered: `FAILED_REASONS`. */
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
  /** 1 if a background call offered tools without a price. */
  price_incomplete: Generated<number>
  /** JSON of a background response's end, for the node that holds its quota; null before. */
  outcome: string | null
  /** JSON of the `StreamedPart`s of a background response; null if none was streamed. */
  streamed: string | null
}

/** Row of a stored response. */
export type StoredResponseRow = Selectable<StoredResponsesTable>

/** Row of a setting. */
export type StoredSettingRow = Selectable<StoredSettingsTable>

/** Signed parts of replies, for following turns in which the client returns the reply without them. */
interface KeptSignaturesTable {
  user_id: number
  /** HMAC of the owner and of what the client returns: the id of a tool call, or the text. */
  hash: string
  /** Encrypted JSON of the account and the parts. */
  content_cipher: string
  /** Time since which it is kept. */
  kept_ms: number
  expires_ms: number
}

/** Total size of what is kept for each user, updated in the transactions that change the rows. */
interface KeptSumsTable {
  user_id: number
  bytes: number
}

/** Parts of large kept contents; those without a row in `stored_responses` belong to no response. */
interface ResponsePartsTable {
  response_id: string
  part: number
  /** Time of the latest attempt to store it. */
  created_ms: number
  /** Encrypted text. */
  content_cipher: string
}

/** Accounts that can read encrypted reasoning. */
interface ReasoningOriginsTable {
  /** HMAC of the content and its owner. */
  hash: string
  channel: string
  key_tag: string
  expires_ms: number
}

/** Accounts of budgets, one for each period in which they were used. */
interface BudgetPeriodsTable {
  /** `BudgetName`. */
  account: string
  /** `BudgetOwner`. */
  owner: string
  /** The budget when it was last used, in quota units; 0 if unknown. */
  amount: number
  used: number
}

/** Budgets of which 80 % or 100 % were used, written by a trigger in the transaction that reached it. */
interface BudgetCrossingsTable {
  account: string
  /** 80 or 100; each once for each account. */
  percent: number
  amount: number
  used: number
}

/** Login sessions. */
interface SessionsTable {
  /** HMAC of the cookie's value. */
  id_hash: string
  user_id: number
  created_time: number
  expires_time: number
  /** Time of the latest request, to the minute; 0 if there was none since the session began. */
  last_used: number
  /** Client's address at the sign-in. */
  address: string
  /** Header `User-Agent` of the sign-in. */
  user_agent: string
  /** HMAC of the access token that began the session, which ends with it; null for other sign-ins. */
  access_token_hash: string | null
  /** Encrypted URL at which the identity provider ends its own session; null if it has none. */
  logout_cipher: string | null
}

/** Users by their identities at providers of OpenID Connect. */
interface IdentitiesTable {
  issuer: string
  /** Claim `sub`, which is unique at its issuer and never reassigned. */
  subject: string
  user_id: number
  created_time: number
}

/** States of completed sign-ins, so that none is used twice. */
interface UsedStatesTable {
  /** HMAC of the state. */
  hash: string
  expires_time: number
}

/** Tables of alerts. */
interface AlertTables {
  readonly alert_outbox: AlertOutboxTable
  readonly alert_thresholds: AlertThresholdsTable
  readonly alert_conditions: AlertConditionsTable
  readonly alert_sender: AlertSenderTable
  readonly low_quotas_told: LowQuotasToldTable
}

/**
 * Events that have not been delivered to receivers yet. A transaction that detects one adds a row without a
 * target.
 */
interface AlertOutboxTable {
  /** Id of the event, the same for all targets. */
  id: string
  /** Tag of the receiver; empty until the event is assigned to the receivers. */
  target: string
  type: string
  /** JSON of the event's data. */
  data: string
  created_ms: number
  /** Time of the next attempt; for an attempt under way, the time at which it counts as lost. */
  due_ms: number
  /** Time of the first attempt. */
  first_ms: number | null
  attempts: number
}

/** Thresholds of the events that the database itself detects; events without a row are not added. */
interface AlertThresholdsTable {
  type: string
  threshold: number
}

/** Conditions that some node has reported: a channel with an open circuit breaker, load shedding. */
interface AlertConditionsTable {
  name: string
  /** Time at which the condition is over, unless a node reports it again. */
  until_ms: number
}

/** Node that delivers the events of all nodes, in one row. */
interface AlertSenderTable {
  id: number
  node: string
  until_ms: number
}

/** Users for whose low quota an alert was added, and whose quota has not been above the threshold since. */
interface LowQuotasToldTable {
  user_id: number
}

type ColumnsOf<F extends Fields> = Row<Omit<F, Filled<F>>> & {
  [Name in keyof Row<Pick<F, Filled<F>>>]: Generated<Row<Pick<F, Filled<F>>>[Name]>
}

/** Table of a record, for statements. The database fills in the id, and columns that have a default. */
type TableOf<R> = R extends {
  readonly fields: infer F extends Fields
  readonly parts: infer P extends Fields
}
  ? ColumnsOf<F> & ColumnsOf<P>
  : never

/** Entries of the audit log, in the order of their ids; the database refuses to change them. */
export interface AuditLogTable {
  id: Generated<number>
  at_ms: number
  actor_id: number
  actor: string
  via: string
  address: string
  action: string
  object_kind: string
  object_id: number | null
  object_name: string
  /** JSON list of `FieldChange`. */
  changes: string
}

/** Row of the audit log. */
export type AuditLogRow = Selectable<AuditLogTable>

/** Settings that the configuration file declared when it was last read, kept to detect what changes. */
export interface DeclaredRow {
  kind: string
  name: string
  object_id: number | null
  /** JSON of the fields that are not secret. */
  fields: string
  /** JSON of the tags of the secret ones. */
  tags: string
}
