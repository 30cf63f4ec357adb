import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import type { Configuration } from '../fixtures/configuration.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'

/** The folder of the archives, one for each released version. */
export const ARCHIVES = join(import.meta.dirname, '../releases')

/** Who acts as the administrator in the data of a release. */
export const ROOT = { id: 1, accessToken: 'root-access-token-0123456789abcd' }

/** The configuration of a gateway on the data of a release. Nothing in them expires. */
export function releaseConfig(upstream: string): Configuration {
  return {
    options: { usage_log_days: 36_500, keep_responses: '87600h' },
    models: { model: { price: { input: 2, output: 8 } } },
    users: [{ id: ROOT.id, username: 'root', role: 100, quota: 500_000_000, access_token: ROOT.accessToken }],
    channels: [{ name: 'main', protocol: 'chat', base_url: upstream, keys: ['k'], models: ['model'] }],
  }
}

/** What is written down of the data when they are made, and compared after an upgrade. */
export interface Observed {
  readonly users: readonly Readonly<Record<string, unknown>>[]
  readonly tokens: readonly Readonly<Record<string, unknown>>[]
  readonly channels: readonly Readonly<Record<string, unknown>>[]
  readonly usage: { readonly calls: number; readonly quota: number }
}

/** The contents of `expected.json` in an archive. */
export interface Expected {
  readonly version: string
  readonly engines: Readonly<
    Record<
      'sqlite' | 'postgres',
      { readonly key: string; readonly response: string; readonly observed: Observed }
    >
  >
}

const FIELDS = {
  users: ['id', 'username', 'role', 'status', 'quota', 'used_quota', 'group', 'budget', 'budget_period'],
  tokens: [
    'id',
    'user_id',
    'name',
    'status',
    'remain_quota',
    'unlimited_quota',
    'used_quota',
    'expired_time',
    'model_limits',
    'allow_ips',
    'group',
  ],
  channels: ['id', 'name', 'type', 'status', 'models', 'group', 'priority', 'weight'],
} as const

/** Sends a request to the administration of a gateway as root, and resolves to its data. */
export async function administer<Data>(
  url: string,
  method: string,
  path: string,
  body?: object,
): Promise<Data> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: ROOT.accessToken,
      'gateway-user': String(ROOT.id),
      'content-type': 'application/json',
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const { success, message, data } = (await answer.json()) as {
    success: boolean
    message: string
    data: Data
  }
  if (!success) throw new Error(`${method} ${path}: ${message}`)
  return data
}

/** Reads what an operator sees of the accounts of a gateway. */
export async function observe(url: string): Promise<Observed> {
  const page = async (
    path: string,
    fields: readonly string[],
  ): Promise<Readonly<Record<string, unknown>>[]> => {
    const { items } = await administer<{ items: Readonly<Record<string, unknown>>[] }>(url, 'GET', path)
    const rows = items.map((item) =>
      Object.fromEntries(fields.filter((name) => name in item).map((name) => [name, item[name]])),
    )
    return rows.toSorted((a, b) => Number(a['id']) - Number(b['id']))
  }
  const logs = await administer<{ items: { quota: number }[]; total: number }>(
    url,
    'GET',
    '/api/log/?p=1&page_size=100',
  )
  return {
    users: await page('/api/user/?p=1&page_size=100', FIELDS.users),
    tokens: await page('/api/token/?p=1&page_size=100', FIELDS.tokens),
    channels: await page('/api/channel/?p=1&page_size=100', FIELDS.channels),
    usage: { calls: logs.total, quota: logs.items.reduce((sum, { quota }) => sum + quota, 0) },
  }
}

/** The names of the archives. */
export function archives(): string[] {
  return readdirSync(ARCHIVES).filter((name) => name.endsWith('.tar.gz'))
}

/** Unpacks an archive into a new folder; the caller deletes it. */
export function unpacked(name: string): { readonly folder: string; readonly discard: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-release-'))
  execFileSync('tar', ['-xzf', join(ARCHIVES, name), '-C', folder])
  return { folder, discard: () => rmSync(folder, { recursive: true }) }
}

