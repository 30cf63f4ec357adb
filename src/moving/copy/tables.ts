/** A table that is copied from one database of ours to another, row by row. */
export interface CopiedTable {
  readonly name: string
  /** The columns of its primary key. */
  readonly key: readonly string[]
  /** Rows that are read, written and compared at one time. */
  readonly batchSize: number
}

/** What is copied, in an order in which every row comes after those it refers to. */
export const COPIED_TABLES: readonly CopiedTable[] = Object.freeze([
  { name: 'users', key: ['id'], batchSize: 1000 },
  { name: 'tokens', key: ['id'], batchSize: 1000 },
  { name: 'channels', key: ['id'], batchSize: 1000 },
  { name: 'stored_settings', key: ['section', 'name'], batchSize: 200 },
  { name: 'sessions', key: ['id_hash'], batchSize: 1000 },
  { name: 'usage_log', key: ['id'], batchSize: 1000 },
  // A key of many columns makes long conditions.
  {
    name: 'usage_days',
    key: ['day', 'user_id', 'token_id', 'model', 'channel', 'group_name'],
    batchSize: 100,
  },
])

/** Settled before the copy, and made with the target: nothing of these is copied. */
export const NOT_COPIED: readonly string[] = Object.freeze(['holds', 'store_identity'])

/** Tables whose ids the database counts up. */
export const COUNTED_TABLES = ['users', 'tokens', 'channels'] as const
