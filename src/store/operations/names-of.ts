import type { Db } from './operation.ts'

/** Reads the names of users or API keys by their ids, deleted ones included. */
export async function namesOf(
  db: Db,
  by: string,
  keys: readonly (string | number)[],
): Promise<ReadonlyMap<string | number, string>> {
  if ((by !== 'user' && by !== 'token') || keys.length === 0) return new Map()
  const ids = keys as readonly number[]
  const rows =
    by === 'user'
      ? await db.selectFrom('users').select(['id', 'username as name']).where('id', 'in', ids).execute()
      : await db.selectFrom('tokens').select(['id', 'name']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}
