import type { Secrets } from '../secrets.ts'
import type { Store } from '../store.ts'

/** Opens the database file. */
export async function openSqliteStore(_options: { path: string; secret: Secrets }): Promise<Store> {
  throw new Error('not yet')
}
