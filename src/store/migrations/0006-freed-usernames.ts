import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Renames users that were deleted before deletion freed their names; skips a name that is taken. */
export function freedUsernames(): Migration {
  return {
    async up(db) {
      await sql`
        update users
        set first_username = coalesce(first_username, username), username = username || ' (deleted ' || id || ')'
        where deleted_time is not null
          and not exists (select 1 from users as other where other.username = users.username || ' (deleted ' || users.id || ')')
      `.execute(db)
    },
  }
}
