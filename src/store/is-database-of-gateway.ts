import { sqlitePath } from '../domain/database-url.ts'

/** Whether a database is that of a gateway, with a secret. Changes nothing. Rejects if it is that of another program. */
export async function isDatabaseOfGateway(url: string): Promise<boolean> {
  const path = sqlitePath(url)
  // Modules of the other kind of database are not loaded.
  if (path !== undefined) return (await import('./sqlite/prepare-database.ts')).isDatabaseOfGateway(path)
  return (await import('./postgres/open.ts')).isDatabaseOfGateway(url)
}