/** The rows of a PostgreSQL database by table, with the partitions and the sequences that the tables need. */
export interface PostgresData {
  /** The statements that made the schema, in their order. */
  readonly schema: readonly string[]
  readonly partitions: readonly { readonly name: string; readonly parent: string; readonly bound: string }[]
  readonly rows: Readonly<Record<string, readonly object[]>>
  readonly sequences: Readonly<Record<string, string>>
}

const TABLES = `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`

/** Reads all rows of a database. */
export async function dumpPostgres(url: string, schema: readonly string[]): Promise<PostgresData> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const partitions = await client.query<PostgresData['partitions'][number]>(
      `select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bound from pg_class c
       join pg_inherits i on i.inhrelid = c.oid join pg_class p on p.oid = i.inhparent where c.relispartition and c.relkind = 'r' order by 1`,
    )
    const rows: Record<string, object[]> = {}
    for (const { name } of (await client.query<{ name: string }>(TABLES)).rows) {
      const found = await client.query<{ row: string }>(`select to_json(t)::text as row from "${name}" t`)
      // Numbers stay texts of the server's own JSON, so that large ones keep their digits.
      if (found.rows.length > 0) rows[name] = found.rows.map(({ row }) => ({ row }))
    }
    const sequences = await client.query<{ name: string; last: string | null }>(
      "select sequencename as name, last_value::text as last from pg_sequences where schemaname = 'public'",
    )
    const last = sequences.rows.flatMap(({ name, last: value }) =>
      value === null ? [] : [[name, value] as const],
    )
    return { schema, partitions: partitions.rows, rows, sequences: Object.fromEntries(last) }
  } finally {
    await client.end()
  }
}

/** Fills an empty database. */
export async function restorePostgres(url: string, data: PostgresData): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('begin')
    for (const statement of data.schema) await client.query(statement)
    const there = new Set(
      (await client.query<{ relname: string }>('select relname from pg_class')).rows.map(
        ({ relname }) => relname,
      ),
    )
    for (const { name, parent, bound } of data.partitions)
      if (!there.has(name)) await client.query(`create table "${name}" partition of "${parent}" ${bound}`)
    // Without triggers and checks of references, so that the order of the tables does not matter.
    await client.query('set local session_replication_role = replica')
    for (const [table, rows] of Object.entries(data.rows)) {
      await client.query(`delete from "${table}"`)
      const columns = await client.query<{ list: string }>(
        `select string_agg(quote_ident(attname), ', ' order by attnum) as list from pg_attribute
         where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [`"${table}"`],
      )
      const { list } = columns.rows[0] ?? { list: '' }
      for (const { row } of rows as readonly { row: string }[])
        await client.query(
          `insert into "${table}" (${list}) overriding system value select ${list} from json_populate_record(null::"${table}", $1::json)`,
          [row],
        )
    }
    for (const [name, last] of Object.entries(data.sequences))
      await client.query('select setval($1::regclass, $2::bigint)', [`"${name}"`, last])
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/**
 * Makes the schema of this version in an empty database, and resolves to the statements. Roles and their
 * rights belong to the server, and each start makes them, as it makes the partitions of the present days.
 */
export async function schemaStatements(url: string): Promise<string[]> {
  const definition = /^(?:\s|--[^\n]*\n)*(?:create(?! role)|alter|drop|comment)\b/i
  const ofDays = /\busage_log_\d{8}\b/
  const statements: string[] = []
  const query = Reflect.get(Client.prototype, 'query') as (...args: unknown[]) => unknown
  const watched = function (this: Client, ...args: unknown[]): unknown {
    const [first] = args
    const text = typeof first === 'string' ? first : (first as { text?: string } | undefined)?.text
    if (text !== undefined && definition.test(text) && !ofDays.test(text)) statements.push(text)
    return Reflect.apply(query, this, args)
  }
  Reflect.set(Client.prototype, 'query', watched)
  try {
    const store = await openPostgresStore({ url, secrets: deriveSecrets(GATEWAY_SECRET) })
    await store.close()
  } finally {
    Reflect.set(Client.prototype, 'query', query)
  }
  return statements
}
