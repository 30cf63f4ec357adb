import { DatabaseSync } from 'node:sqlite'
import { migrateConnection } from '../../store/sqlite/migrate-connection.ts'

/** Object of a schema, as SQLite keeps it. */
interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly sql: string | null
}

/**
 * Refuses a database whose schema has views, triggers or virtual tables that no version of Sluice makes: they
 * would run what their author wrote as soon as the database is read or written. The triggers of a current
 * schema must be those of this version, word for word.
 */
export async function refuseForeignSchema(db: DatabaseSync, isCurrent: boolean): Promise<void> {
  const own = new DatabaseSync(':memory:')
  try {
    await migrateConnection(own)
    const expected = new Map(objectsOf(own).map((object) => [object.name, object]))
    for (const { type, name, sql } of objectsOf(db)) {
      const same = expected.get(name)
      const isOwnTrigger = type === 'trigger' && same?.type === type && (!isCurrent || same.sql === sql)
      if (!isOwnTrigger && runsCode(type, sql))
        throw new Error(
          `the database has a ${type} "${name}" that Sluice did not make: remove it, or copy a backup from before it`,
        )
    }
  } finally {
    own.close()
  }
}

function objectsOf(db: DatabaseSync): SchemaObject[] {
  return db.prepare('SELECT type, name, sql FROM sqlite_schema').all() as unknown as SchemaObject[]
}

/** Tells whether reading or writing the object runs something; plain tables have no computed columns. */
function runsCode(type: string, sql: string | null): boolean {
  if (type === 'view' || type === 'trigger') return true
  return sql !== null && (/^create virtual/i.test(sql) || /\b(?:generated always|as)\s*\(/i.test(sql))
}
