import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import { DATABASE, type MariadbServer } from '../fixtures/mariadb-server.ts'
import { ENGINES } from './engines.ts'

/** A value as a test writes it, converted by the database to the column's type. */
type Cell = string | number | boolean | null | Uint8Array

/** A database as another gateway of the new-api family creates it. */
export interface FamilyDatabase {
  /** The source argument of `sluice import`. */
  readonly place: string
  insert(table: string, row: Readonly<Record<string, Cell>>): Promise<void>
  sql(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** Columns by table, with the types that the family's own tool gives them, by engine. */
const TYPES = {
  SQLite: {
    id: 'integer PRIMARY KEY AUTOINCREMENT',
    int: 'integer',
    flag: 'numeric',
    time: 'datetime',
    json: 'json',
  },
  PostgreSQL: {
    id: 'bigserial PRIMARY KEY',
    int: 'bigint',
    flag: 'boolean',
    time: 'timestamptz',
    json: 'json',
  },
  MariaDB: {
    id: 'bigint AUTO_INCREMENT PRIMARY KEY',
    int: 'bigint',
    flag: 'tinyint(1)',
    time: 'datetime(3)',
    json: 'json',
    text: 'longtext',
    'text UNIQUE': 'varchar(191) UNIQUE',
    'text PRIMARY KEY': 'varchar(191) PRIMARY KEY',
    'text NOT NULL': 'longtext NOT NULL',
  },
} as const

/** Databases that the import reads. */
export type SourceEngine = keyof typeof TYPES

type ColumnType = keyof (typeof TYPES)['SQLite'] | `text${string}` | `${'int' | 'bigint'} DEFAULT ${string}`

const USERS: Readonly<Record<string, ColumnType>> = {
  id: 'id',
  username: 'text UNIQUE',
  password: 'text NOT NULL',
  display_name: 'text',
  role: 'int',
  status: 'int DEFAULT 1',
  email: 'text',
  github_id: 'text',
  wechat_id: 'text',
  access_token: 'text',
  quota: 'int',
  used_quota: 'int',
  request_count: 'int',
  group: 'text',
  aff_code: 'text',
  inviter_id: 'int',
}

const TOKENS: Readonly<Record<string, ColumnType>> = {
  id: 'id',
  user_id: 'int',
  key: 'text UNIQUE',
  status: 'int DEFAULT 1',
  name: 'text',
  created_time: 'int',
  accessed_time: 'int',
  expired_time: 'bigint DEFAULT -1',
  remain_quota: 'int',
  unlimited_quota: 'flag',
  used_quota: 'int',
}

const CHANNELS: Readonly<Record<string, ColumnType>> = {
  id: 'id',
  type: 'int',
  key: 'text',
  status: 'int DEFAULT 1',
  name: 'text',
  weight: 'int',
  base_url: 'text',
  models: 'text',
  group: 'text',
  model_mapping: 'text',
  priority: 'int',
}

/** The tables of both families that the import reads. */
const SCHEMAS: Readonly<
  Record<'one-api' | 'new-api', Readonly<Record<string, Readonly<Record<string, ColumnType>>>>>
> = {
  'one-api': {
    users: USERS,
    tokens: { ...TOKENS, models: 'text', subnet: 'text' },
    channels: { ...CHANNELS, config: 'text', system_prompt: 'text' },
    options: { key: 'text PRIMARY KEY', value: 'text' },
  },
  'new-api': {
    users: {
      ...USERS,
      telegram_id: 'text',
      discord_id: 'text',
      oidc_id: 'text',
      linux_do_id: 'text',
      aff_count: 'int',
      aff_quota: 'int',
      aff_history: 'int',
      deleted_at: 'time',
      setting: 'text',
      stripe_customer: 'text',
      remark: 'text',
    },
    tokens: {
      ...TOKENS,
      model_limits_enabled: 'flag',
      model_limits: 'text',
      allow_ips: 'text',
      group: 'text',
      cross_group_retry: 'flag',
      deleted_at: 'time',
    },
    channels: {
      ...CHANNELS,
      openai_organization: 'text',
      test_model: 'text',
      status_code_mapping: 'text',
      auto_ban: 'int',
      tag: 'text',
      remark: 'text',
      setting: 'text',
      settings: 'text',
      param_override: 'text',
      header_override: 'text',
      channel_info: 'json',
    },
    options: { key: 'text PRIMARY KEY', value: 'text' },
  },
}

/** An empty database of a family on an engine, deleted after the test. MariaDB's are made on `server`. */
export async function familyDatabase(
  family: 'one-api' | 'new-api',
  engine: SourceEngine,
  server?: MariadbServer,
): Promise<FamilyDatabase> {
  const database = await (engine === 'SQLite' ? onSqlite() : server ? onMariadb(server) : onPostgres())
  for (const [table, columns] of Object.entries(SCHEMAS[family])) {
    const list = Object.entries(columns).map(([name, type]) => `"${name}" ${typeName(engine, type)}`)
    await database.sql(`CREATE TABLE ${table} (${list.join(', ')})`)
  }
  return {
    ...database,
    async insert(table, row) {
      const cells = Object.values(row).map((cell) => literal(engine, cell))
      const names = Object.keys(row).map((name) => `"${name}"`)
      await database.sql(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${cells.join(', ')})`)
    },
  }
}

function onSqlite(): Omit<FamilyDatabase, 'insert'> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-family-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const place = join(folder, 'one-api.db')
  return {
    place,
    sql(statement) {
      const file = new DatabaseSync(place)
      try {
        return Promise.resolve(file.prepare(statement).all())
      } finally {
        file.close()
      }
    },
  }
}

async function onPostgres(): Promise<Omit<FamilyDatabase, 'insert'>> {
  const engine = ENGINES.find(({ name }) => name === 'PostgreSQL')
  if (!engine) throw new Error('there is no PostgreSQL server')
  return engine.database()
}

async function onMariadb(server: MariadbServer): Promise<Omit<FamilyDatabase, 'insert'>> {
  await server.empty()
  const sql = (statement: string) => server.sql(statement)
  return { place: `mysql://reader:p%40ss%20word@127.0.0.1:${server.port}/${DATABASE}`, sql }
}

function typeName(engine: SourceEngine, type: ColumnType): string {
  const types: Readonly<Record<string, string>> = TYPES[engine]
  return types[type] ?? type
}

function literal(engine: SourceEngine, cell: Cell): string {
  if (cell === null) return 'NULL'
  if (typeof cell === 'boolean') return engine === 'PostgreSQL' ? String(cell) : String(Number(cell))
  if (typeof cell === 'number') return String(cell)
  if (cell instanceof Uint8Array) return `x'${Buffer.from(cell).toString('hex')}'`
  return `'${cell.replaceAll("'", "''")}'`
}
