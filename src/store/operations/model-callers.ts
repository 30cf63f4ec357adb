import type { Db } from './operation.ts'
import { readUsageSums } from './read-sums.ts'

/** Maximum number of keys listed for one model. */
const MAX_KEYS = 1_000

/** A key that called a model, and its user; both may be deleted. */
export interface ModelCaller {
  readonly id: number
  readonly name: string
  readonly user_id: number
  readonly username: string
  readonly calls: number
}

/**
 * Returns the keys that called each of these models on some days (counted from 1970-01-01, UTC), most calls
 * first.
 */
export async function modelCallers(
  db: Db,
  {
    models,
    first,
    last,
  }: { readonly models: readonly string[]; readonly first: number; readonly last: number },
): Promise<{ readonly model: string; readonly keys: readonly ModelCaller[] }[]> {
  const found: { model: string; keys: readonly ModelCaller[] }[] = []
  for (const model of models) {
    const rows = await readUsageSums(db, {
      filter: { model: [model] },
      unit: 'day',
      starts: { first, last },
      by: 'token_id',
      columns: ['requests'],
    })
    const calls = new Map(rows.map(({ key, sums: [requests = 0] }) => [Number(key), requests]))
    const ids = [...calls.keys()]
      .filter((id) => (calls.get(id) ?? 0) > 0)
      .toSorted((a, b) => (calls.get(b) ?? 0) - (calls.get(a) ?? 0) || a - b)
      .slice(0, MAX_KEYS)
    const named =
      ids.length === 0
        ? []
        : await db
            .selectFrom('tokens')
            .innerJoin('users', 'users.id', 'tokens.user_id')
            .select(['tokens.id', 'tokens.name', 'tokens.user_id', 'users.username'])
            .where('tokens.id', 'in', ids)
            .execute()
    const byId = new Map(named.map((one) => [one.id, one]))
    const keys = ids.flatMap((id) => {
      const one = byId.get(id)
      return one ? [{ ...one, calls: calls.get(id) ?? 0 }] : []
    })
    found.push({ model, keys })
  }
  return found
}
