import type { Kysely } from 'kysely'
import type { RecordColumns } from '../../domain/records/record.ts'
import { TOKEN } from '../../domain/records/token.ts'
import { USAGE } from '../../domain/records/usage.ts'
import type { Database } from '../row-types.ts'
import type { ColumnTypes } from './schema/table.ts'

/** A step of a schema migration. */
export interface Step {
  readonly name: string
  /** Runs the step. The code is loaded only when needed, because most starts run no step. */
  readonly run: (db: Kysely<unknown>, types: ColumnTypes) => Promise<void>
  /**
   * Does the part of the step that takes long on a shared database, before all steps and outside their transaction, so that
   * nodes of an earlier version can report meanwhile. The next run continues one that was killed.
   */
  readonly prepare?: (db: Kysely<Database>, report: ReportProgress) => Promise<void>
}

/** Gets a sentence for the operator before each part of a migration that may take long. */
export type ReportProgress = (sentence: string) => void

/** All steps, in order. A step must not change after its release; a change needs a new step. */
export const STEPS: readonly Step[] = [
  {
    name: '0001-schema',
    run: async (db, types) => (await import('./schema/create-schema.ts')).createSchema(db, types),
  },
  {
    name: '0002-secret-state',
    run: async (db, types) => (await import('./schema/secret-state.ts')).createSecretState(db, types),
  },
  {
    name: '0003-histograms',
    run: async (db, types) => (await import('./schema/histograms.ts')).joinHistograms(db, types),
  },
  {
    name: '0004-kept',
    run: async (db, types) => (await import('./schema/kept.ts')).createKept(db, types),
  },
  {
    name: '0005-imported-keys',
    run: async (db, types) => (await import('./schema/imported-keys.ts')).addImportedKeys(db, types),
  },
  {
    name: '0006-unlimited-users',
    run: async (db, types) => (await import('./schema/unlimited-users.ts')).addUnlimitedUsers(db, types),
  },
  {
    name: '0007-key-ends',
    run: async (db, types) => (await import('./schema/key-ends.ts')).addKeyEnds(db, types),
  },
  {
    name: '0008-invitations',
    run: async (db, types) => (await import('./schema/invitations.ts')).createInvitations(db, types),
  },
  {
    name: '0009-transport',
    run: added(USAGE, 'transport'),
  },
  {
    name: '0010-toolsets',
    run: added(TOKEN, 'toolsets'),
  },
  {
    name: '0011-batch-lines',
    run: added(USAGE, 'batch', 'custom_id', 'batch_saved'),
  },
  {
    name: '0012-last-reports',
    run: async (db, types) => (await import('./schema/last-reports.ts')).createLastReports(db, types),
  },
  {
    name: '0013-answered-calls',
    run: added(USAGE, 'requests'),
  },
  {
    name: '0014-mail-password',
    run: async (db, types) => (await import('./schema/mail-password.ts')).removeMailPassword(db, types),
  },
  {
    name: '0015-call-ends',
    run: async (db) => (await import('./schema/call-ends.ts')).indexCallEnds(db),
    prepare: async (db, report) => (await import('./schema/call-ends.ts')).indexPartitions(db, report),
  },
  {
    name: '0016-refusals-by-user',
    run: async (db) => (await import('./schema/refusals-by-user.ts')).indexRefusalsByUser(db),
    prepare: async (db, report) =>
      (await import('./schema/refusals-by-user.ts')).buildRefusalsByUser(db, report),
  },
]

/** Adds columns of a record to a database that exists. A new database has them from the first step on. */
function added(record: RecordColumns & { readonly table: string }, ...columns: string[]): Step['run'] {
  return async (db, types) =>
    (await import('./schema/table.ts')).addMissingColumns(db, record, columns, types)
}

/** Maximum number of tables that are named. */
const MAX_NAMED = 5

/** Whether a first start that was killed before its first step can have left the table. */
export function isTableOfMigrations(name: string): boolean {
  return name.startsWith('kysely_migration')
}

/** Refuses a database that has tables, but in which no step has run. */
export function refuseForeignTables(tables: Iterable<string>): void {
  const names = [...tables].filter((name) => !isTableOfMigrations(name)).sort()
  if (names.length === 0) return
  const named = names.slice(0, MAX_NAMED).join(', ')
  throw new Error(
    `this is the database of another program (tables ${named}${names.length > MAX_NAMED ? ', …' : ''}), and was left as ` +
      'it is: name an empty one, or that of a gateway, in DATABASE_URL; "sluice import" copies from other gateways',
  )
}

/**
 * Whether all steps have run. Throws a sentence for the operator if the database was migrated by a newer
 * version, or created by a build from before the first release.
 */
export function isSchemaCurrent(run: readonly string[], steps: readonly Step[] = STEPS): boolean {
  const names = steps.map(({ name }) => name)
  if (run.length > 0 && !run.some((name) => name === names[0])) {
    throw new Error(
      'this database was made by a build of sluice from before version 0.1.0, which no version can read: ' +
        'start with a new database, or go on with that build',
    )
  }
  const unknown = run.filter((name) => !names.includes(name)).sort()
  if (unknown.length > 0) {
    throw new Error(
      `this database was changed by a newer version of sluice (its schema has "${unknown.join('", "')}", ` +
        `this version knows up to "${names.at(-1)}"): start that version, or go back to a copy made before it`,
    )
  }
  return run.length === names.length
}
