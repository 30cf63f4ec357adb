import {
  type DatabaseIntrospector,
  type DatabaseMetadataOptions,
  Kysely,
  type LogConfig,
  PostgresDialect,
  PostgresIntrospector,
  type PostgresPool,
  sql,
  type TableMetadata,
} from 'kysely'
import type { Database } from '../row-types.ts'

/** Creates a Kysely instance over a pool. Its introspection lists the tables of the current schema. */
export function createPostgresKysely(pool: PostgresPool, log?: LogConfig): Kysely<Database> {
  return new Kysely<Database>({ dialect: new CurrentSchemaDialect({ pool }), ...(log ? { log } : {}) })
}

class CurrentSchemaDialect extends PostgresDialect {
  override createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return new CurrentSchemaIntrospector(db)
  }
}

// Kysely's own introspector lists the tables of all schemas. One of another program could have the name of one of ours,
// and a step of the migration would not create that table.
class CurrentSchemaIntrospector extends PostgresIntrospector {
  readonly #db: Kysely<unknown>

  constructor(db: Kysely<unknown>) {
    super(db)
    this.#db = db
  }

  override async getTables(options?: DatabaseMetadataOptions): Promise<TableMetadata[]> {
    const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(this.#db)
    return (await super.getTables(options)).filter(({ schema }) => schema === rows[0]?.name)
  }
}
