import { isUtf8 } from 'node:buffer'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { readConfig } from '../../config/config.ts'
import type { Environment } from '../../config/environment.ts'
import { mergeStoredSettings } from '../../config/merge-stored-settings.ts'
import { postgresUrl, sqlitePath } from '../../domain/database-url.ts'
import { type QuotaDisplay, quotaDisplay } from '../../management/gateway-status.ts'
import { storedConfiguration } from '../../store/operations/configuration.ts'
import type { Database } from '../../store/row-types.ts'
import { secretState } from '../../store/operations/secret-state.ts'
import { settleSecrets } from '../../store/secret-state.ts'
import {
  databaseName,
  advanceSequences,
  isEmptyDatabase,
  openTarget,
  prepareTarget,
  withMappedErrors,
} from '../postgres-target.ts'
import { type UnsettledCalls, openMigrationSource, type MigrationSource } from './embedded-database.ts'
import { describeDifferingSums, readQuotaSums, type QuotaSums } from './quota-sums.ts'
import { COPIED_TABLES, type CopiedTable } from './tables.ts'

type Db = Kysely<Database>

/** Options of a migration. */
export interface MigrateOptions {
  /** Environment of the gateway whose data is copied. */
  readonly environment: Environment
  /** `postgres:` URL of the target. */
  readonly to: string
  /** Whether to report what would be done without writing anything. */
  readonly dryRun: boolean
  /** Called with the number of rows copied so far, and the number of all rows. */
  readonly onProgress: (rows: number, total: number) => void
}

/** Result of a migration. */
export interface MigrationReport {
  /** Description of the target, without its password. */
  readonly to: string
  readonly dryRun: boolean
  readonly openCalls: UnsettledCalls
  /** Row counts of each table before the copy. */
  readonly before: readonly TableState[]
  /** Row counts of each table after the copy; in a dry run the same as `before`. */
  readonly tables: readonly TableState[]
  readonly here: QuotaSums
  /** How amounts are shown; undefined if the configuration cannot be read. */
  readonly display: QuotaDisplay | undefined
  /** Sums of usage and balances in the target database; undefined if it has no tables yet. */
  readonly there: QuotaSums | undefined
  /** Sentences about differences between source and target. Empty if there are none, and in a dry run. */
  readonly differences: readonly string[]
}

/**
 * Copies a SQLite database into an empty PostgreSQL database, or completes an interrupted copy, and compares
 * both. Calls that were open at a crash are settled first; otherwise the source is only read. Rejects with a
 * sentence for the operator if a gateway runs, if the secret differs, or if the target contains other data.
 */
export async function migrate(orders: MigrateOptions): Promise<MigrationReport> {
  const { environment, dryRun } = orders
  const to = postgresUrl(orders.to)
  if (to === undefined)
    throw new Error('--to: expected a URL such as postgres://user:password@host:5432/sluice')
  const path = sqlitePath(environment.databaseUrl)
  if (path === undefined) {
    throw new Error(
      'DATABASE_URL names PostgreSQL already: unset it for this command, or let it name the file to copy (sqlite:PATH)',
    )
  }
  const target = openTarget(to)
  try {
    // Checks the target first: if it is unreachable, the source must stay unchanged.
    const isEmpty = await withMappedErrors(() => isEmptyDatabase(target, to))
    const source = await openMigrationSource(environment, path, { readOnly: dryRun })
    try {
      return await withMappedErrors(() => copyAndVerify(source, target, isEmpty, { ...orders, to }))
    } finally {
      await source.close()
    }
  } finally {
    await target.destroy()
  }
}

async function copyAndVerify(
  source: MigrationSource,
  target: Db,
  isEmpty: boolean,
  { environment, to, dryRun, onProgress }: MigrateOptions,
): Promise<MigrationReport> {
  if (!isEmpty) await refuseOtherTargetSecret(target, source, to)
  const existing = isEmpty ? undefined : await compare(source.db, target)
  if (existing) await refuseOtherContent(existing, target, to)
  const before = existing?.tables ?? (await countsOfEmptyTarget(source.db))
  const display = await displayOf(source, environment).catch(() => undefined)
  const common = { to: databaseName(to), dryRun, openCalls: source.openCalls, before, display }
  const here = await readQuotaSums(source.db)
  if (dryRun) {
    const there = isEmpty ? undefined : await readQuotaSums(target)
    return { ...common, tables: before, here, there, differences: [] }
  }
  await prepareTarget(to, { ...source.secrets })
  const total = before.reduce((sum, { here }) => sum + here, 0)
  await copyRows(source.db, target, (rows) => onProgress(rows, total))
  await advanceSequences(target, await source.highestIds())
  const after = await compare(source.db, target)
  const there = await readQuotaSums(target)
  return {
    ...common,
    tables: after.tables,
    here,
    there,
    differences: [...remainingDifferences(after), ...describeDifferingSums(here, there)],
  }
}

