import type { Kysely } from 'kysely'
import type { Database } from '../row-types.ts'

/** Open transaction in which an operation runs. It is rolled back if the operation throws. */
export type Db = Kysely<Database>

/**
 * Maximum number of values in one statement. Databases limit the number of parameters, and a long statement
 * blocks others.
 */
const MAX_VALUES = 5_000

/** Runs a statement for a limited number of values at a time, and joins the results. */
export async function inChunks<Value, Row>(
  values: readonly Value[],
  run: (some: readonly Value[]) => Promise<readonly Row[]>,
  size = MAX_VALUES,
): Promise<Row[]> {
  const rows: Row[] = []
  for (let start = 0; start < values.length; start += size)
    for (const row of await run(values.slice(start, start + size))) rows.push(row)
  return rows
}

/** Reads the names of users or API keys by id, including deleted ones. */
export async function namesOfAccounts(
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
