import type { ManagedUser } from '../../domain/records/user.ts'
import { managedUserFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Search for users. */
export interface UserSearch {
  /** Part of the username, display name or e-mail address, in any case; or the whole id. Empty = all. */
  readonly keyword: string
  /** Undefined = any group. */
  readonly group: string | undefined
  readonly offset: number
  readonly limit: number
}

/** Reads a page of the matching users that are not deleted, newest first, and their total number. */
export async function pageOfUsers(
  db: Db,
  search: UserSearch,
): Promise<{ readonly users: readonly ManagedUser[]; readonly total: number }> {
  const ids = await matchingIds(db, search)
  const shown = ids.slice(search.offset, search.offset + search.limit)
  if (shown.length === 0) return { users: [], total: ids.length }
  const rows = await db
    .selectFrom('users')
    .selectAll()
    .where('id', 'in', shown)
    .orderBy('id', 'desc')
    .execute()
  return { users: rows.map(managedUserFromRow), total: ids.length }
}

// Compares here, because databases differ in upper case beyond ASCII.
async function matchingIds(db: Db, { keyword, group }: UserSearch): Promise<number[]> {
  let query = db
    .selectFrom('users')
    .select(['id', 'username', 'display_name', 'email'])
    .where('deleted_time', 'is', null)
    .orderBy('id', 'desc')
  if (group !== undefined) query = query.where('group_name', '=', group)
  const sought = keyword.toLowerCase()
  return (await query.execute())
    .filter(
      (row) =>
        String(row.id) === keyword ||
        [row.username, row.display_name, row.email].some((text) => text.toLowerCase().includes(sought)),
    )
    .map(({ id }) => id)
}
