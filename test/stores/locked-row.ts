import { Client } from 'pg'

/** A row that another session keeps locked. */
export interface LockedRow {
  readonly unlock: () => Promise<void>
}

/** Locks the rows that a `select` names, in a separate session that does nothing else. */
export async function lockRow(url: string, select: string): Promise<LockedRow> {
  const session = new Client({ connectionString: url })
  session.on('error', () => {})
  await session.connect()
  await session.query('begin')
  await session.query(`${select} for update`)
  let ended: Promise<void> | undefined
  return { unlock: () => (ended ??= session.end()) }
}
