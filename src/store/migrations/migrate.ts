import { type Kysely, sql } from 'kysely'
import { DEFAULT_MIGRATION_TABLE, type Migration, Migrator } from 'kysely/migration'
import { installBank } from '../postgres/install-bank.ts'
import type { Database } from '../row-types.ts'
import type { ColumnTypes } from './schema/table.ts'
import { isSchemaCurrent, refuseForeignTables, type ReportProgress, type Step, STEPS } from './steps.ts'

/**
 * Migrates the schema to this version. All missing steps run in one transaction, so that a crash leaves the
 * schema unchanged; what they prepare before it changes nothing for nodes of an earlier version. Rejects if the database
 * is of a newer version, or was created by a build from before the first release.
 */
export async function migrateToLatest(
  db: Kysely<Database>,
  types: ColumnTypes,
  steps: readonly Step[] = STEPS,
  report: ReportProgress = () => {},
): Promise<void> {
  const run = await stepsRun(db, types)
  if (isSchemaCurrent(run, steps)) return
  // A new database has nothing to prepare.
  if (types.isShared && run.length > 0)
    for (const { name, prepare } of steps) if (!run.includes(name)) await prepare?.(db, report)
  const migrations = Object.fromEntries(
    steps.map((step) => [step.name, migrationOf(step, types, step === steps.at(-1))]),
  )
  const provider = { getMigrations: () => Promise.resolve(migrations) }
  const { error } = await new Migrator({ db, provider }).migrateToLatest()
  if (error === undefined) return
  const reason = error instanceof Error ? `: ${error.message}` : ''
  throw new Error(`the schema of the database could not be brought up to date${reason}`, { cause: error })
}

/**
 * Converts a step to a migration. On a shared database the last one ends by installing this version's SQL functions of the
 * bank, which may name columns of every step.
 */
function migrationOf({ run }: Step, types: ColumnTypes, isLast: boolean): Migration {
  return {
    async up(db: Kysely<unknown>) {
      if (types.isShared) await keepReportsAway(db)
      await run(db, types)
      if (types.isShared && isLast) await installBank(db)
    },
  }
}

/**
 * Locks the table of users, because each report of a node locks rows of it first. Otherwise a report that
 * began before the migration could continue after it with the previous version of a function, or cause a
 * deadlock.
 */
async function keepReportsAway(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql`select 1 where to_regclass('users') is not null`.execute(db)
  if (rows.length > 0) await sql`lock table users in exclusive mode`.execute(db)
}

/** Tables in the schema in which Sluice makes its own, but for those of extensions. */
export async function tablesIn(db: Kysely<Database>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = current_schema() and relkind in ('r', 'p') and not exists (
      select from pg_depend
      where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')`.execute(db)
  return rows.map(({ name }) => name)
}

/**
 * Names of the steps that have run in a database. Rejects if a shared one is of another program; of a file, `prepareDatabase`
 * has checked that.
 */
export async function stepsRun(db: Kysely<Database>, { isShared }: ColumnTypes): Promise<string[]> {
  // Read before the steps: another node may create the tables meanwhile, and records its steps in the same transaction.
  const tables = isShared ? await tablesIn(db) : []
  const run = await recordedSteps(db)
  if (run.length === 0) refuseForeignTables(tables)
  return run
}

async function recordedSteps(db: Kysely<Database>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some((table) => table.name === DEFAULT_MIGRATION_TABLE)) return []
  const rows = await db
    .withTables<{ kysely_migration: { name: string } }>()
    .selectFrom(DEFAULT_MIGRATION_TABLE)
    .select('name')
    .execute()
  return rows.map((row) => row.name)
}
