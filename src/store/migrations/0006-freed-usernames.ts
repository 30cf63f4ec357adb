import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Frees the names of users that were deleted before deletion did so. One that is taken already stays as it
 * is.
 */
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
