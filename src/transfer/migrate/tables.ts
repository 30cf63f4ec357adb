import { REFUSAL_KEY_COLUMNS } from '../../domain/records/refusal.ts'
import { USAGE_SUMS_KEY } from '../../store/sum-kinds.ts'

/** Table that `sluice migrate` copies. */
export interface CopiedTable {
  readonly name: string
  /** Columns of the primary key. */
  readonly key: readonly string[]
  /**
   * Number of rows that are read, written and compared at a time; below 1000 with several columns in the key, as SQLite
   * nests conditions of them no deeper.
   */
  readonly batchSize: number
}

/** The tables to copy. Their order ensures that a row is copied after the rows it references. */
export const COPIED_TABLES: readonly CopiedTable[] = Object.freeze([
  { name: 'users', key: ['id'], batchSize: 1000 },
  { name: 'tokens', key: ['id'], batchSize: 1000 },
  { name: 'channels', key: ['id'], batchSize: 1000 },
  { name: 'former_channel_names', key: ['name'], batchSize: 1000 },
  { name: 'secret_state', key: ['id'], batchSize: 1 },
  { name: 'stored_settings', key: ['section', 'name'], batchSize: 200 },
  { name: 'declared_settings', key: ['kind', 'name'], batchSize: 200 },
  { name: 'audit_log', key: ['id'], batchSize: 1000 },
  { name: 'sessions', key: ['id_hash'], batchSize: 1000 },
  { name: 'identities', key: ['issuer', 'subject'], batchSize: 500 },
  { name: 'used_states', key: ['hash'], batchSize: 1000 },
  { name: 'invitations', key: ['id'], batchSize: 1000 },
  { name: 'stored_responses', key: ['id'], batchSize: 100 },
  { name: 'reasoning_origins', key: ['hash'], batchSize: 1000 },
  { name: 'kept', key: ['kind', 'key'], batchSize: 20 },
  { name: 'kept_parts', key: ['content_id', 'part'], batchSize: 8 },
  { name: 'kept_sums', key: ['user_id', 'share'], batchSize: 500 },
  { name: 'idempotent_calls', key: ['lookup'], batchSize: 1000 },
  { name: 'model_ends', key: ['source', 'model'], batchSize: 500 },
  { name: 'model_endings_told', key: ['model'], batchSize: 1000 },
  { name: 'low_quotas_told', key: ['user_id'], batchSize: 1000 },
  { name: 'alert_outbox', key: ['target', 'id'], batchSize: 500 },
  { name: 'alert_conditions', key: ['name'], batchSize: 1000 },
  // Copied before `budget_periods`: inserting into that table adds missing rows to this one by a trigger.
  { name: 'budget_crossings', key: ['account', 'percent'], batchSize: 500 },
  { name: 'budget_periods', key: ['account'], batchSize: 1000 },
  { name: 'usage_log', key: ['id'], batchSize: 1000 },
  { name: 'price_sets', key: ['version', 'model', 'group_name'], batchSize: 100 },
  // Smaller batches, because the key has many columns and makes long conditions.
  { name: 'usage_sums', key: USAGE_SUMS_KEY, batchSize: 100 },
  { name: 'refused_calls', key: ['id'], batchSize: 1000 },
  { name: 'usage_refusals', key: REFUSAL_KEY_COLUMNS, batchSize: 100 },
])

/**
 * Tables that are not copied. Holds are settled before the copy, the target has its own identity, a start writes the
 * thresholds of alerts and the secrets of its node, the sender of alerts is a process that has ended, and removals of
 * answers matter only to calls that are running.
 */
export const TABLES_NOT_COPIED: readonly string[] = Object.freeze([
  'alert_sender',
  'alert_thresholds',
  'answer_removals',
  'holds',
  'node_secrets',
  'store_identity',
])