/** How the gateway of the source shows amounts, by its file and by what was set over HTTP. */
async function displayOf({ db, secrets }: MigrationSource, environment: Environment): Promise<QuotaDisplay> {
  const stored = await storedConfiguration(db, {}, secrets)
  return quotaDisplay(mergeStoredSettings(readConfig(environment), stored).settings)
}

async function copyRows(source: Db, target: Db, onProgress: (rows: number) => void): Promise<void> {
  let done = 0
  for (const table of COPIED_TABLES) {
    const columns = await columnsOf(source, table.name)
    for await (const rows of readPages(source, table, columns)) {
      await refuseBrokenTexts(source, table, rows)
      await insertMissing(target, table, columns, rows)
      done += rows.length
      onProgress(done)
    }
  }
}

async function refuseOtherTargetSecret(target: Db, { secrets }: MigrationSource, to: string): Promise<void> {
  const identity = await target.selectFrom('store_identity').select('key_check').executeTakeFirst()
  if (!identity) return
  try {
    settleSecrets({ ...secrets }, await secretState(target))
  } catch (error) {
    throw new Error(
      `${databaseName(to)} was made with another GATEWAY_SECRET than this gateway's, whose keys could not be read there: ` +
        'name an empty database',
      { cause: error },
    )
  }
}

/** Refuses a target that contains anything other than an unfinished copy of this source. */
async function refuseOtherContent(existing: Comparison, target: Db, to: string): Promise<void> {
  const holds = await target.selectFrom('holds').select('id').limit(1).executeTakeFirst()
  const sentences = [...existing.contradictions, ...(holds ? ['a gateway has calls open there'] : [])]
  if (sentences.length === 0) return
  const more = existing.contradictionCount - existing.contradictions.length
  throw new Error(
    `${databaseName(to)} is not empty, and not a copy of the present database:\n` +
      sentences.map((sentence) => `  ${sentence}\n`).join('') +
      (more > 0 ? `  and ${more} more\n` : '') +
      'Nothing was written. Name an empty database.',
  )
}

async function countsOfEmptyTarget(source: Db): Promise<TableState[]> {
  const states: TableState[] = []
  for (const { name } of COPIED_TABLES) {
    const { count } = await source
      .selectFrom(name as 'users')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    states.push({ table: name, here: count, there: 0 })
  }
  return states
}

function remainingDifferences(after: Comparison): string[] {
  if (isComplete(after)) return []
  const more = after.contradictionCount - after.contradictions.length
  return [
    ...after.tables.flatMap(({ table, here, there }) =>
      here === there ? [] : [`${table}: ${here} rows here, ${there} there`],
    ),
    ...after.contradictions,
    ...(more > 0 ? [`and ${more} more rows that differ`] : []),
  ]
}

/** Maximum number of differences that are described; further ones are only counted. */
const MAX_REPORTED = 20

/** Columns whose values must not be printed. */
const SECRET_COLUMNS: ReadonlySet<string> = new Set([
  'password_hash',
  'access_token_hash',
  'key_hash',
  'key_cipher',
  'key_end',
  'keys_cipher',
  'id_hash',
  'token_hash',
])

/** Row counts of a table in the source and in the target. */
interface TableState {
  readonly table: string
  /** Number of rows in the source. */
  readonly here: number
  /** Number of rows in the target. */
  readonly there: number
}

/** Result of comparing a target with a source. */
interface Comparison {
  readonly tables: readonly TableState[]
  /**
   * Sentences about rows of the target that the source lacks or has with other values; at most
   * `MAX_REPORTED`.
   */
  readonly contradictions: readonly string[]
  readonly contradictionCount: number
}

/** Whether the target has all rows of the source and no others. */
function isComplete({ tables, contradictionCount }: Comparison): boolean {
  return contradictionCount === 0 && tables.every(({ here, there }) => here === there)
}

/** Compares all rows of the copied tables, column by column. Columns that only the target has are ignored. */
async function compare(source: Db, target: Db): Promise<Comparison> {
  const found = new Contradictions()
  const tables: TableState[] = []
  for (const table of COPIED_TABLES) tables.push(await compareTable(source, target, table, found))
  return { tables, contradictions: found.sentences, contradictionCount: found.count }
}

async function compareTable(
  source: Db,
  target: Db,
  table: CopiedTable,
  found: Contradictions,
): Promise<TableState> {
  const columns = await columnsOf(source, table.name)
  const there = await countTableRows(target, table.name)
  let here = 0
  let matched = 0
  for await (const rows of readPages(source, table, columns)) {
    here += rows.length
    if (there === 0) continue
    const others = await rowsWithKeys(target, table, columns, rows)
    matched += others.size
    for (const row of rows) {
      const other = others.get(rowKeyText(table, row))
      if (!other) continue
      const column = columns.find((name) => row[name] !== other[name])
      if (column !== undefined) found.add(differenceBetween(table, row, other, column))
    }
  }
  if (matched < there) await findUnexpectedRows(source, target, table, found)
  return { table: table.name, here, there }
}

