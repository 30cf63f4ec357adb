import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Kysely, type LogConfig, SqliteAdapter, type SqliteDatabase, SqliteDialect } from 'kysely'
import type { Database } from '../row-types.ts'
import { boundValues } from './bound-values.ts'

/** Maximum number of cached prepared statements. Operations need only a small number of different ones. */
const MAX_STATEMENTS = 200

/** Creates a Kysely instance for a connection. It never begins or ends a transaction; the caller does. */
export function createKysely(connection: DatabaseSync, log?: LogConfig): Kysely<Database> {
  return new Kysely<Database>({
    dialect: new TransactionalSqliteDialect({ database: cachingStatements(connection) }),
    ...(log ? { log } : {}),
  })
}

// Kysely's own adapter does not run schema changes in transactions, although SQLite supports it.
class TransactionalSqliteDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalSqliteAdapter()
  }
}

class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

function cachingStatements(connection: DatabaseSync): SqliteDatabase {
  const statements = new Map<string, ReturnType<SqliteDatabase['prepare']>>()
  return {
    close: () => connection.close(),
    prepare(sql) {
      let statement = statements.get(sql)
      if (!statement) {
        statement = adaptStatement(connection.prepare(sql))
        if (statements.size >= MAX_STATEMENTS) statements.clear()
        statements.set(sql, statement)
      }
      return statement
    },
  }
}

function adaptStatement(statement: StatementSync): ReturnType<SqliteDatabase['prepare']> {
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...boundValues(parameters)),
    run: (parameters) => statement.run(...boundValues(parameters)),
    iterate: (parameters) => statement.iterate(...boundValues(parameters)),
  }
}
