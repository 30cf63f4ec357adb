import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished } from 'vitest'
import type { BankClient } from '../../src/accounts/ledger/bank-client.ts'
import type { LeasedAccounts } from '../../src/accounts/ledger/leased-accounts.ts'
import { connectLedger } from '../../src/accounts/ledger/leased-ledger.ts'
import { Ledger } from '../../src/accounts/ledger/ledger.ts'
import type { Listener } from '../../src/store/postgres/announcements.ts'
import { postgresBank } from '../../src/store/postgres/bank.ts'
import { BankConnection } from '../../src/store/postgres/bank-connection.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { RowStore, Store } from '../../src/store/store.ts'
import { BANKS } from './bank-fixture.ts'
import { PATIENCE_MS, rowsWithAccount } from '../stores/engines.ts'
import { addAccount, nodeFileAt, preparedFile, SECRETS, temporaryFolder } from '../stores/rows.ts'

/** The ledger of one process, in this one. */
export interface LedgerProcess {
  readonly ledger: Ledger
  readonly store: Store
  /** Undefined in a process that has the database to itself. */
  readonly bankClient: BankClient | undefined
}

/** The ledger of a process that borrows. */
export interface LedgerNode extends LedgerProcess {
  readonly accounts: LeasedAccounts
  readonly bankClient: BankClient
  readonly close: () => Promise<void>
}

/** Ledgers on one database, with one user and one token of that user. */
export interface LedgersOfBank<Node extends LedgerProcess = LedgerNode> {
  readonly store: RowStore
  readonly userId: number
  readonly tokenId: number
  /** The running processes; a crash replaces them. */
  readonly nodes: readonly Node[]
  /** Runs one statement on the database that has the accounts. */
  readonly sql: (statement: string) => Promise<Readonly<Record<string, unknown>>[]>
  /** Whether it has the open holds as well; nodes keep them in their own files. */
  readonly hasHolds: boolean
  /** Ends all processes as a kill would, and starts them again. */
  readonly crash: () => Promise<void>
}

/** Ledgers that borrow from one bank. */
export interface LedgersOnLease extends LedgersOfBank {
  /** The total that is lent of the token and the user. */
  readonly lent: () => Promise<number>
}

/** A kind of bank. */
export interface LedgerBank {
  readonly name: string
  readonly open: (count: number) => Promise<LedgersOnLease>
}

/** Nodes on PostgreSQL, if a server is available. */
export const LEDGER_BANKS: readonly LedgerBank[] = BANKS.map((engine) => ({
  name: `nodes on ${engine.name}`,
  async open(count: number): Promise<LedgersOnLease> {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    const { nodes, crash } = await nodesOn(store, database.place, count)
    const lent = async (): Promise<number> => {
      const [row] = await database.sql(
        'select (select coalesce(sum(amount), 0) from leases)::bigint as amounts, ' +
          '(select sum(leased) from tokens)::bigint as tokens, (select sum(leased) from users)::bigint as users',
      )
      return Number(row?.['amounts']) + Number(row?.['tokens']) + Number(row?.['users'])
    }
    return { store, userId, tokenId, nodes, sql: database.sql, hasHolds: false, crash, lent }
  },
}))

/** Every way in which ledgers reach their accounts. */
export const LEDGER_PLACES: readonly {
  readonly name: string
  readonly open: (count: number) => Promise<LedgersOfBank<LedgerProcess>>
  readonly isLeased: boolean
}[] = [
  { name: 'one process on SQLite', open: openAlone, isLeased: false },
  ...LEDGER_BANKS.map((bank) => ({ ...bank, isLeased: true })),
]

async function openAlone(): Promise<LedgersOfBank<LedgerProcess>> {
  const path = await preparedFile()
  const nodes: LedgerProcess[] = []
  let runs = 0
  const start = async (): Promise<LedgerProcess> => {
    const store = await openSqliteStore({ path, secrets: SECRETS, onCallingThread: true })
    const ledger = new Ledger(store, `run ${(runs += 1)}`)
    await ledger.recover()
    return { ledger, store, bankClient: undefined }
  }
  const process = await start()
  nodes.push(process)
  onTestFinished(() => nodes[0]?.store.close())
  return {
    ...(await addAccount(process.store)),
    nodes,
    get store() {
      return (nodes[0] ?? process).store
    },
    sql: (statement) => Promise.resolve(rowsIn(path, statement)),
    hasHolds: true,
    async crash() {
      await nodes[0]?.store.close()
      nodes[0] = await start()
    },
  }
}

function rowsIn(path: string, statement: string): Record<string, unknown>[] {
  const file = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
  try {
    return file.prepare(statement).all()
  } finally {
    file.close()
  }
}

/** Nodes in one process, which receive each other's recalls. */
export async function nodesOn(
  rows: RowStore,
  place: string,
  count: number,
): Promise<{ readonly nodes: readonly LedgerNode[]; readonly crash: () => Promise<void> }> {
  const folder = temporaryFolder()
  const listeners = new Set<Listener>()
  let runs = 0
  const start = async (index: number): Promise<LedgerNode & { readonly kill: () => Promise<void> }> => {
    const file = await nodeFileAt(join(folder, `node-${index}.db`))
    const connection = new BankConnection(place, { hasRole: true, timeoutMs: PATIENCE_MS })
    let own: Listener | undefined
    const leased = connectLedger({
      run: `run ${(runs += 1)}`,
      bank: postgresBank(connection, file.node),
      file,
      rows,
      announcer: {
        async announce(text) {
          for (const listener of listeners) listener.received(text)
        },
        listen: (listener) => listeners.add((own = listener)),
      },
      onUnknownTokens: () => expect.unreachable('every token is known'),
    })
    await leased.ledger.recover()
    await leased.start()
    const release = async (): Promise<void> => {
      if (own) listeners.delete(own)
      await connection.close()
      await file.close()
    }
    let closing: Promise<void> | undefined
    return {
      ...leased,
      close: () => (closing ??= leased.close().then(release)),
      async kill() {
        await whenWritten(leased)
        closing = release()
        await closing
        // Its client fails from now on; it need not be waited for.
        void leased.close()
      },
    }
  }
  const nodes = await Promise.all(Array.from({ length: count }, (_, index) => start(index)))
  onTestFinished(async () => void (await Promise.all(nodes.map(({ close }) => close()))))
  return {
    nodes,
    async crash() {
      for (const [index, node] of nodes.entries()) {
        await node.kill()
        nodes[index] = await start(index)
      }
    },
  }
}

/** Resolves once no write is under way, so that it is known which holds a kill finds on the disk. */
async function whenWritten({ ledger }: Pick<LedgerProcess, 'ledger'>): Promise<void> {
  do await ledger.probe()
  while ([...ledger.openHolds].some(({ isUnwritten, isDurable }) => !isUnwritten && !isDurable))
}