/** Finds rows of the target that the source does not have. */
async function findUnexpectedRows(
  source: Db,
  target: Db,
  table: CopiedTable,
  found: Contradictions,
): Promise<void> {
  for await (const rows of readPages(target, table, table.key)) {
    const known = await rowsWithKeys(source, table, table.key, rows)
    for (const row of rows) {
      if (!known.has(rowKeyText(table, row))) found.add(`${rowName(table, row)} exists in the target alone`)
    }
  }
}

class Contradictions {
  readonly sentences: string[] = []
  count = 0

  add(sentence: string): void {
    this.count += 1
    if (this.sentences.length < MAX_REPORTED) this.sentences.push(sentence)
  }
}

function differenceBetween(table: CopiedTable, row: Row, other: Row, column: string): string {
  const values = SECRET_COLUMNS.has(column)
    ? ''
    : ` (${displayed(row[column])} here, ${displayed(other[column])} there)`
  return `${rowName(table, row)} has another ${column}${values}`
}

function rowName(table: CopiedTable, row: Row): string {
  const key = table.key.map((name) => (SECRET_COLUMNS.has(name) ? '…' : displayed(row[name])))
  return `${table.name} ${key.join(', ')}`
}

function displayed(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/** A row as the drivers of both databases return it: numbers, texts and nulls. */
export type Row = Readonly<Record<string, unknown>>

/** Returns the names of a table's columns. */
export async function columnsOf(db: Db, name: string): Promise<readonly string[]> {
  const tables = await db.introspection.getTables()
  return tables.find((table) => table.name === name)?.columns.map((column) => column.name) ?? []
}

/** Counts the rows of a table. */
export async function countTableRows(db: Db, name: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`.execute(db)
  return rows[0]?.count ?? 0
}

/** Reads all rows in batches, ordered by key in the text order of this database. */
export async function* readPages(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
): AsyncGenerator<Row[]> {
  let after: RawBuilder<unknown> = sql``
  for (;;) {
    const { rows } = await sql<Row>`
      select ${columnList(columns)} from ${sql.table(table.name)} ${after}
      order by ${columnList(table.key)} limit ${sql.lit(table.batchSize)}`.execute(db)
    const last = rows.at(-1)
    if (!last) return
    yield rows
    if (rows.length < table.batchSize) return
    after = sql`where (${columnList(table.key)}) > (${sql.join(table.key.map((name) => last[name]))})`
  }
}

/** Finds the rows whose keys equal those of the rows `wanted`. Returns them by key. */
export async function rowsWithKeys(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
  wanted: readonly Row[],
): Promise<ReadonlyMap<string, Row>> {
  const [first = '', ...more] = table.key
  const hasKey = (row: Row): RawBuilder<unknown> =>
    sql`(${sql.join(
      table.key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
      sql` and `,
    )})`
  const condition =
    more.length === 0
      ? sql`${sql.ref(first)} in (${sql.join(wanted.map((row) => row[first]))})`
      : sql.join(wanted.map(hasKey), sql` or `)
  const { rows } =
    await sql<Row>`select ${columnList(columns)} from ${sql.table(table.name)} where ${condition}`.execute(db)
  return new Map(rows.map((row) => [rowKeyText(table, row), row]))
}

/**
 * Refuses SQLite texts that are not UTF-8, because their copies would differ. The driver replaces invalid
 * bytes by U+FFFD, so only rows with that character are read again.
 */
export async function refuseBrokenTexts(db: Db, table: CopiedTable, rows: readonly Row[]): Promise<void> {
  for (const row of rows)
    for (const [column, value] of Object.entries(row)) {
      if (typeof value !== 'string' || !value.includes('\uFFFD')) continue
      const found = await sql<{ bytes: Uint8Array }>`
        select cast(${sql.ref(column)} as blob) as bytes from ${sql.table(table.name)}
        where (${columnList(table.key)}) = (${sql.join(table.key.map((name) => row[name]))})`.execute(db)
      const [{ bytes } = { bytes: undefined }] = found.rows
      if (!bytes || !isUtf8(bytes))
        throw new Error(`${table.name}.${column}: a text is not UTF-8, in the row ${rowKeyText(table, row)}`)
    }
}

/** Inserts the rows whose keys the table does not contain yet. If the statement fails, none is inserted. */
export async function insertMissing(
  db: Db,
  table: CopiedTable,
  columns: readonly string[],
  rows: readonly Row[],
): Promise<void> {
  const values = rows.map((row) => sql`(${sql.join(columns.map((name) => row[name]))})`)
  await sql`
    insert into ${sql.table(table.name)} (${columnList(columns)}) values ${sql.join(values)}
    on conflict do nothing`.execute(db)
}

/** Returns a row's key as one text. */
export function rowKeyText({ key }: CopiedTable, row: Row): string {
  return JSON.stringify(key.map((name) => row[name]))
}

function columnList(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map((name) => sql.ref(name)))
}
