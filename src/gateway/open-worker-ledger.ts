import { hostname } from 'node:os'
import type { OwnerAnnouncer } from '../cluster/join-through-owner.ts'
import type { Workers } from '../cluster/join-through-owner.ts'
import type { BankClient } from '../accounts/ledger/bank-client.ts'
import { connectLedger } from '../accounts/ledger/leased-ledger.ts'
import { ChangedAccountsOutbox } from '../accounts/ledger/changed-accounts-outbox.ts'
import type { Link } from '../ipc/link.ts'
import type { Bank } from '../store/bank.ts'
import type { SettledCall } from '../domain/records/usage.ts'
import { NodeMessages } from '../store/node-messages.ts'
import { settleSecrets } from '../store/secret-state.ts'
import type { Secrets } from '../store/secrets.ts'
import { BatchPort } from '../store/sqlite/batch-port.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { BankRequest } from '../store/sqlite/owned-database.ts'
import type { Store } from '../store/store.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { OpenedLedger } from './open-ledger.ts'
import { pruneEmbeddedDatabase } from './prune.ts'

/** Options for opening the ledger of a worker. */
interface WorkerLedgerOptions {
  /** The database file. The main process has it open for writing. */
  readonly path: string
  readonly secrets: Secrets
  /** Unique name of this run of the worker, under which it reserves and leases quota. */
  readonly name: string
  readonly workers: Workers & { readonly announcer: OwnerAnnouncer }
}

/**
 * Opens the ledger of a worker. The main process writes to the database for it and leases quota to it; the
 * worker itself only reads the file.
 */
export async function openWorkerLedger(
  options: WorkerLedgerOptions,
): Promise<OpenedLedger & { readonly bankClient: BankClient }> {
  const { path, secrets, name, workers } = options
  const { link, announcer } = workers
  const port = new BatchPort((operations) => link.request('batch', operations))
  void link.closed.then(() => port.end(new Error('the owner of the database is gone')))
  const rows = await openSqliteStore({ path, secrets, thread: port })
  settleSecrets(secrets, await rows.read('secretState'))
  const settled = new ChangedAccountsOutbox()
  const leased = connectLedger({
    name,
    run: name,
    bank: bankOver(link),
    outbox: settled,
    rows,
    store: (bankClient) =>
      withSettlements(rows, (call) => {
        settled.add(call)
        bankClient.onSettled()
      }),
    announcer,
    onUnknownTokens: () => {},
  })
  const { store, ledger, bankClient } = leased
  await leased.start()
  return {
    store,
    databaseId: `${hostname()} ${path}`,
    ledger,
    node: name,
    messages: new NodeMessages(secrets),
    bankClient,
    firstCredentials: undefined,
    // The main process has already recovered the database.
    recovered: { count: 0, quota: 0 },
    others: workers,
    prune: workers.index === 1 ? pruneEmbeddedDatabase(store) : () => Promise.resolve({}),
    isReady: () => leased.isReady(),
    async close() {
      await leased.close()
      await store.close()
    },
  }
}

function bankOver(link: Link): Bank {
  const ask = async <Result>(request: BankRequest): Promise<Result> => {
    try {
      return await link.request<Result>('bank', request)
    } catch (error) {
      throw new StoreUnavailable('the database cannot lend quota', { cause: error })
    }
  }
  return {
    acquire: (requests, left) => ask(['acquire', requests, left]),
    apply: (calls, held) => ask(['apply', calls, held]),
    compare: () => ask(['compare']),
    release: (kept) => ask(['release', kept]),
    leave: () => ask(['leave']),
  }
}

function withSettlements(rows: Store, onSettled: (call: SettledCall) => void): Store {
  const write = async (name: string, input: unknown): Promise<unknown> => {
    const result: unknown = await rows.write(name as never, ...([input] as never))
    if (name === 'settle') onSettled(input as SettledCall)
    return result
  }
  return {
    read: (name, ...input) => rows.read(name, ...input),
    write: (name, ...[input]) => write(name, input) as never,
    get queued() {
      return rows.queued
    },
    failed: rows.failed,
    close: () => rows.close(),
  }
}
