import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { comparableName } from '../../domain/username.ts'
import type { ColumnTypes } from './column-types.ts'

/** Users whose names one statement changes. */
const CHUNK = 500

/**
 * Adds the form in which names of users are compared. Its index is not unique, because users whose names are
 * equal already keep them; that new ones are not, the transactions ensure, which are serializable.
 */
export function comparableNames({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema.alterTable('users').addColumn('comparable_name', 'text').execute()
      const isPlain = isShared ? sql`username !~ '[^ -~]'` : sql`username not glob '*[^ -~]*'`
      const lower = isShared ? sql`lower(username collate "C")` : sql`lower(username)`
      await sql`update users set comparable_name = ${lower} where deleted_time is null and ${isPlain}`.execute(
        db,
      )
      await compareOthers(db)
      await db.schema.createIndex('users_by_comparable_name').on('users').column('comparable_name').execute()
    },
  }
}

async function compareOthers(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ id: number; username: string }>`
    select id, username from users where deleted_time is null and comparable_name is null`.execute(db)
  for (let start = 0; start < rows.length; start += CHUNK) {
    const some = rows.slice(start, start + CHUNK)
    const cases = some.map(({ id, username }) => sql`when ${sql.lit(id)} then ${comparableName(username)}`)
    const ids = some.map(({ id }) => sql.lit(id))
    await sql`update users set comparable_name = case id ${sql.join(cases, sql` `)} end
      where id in (${sql.join(ids)})`.execute(db)
  }
}
