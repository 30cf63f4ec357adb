import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Kysely, type LogConfig, SqliteAdapter, type SqliteDatabase, SqliteDialect } from 'kysely'
import type { Database } from '../row-types.ts'
import { boundValues } from './bound-values.ts'

/** Prepared statements that are cached; operations use a small number of different ones. */
const MAX_STATEMENTS = 200

/** Wraps a connection with Kysely; transactions begin and end outside. */
export function createKysely(connection: DatabaseSync, log?: LogConfig): Kysely<Database> {
  return new Kysely<Database>({
    dialect: new TransactionalSqliteDialect({ database: cachingStatements(connection) }),
    ...(log ? { log } : {}),
  })
}

// SQLite supports schema changes in transactions, which Kysely's own adapter does not use.
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
