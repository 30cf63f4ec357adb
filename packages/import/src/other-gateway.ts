import type { RowReader } from './row-reader.ts'
import type { SourceDatabase, SourceRow } from './source.ts'

/**
 * The gateway software that wrote a database. one-api and new-api number channel types differently, and have
 * different columns for tokens.
 */
export type GatewayFamily = 'one-api' | 'new-api'

/** Rows and options of another gateway, unchecked. */
export interface OtherGatewayDatabase {
  readonly family: GatewayFamily
  readonly users: readonly SourceRow[]
  readonly tokens: readonly SourceRow[]
  readonly channels: readonly SourceRow[]
  /** Options that the other gateway has saved, by name. */
  readonly options: ReadonlyMap<string, unknown>
  /** Tables that have rows, none of which are imported. */
  readonly leftTables: readonly NotImportedTable[]
}

/** A table whose rows are not imported. */
export interface NotImportedTable {
  readonly name: string
  /** Number of its rows, at most `MAX_COUNTED_ROWS` + 1; undefined if they could not be counted. */
  readonly rows: number | undefined
}

/** Maximum number of rows that are counted, because a table of logs may have many more. */
export const MAX_COUNTED_ROWS = 1_000_000

/**
 * Tables that are not reported, because they contain nothing of their own: the channels of each model and
 * group, and the note that the setup was finished.
 */
const DERIVED: readonly string[] = ['abilities', 'setups']

/** Columns that are read if they exist; some versions lack some of them. */
const COLUMNS = {
  users: [
    'id',
    'username',
    'password',
    'display_name',
    'role',
    'status',
    'group',
    'quota',
    'used_quota',
    'request_count',
    'email',
    'remark',
    'github_id',
    'discord_id',
    'oidc_id',
    'wechat_id',
    'telegram_id',
    'linux_do_id',
    'access_token',
    'aff_code',
    'aff_count',
    'aff_quota',
    'aff_history',
    'inviter_id',
    'setting',
    'stripe_customer',
    'created_at',
    'deleted_at',
  ],
  tokens: [
    'id',
    'user_id',
    'key',
    'name',
    'status',
    'created_time',
    'accessed_time',
    'expired_time',
    'remain_quota',
    'unlimited_quota',
    'used_quota',
    'model_limits_enabled',
    'model_limits',
    'models',
    'allow_ips',
    'subnet',
    'group',
    'cross_group_retry',
    'deleted_at',
  ],
  channels: [
    'id',
    'type',
    'key',
    'name',
    'status',
    'base_url',
    'models',
    'group',
    'priority',
    'weight',
    'model_mapping',
    'status_code_mapping',
    'param_override',
    'header_override',
    'setting',
    'settings',
    'other',
    'openai_organization',
    'test_model',
    'tag',
    'remark',
    'channel_info',
    'system_prompt',
  ],
} as const

/** Columns by which a table of one-api or new-api is recognized. */
const REQUIRED_COLUMNS = {
  users: ['id', 'username', 'quota'],
  tokens: ['id', 'user_id', 'key', 'remain_quota'],
  channels: ['id', 'type', 'key', 'models'],
} as const

/**
 * Reads everything that can be imported. Rejects with a sentence if this is not a database of one-api or
 * new-api.
 */
export async function readOtherGateway(source: SourceDatabase): Promise<OtherGatewayDatabase> {
  if ((await source.columnsOf('store_identity')).length > 0) {
    throw new Error('this is a database of Sluice itself: "sluice migrate" copies one to PostgreSQL')
  }
  const tokenColumns = await source.columnsOf('tokens')
  return {
    // Every version of new-api has this column, and no version of one-api.
    family: tokenColumns.includes('model_limits_enabled') ? 'new-api' : 'one-api',
    users: await rowsOf(source, 'users'),
    tokens: await rowsOf(source, 'tokens'),
    channels: await rowsOf(source, 'channels'),
    options: await optionsOf(source),
    // These tables are counted last, because a failed count may end the transaction.
    leftTables: await leftTables(source),
  }
}

async function leftTables(source: SourceDatabase): Promise<NotImportedTable[]> {
  const read = new Set([...Object.keys(COLUMNS), 'options', ...DERIVED])
  const left: NotImportedTable[] = []
  for (const name of await source.tables()) {
    if (read.has(name)) continue
    const rows = await source.countRows(name, MAX_COUNTED_ROWS).catch(() => undefined)
    if (rows !== 0) left.push({ name, rows })
  }
  return left
}

async function rowsOf(source: SourceDatabase, table: keyof typeof COLUMNS): Promise<readonly SourceRow[]> {
  const present = await source.columnsOf(table)
  const missing = REQUIRED_COLUMNS[table].filter((name) => !present.includes(name))
  if (missing.length > 0) {
    const what = present.length === 0 ? `no table "${table}"` : `no column "${missing[0]}" in "${table}"`
    throw new Error(`this is not a database of one-api or new-api: it has ${what}`)
  }
  return source.rows(
    table,
    COLUMNS[table].filter((name) => present.includes(name)),
  )
}

async function optionsOf(source: SourceDatabase): Promise<ReadonlyMap<string, unknown>> {
  const columns = await source.columnsOf('options')
  if (!columns.includes('key') || !columns.includes('value')) return new Map()
  const rows = await source.rows('options', ['key', 'value'])
  return new Map(rows.map((row) => [String(row['key']), row['value']]))
}

/** Status of deleted users in one-api, which keeps their rows with a changed name. */
const DELETED = 3

/** Whether a row is marked as deleted. */
export function isRowDeleted(cells: RowReader, kind: 'user' | 'token'): boolean {
  if (!cells.isAbsent('deleted_at')) return true
  return kind === 'user' && cells.lenient(() => cells.integer('status'), 0) === DELETED
}
