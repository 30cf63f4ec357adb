import type { Kysely } from 'kysely'
import type { Environment } from '../../config/environment.ts'
import { refuseOtherSecret } from '../../store/key-check.ts'
import type { Database } from '../../store/schema.ts'
import { databaseName, postgresUrl } from '../database-name.ts'
import { type Comparison, compare, isComplete, type TableState } from './differences.ts'
import { columnsOf, insertMissing, readPages } from './rows.ts'
import { type OpenCalls, openSource, type Source } from './source.ts'
import { type Sums, readSums, differingSums } from './sums.ts'
import { COPIED_TABLES } from './tables.ts'
import { advanceSequences, isEmptyDatabase, openTarget, withMappedErrors, prepareTarget } from '../postgres-target.ts'

type Db = Kysely<Database>

/** What is to be copied, and where to. */
export interface MigrateOptions {
  /** Of the gateway that is moved. */
  readonly environment: Environment
  /** A `postgres:` URL. */
  readonly to: string
  /** Says what would be done, and writes nothing anywhere. */
  readonly dryRun: boolean
  /** Hears how many rows of a table are copied. */
  readonly onProgress: (table: string, rows: number) => void
}

/** What a copy came to. */
export interface MigrationReport {
  /** The target, as it may be shown. */
  readonly to: string
  readonly dryRun: boolean
  readonly openCalls: OpenCalls
  /** Rows of each table in the source, and in the target before. */
  readonly before: readonly TableState[]
  /** The same after the copy; as before, where nothing was written. */
  readonly tables: readonly TableState[]
  readonly here: Sums
  /** Undefined where the target has no tables yet. */
  readonly there: Sums | undefined
  /** What is not alike, in sentences; empty = it is verified, or nothing was written. */
  readonly differences: readonly string[]
}

/**
 * Copies everything from the embedded database into an empty PostgreSQL database, or completes a copy that
 * was begun, and compares the two. Calls that a crash left open are settled first; otherwise the source is
 * only read. Rejects, with a sentence for the operator, while a gateway runs, with another secret, and where
 * the target holds anything else.
 */
export async function migrate(orders: MigrateOptions): Promise<MigrationReport> {
  const { environment, dryRun } = orders
  const to = postgresUrl(orders.to)
  if (to === undefined)
    throw new Error('--to: expected a URL such as postgres://user:password@host:5432/sluice')
  if (!environment.databaseUrl.startsWith('sqlite:')) {
    throw new Error(
      'DATABASE_URL names PostgreSQL already: unset it for this command, or let it name the file to copy (sqlite:PATH)',
    )
  }
  const target = openTarget(to)
  try {
    // Before anything is done here, as it may not be reached.
    const blank = await withMappedErrors(() => isEmptyDatabase(target, to))
    const source = await openSource(environment, { untouched: dryRun })
    try {
      return await withMappedErrors(() => copyAndVerify(source, target, blank, { ...orders, to }))
    } finally {
      await source.close()
    }
  } finally {
    await target.destroy()
  }
}

async function copyAndVerify(
  source: Source,
  target: Db,
  blank: boolean,
  { to, dryRun, onProgress }: MigrateOptions,
): Promise<MigrationReport> {
  if (!blank) await refuseOtherTargetSecret(target, source, to)
  const begun = blank ? undefined : await compare(source.db, target)
  if (begun) await refuseOtherContent(begun, target, to)
  const before = begun?.tables ?? (await countsOfEmptyTarget(source.db))
  const common = { to: databaseName(to), dryRun, openCalls: source.openCalls, before }
  const here = await readSums(source.db)
  if (dryRun) {
    const there = blank ? undefined : await readSums(target)
    return { ...common, tables: before, here, there, differences: [] }
  }
  await prepareTarget(to, source.secrets)
  await copyRows(source.db, target, onProgress)
  await advanceSequences(target, await source.highestIds())
  const after = await compare(source.db, target)
  const there = await readSums(target)
  return {
    ...common,
    tables: after.tables,
    here,
    there,
    differences: [...remainingDifferences(after), ...differingSums(here, there)],
  }
}

async function copyRows(source: Db, target: Db, onProgress: MigrateOptions['onProgress']): Promise<void> {
  for (const table of COPIED_TABLES) {
    const columns = await columnsOf(source, table.name)
    let done = 0
    for await (const rows of readPages(source, table, columns)) {
      await insertMissing(target, table, columns, rows)
      done += rows.length
      onProgress(table.name, done)
    }
  }
}

async function refuseOtherTargetSecret(target: Db, { secrets }: Source, to: string): Promise<void> {
  const identity = await target.selectFrom('store_identity').select('key_check').executeTakeFirst()
  if (!identity) return
  try {
    refuseOtherSecret(identity.key_check, secrets)
  } catch (error) {
    throw new Error(
      `${databaseName(to)} was made with another GATEWAY_SECRET than this gateway's, whose keys could not be read there: ` +
        'name an empty database',
      { cause: error },
    )
  }
}

/** Only what a copy of this very source may hold is gone on with. */
async function refuseOtherContent(begun: Comparison, target: Db, to: string): Promise<void> {
  const holds = await target.selectFrom('holds').select('id').limit(1).executeTakeFirst()
  const told = [...begun.contradictions, ...(holds ? ['a gateway has calls open there'] : [])]
  if (told.length === 0) return
  const more = begun.contradictionCount - begun.contradictions.length
  throw new Error(
    `${databaseName(to)} is not empty, and no copy of this database as it is now:\n` +
      told.map((sentence) => `  ${sentence}\n`).join('') +
      (more > 0 ? `  and ${more} more\n` : '') +
      'Nothing was written. Name an empty database.',
  )
}

async function countsOfEmptyTarget(source: Db): Promise<TableState[]> {
  const none: TableState[] = []
  for (const { name } of COPIED_TABLES) {
    const { count } = await source
      .selectFrom(name as 'users')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    none.push({ table: name, here: count, there: 0 })
  }
  return none
}

function remainingDifferences(after: Comparison): string[] {
  if (isComplete(after)) return []
  const more = after.contradictionCount - after.contradictions.length
  return [
    ...after.tables.flatMap(({ table, here, there }) =>
      here === there ? [] : [`${table}: ${here} rows here, ${there} there`],
    ),
    ...after.contradictions,
    ...(more > 0 ? [`and ${more} more rows that are not alike`] : []),
  ]
}
