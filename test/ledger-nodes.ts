import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { BankClient } from '../src/accounts/ledger/bank-client.ts'
import { LeasedAccounts } from '../src/accounts/ledger/leased-accounts.ts'
import { Ledger } from '../src/accounts/ledger/ledger.ts'
import { sharedStore } from '../src/accounts/ledger/shared-store.ts'
import { postgresBank } from '../src/store/postgres/bank.ts'
import { BankConnection } from '../src/store/postgres/bank-connection.ts'
import { openNodeFile } from '../src/store/sqlite/open.ts'
import type { Rows, Store } from '../src/store/store.ts'
import { temporaryFolder } from './store-rows.ts'

/** One node of a cluster, in this process. */
export interface LedgerNode {
  readonly ledger: Ledger
  readonly accounts: LeasedAccounts
  readonly bankClient: BankClient
  readonly store: Store
  readonly close: () => Promise<void>
}

/** Nodes in one process, which receive each other's recalls. */
export async function nodesOn(rows: Rows, place: string, count: number): Promise<readonly LedgerNode[]> {
  const nodes: LedgerNode[] = []
  for (let index = 0; index < count; index += 1) {
    const file = await openNodeFile({ path: join(temporaryFolder(), 'node.db'), bankId: 'bank' })
    const connection = new BankConnection(place, { hasRole: true })
    const bankClient = new BankClient({
      bank: postgresBank(connection, file.node),
      file,
      openHolds: () => ledger.openHolds,
      onReachabilityChange: () => {},
      onUnknownTokens: () => expect.unreachable('every token is known'),
    })
    const accounts = new LeasedAccounts(rows, bankClient, async (account) => {
      for (const other of nodes) {
        if (other.bankClient === bankClient) continue
        other.bankClient.leases.requestRecall(account)
        other.bankClient.ask()
      }
    })
    const store = sharedStore(rows, {
      file,
      onSettled: () => bankClient.onSettled(),
      flush: () => bankClient.flush(),
    })
    const ledger: Ledger = new Ledger(store, 'run', accounts)
    await bankClient.start()
    let closing: Promise<void> | undefined
    const close = (): Promise<void> =>
      (closing ??= bankClient.close({ isUnresolved: ledger.openHolds.size > 0 }).then(async () => {
        await connection.close()
        await file.close()
      }))
    onTestFinished(close)
    nodes.push({ ledger, accounts, bankClient, store, close })
  }
  return nodes
}
