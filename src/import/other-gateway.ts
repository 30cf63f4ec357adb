import { TOKEN } from '../domain/records/token.ts'
import { USER } from '../domain/records/user.ts'
import { channelFields } from '../management/channels/channel-fields.ts'
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

/**
 * Columns that are read if they exist; some versions lack some of them. Those with the same name in this
 * gateway come first.
 */
const COLUMNS = {
  users: [
    ...Object.keys(USER.fields),
    'password',
    'github_id',
    'wechat_id',
    'telegram_id',
    'discord_id',
    'linux_do_id',
    'access_token',
    'aff_history',
    'deleted_at',
    'stripe_customer',
    'created_at',
  ],
  tokens: [...Object.keys(TOKEN.fields), 'key', 'models', 'subnet', 'deleted_at'],
  channels: [
    ...Object.keys(channelFields.shape),
    'id',
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
