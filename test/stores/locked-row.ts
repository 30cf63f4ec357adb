import { Client } from 'pg'

/** A row or table that another session keeps locked. */
export interface LockedRow {
  readonly unlock: () => Promise<void>
}

/** Locks the rows that a `select` names, in a separate session that does nothing else. */
export function lockRow(url: string, select: string): Promise<LockedRow> {
  return lock(url, `${select} for update`)
}

/** Locks a table even against reads, in the same way. */
export function lockTable(url: string, table: string): Promise<LockedRow> {
  return lock(url, `lock table ${table}`)
}

async function lock(url: string, statement: string): Promise<LockedRow> {
  const session = new Client({ connectionString: url })
  session.on('error', () => {})
  await session.connect()
  await session.query('begin')
  await session.query(statement)
  let ended: Promise<void> | undefined
  return { unlock: () => (ended ??= session.end()) }
}
