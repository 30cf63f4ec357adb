import { onTestFinished } from 'vitest'
import type { SettledCall } from '../../src/domain/records/usage.ts'
import { serializeForOutbox } from '../../src/store/usage-row.ts'
import { BankConnection } from '../../src/store/postgres/bank-connection.ts'
import { postgresBank } from '../../src/store/postgres/bank.ts'
import type { RowStore, Store } from '../../src/store/store.ts'
import { type Engine, PATIENCE_MS, type TestDatabase } from '../stores/engines.ts'

/** Charges calls as a node does: by settlements on SQLite, by a report to the bank on PostgreSQL. */
export async function settleAll(
  engine: Engine,
  { store, database }: { readonly store: RowStore; readonly database: TestDatabase },
  calls: readonly SettledCall[],
): Promise<void> {
  if (engine.name === 'SQLite') {
    await Promise.all(calls.map((call) => (store as Store).write('settle', call)))
    return
  }
  const connection = new BankConnection(database.place, { hasRole: true, timeoutMs: PATIENCE_MS })
  onTestFinished(() => connection.close())
  await postgresBank(connection, 'a').apply(calls.map(serializeForOutbox), [])
}
