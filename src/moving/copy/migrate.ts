import type { Kysely } from 'kysely'
import type { Environment } from '../../config/environment.ts'
import { refuseOtherSecret } from '../../store/key-check.ts'
import type { Database } from '../../store/schema.ts'
import { databaseName, postgresUrl } from '../database-name.ts'
import { type Comparison, compare, isWhole, type TableState } from './differences.ts'
import { columnsOf, insertMissing, pages } from './rows.ts'
import { type OpenCalls, openSource, type Source } from './source.ts'
import { type Sums, sumUp, unequal } from './sums.ts'
import { COPIED_TABLES } from './tables.ts'
import { countOnFrom, isBlank, openTarget, orBlamed, prepareTarget } from '../postgres-target.ts'

type Db = Kysely<Database>

/** What is to be copied, and where to. */
export interface MigrateOrders {
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
export interface Migration {
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
export async function migrate(orders: MigrateOrders): Promise<Migration> {
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
    const blank = await orBlamed(() => isBlank(target, to))
    const source = await openSource(environment, { untouched: dryRun })
    try {
      return await orBlamed(() => moved(source, target, blank, { ...orders, to }))
    } finally {
      await source.close()
    }
  } finally {
    await target.destroy()
  }
}

async function moved(
  source: Source,
  target: Db,
  blank: boolean,
  { to, dryRun, onProgress }: MigrateOrders,
): Promise<Migration> {
  if (!blank) await refuseOtherSecretThere(target, source, to)
  const begun = blank ? undefined : await compare(source.db, target)
  if (begun) await refuseOtherContent(begun, target, to)
  const before = begun?.tables ?? (await nothingYet(source.db))
  const common = { to: databaseName(to), dryRun, openCalls: source.openCalls, before }
  const here = await sumUp(source.db)
  if (dryRun) {
    const there = blank ? undefined : await sumUp(target)
    return { ...common, tables: before, here, there, differences: [] }
  }
  await prepareTarget(to, source.secrets)
  await copy(source.db, target, onProgress)
  await countOnFrom(target, await source.highestIds())
  const after = await compare(source.db, target)
  const there = await sumUp(target)
  return {
    ...common,
    tables: after.tables,
    here,
    there,
    differences: [...missing(after), ...unequal(here, there)],
  }
}

async function copy(source: Db, target: Db, onProgress: MigrateOrders['onProgress']): Promise<void> {
  for (const table of COPIED_TABLES) {
    const columns = await columnsOf(source, table.name)
    let done = 0
    for await (const rows of pages(source, table, columns)) {
      await insertMissing(target, table, columns, rows)
      done += rows.length
      onProgress(table.name, done)
    }
  }
}

async function refuseOtherSecretThere(target: Db, { secrets }: Source, to: string): Promise<void> {
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

async function nothingYet(source: Db): Promise<TableState[]> {
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

function missing(after: Comparison): string[] {
  if (isWhole(after)) return []
  const more = after.contradictionCount - after.contradictions.length
  return [
    ...after.tables.flatMap(({ table, here, there }) =>
      here === there ? [] : [`${table}: ${here} rows here, ${there} there`],
    ),
    ...after.contradictions,
    ...(more > 0 ? [`and ${more} more rows that are not alike`] : []),
  ]
}
