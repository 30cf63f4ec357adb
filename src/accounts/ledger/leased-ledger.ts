import type { AccountName, Bank } from '../../store/bank.ts'
import type { NodeFile } from '../../store/node-file.ts'
import type { Listener } from '../../store/postgres/announcements.ts'
import type { RowStore, Store } from '../../store/store.ts'
import { BankClient, type BankClientDependencies } from './bank-client.ts'
import { LeasedAccounts } from './leased-accounts.ts'
import { Ledger } from './ledger.ts'
import type { OpenHold } from './open-hold.ts'
import { sharedStore } from './shared-store.ts'

/** Announcement that a node has started or stopped. */
export const NODES_CHANGED_ANNOUNCEMENT = 'nodes'

/** A node on a shared database, which spends what it borrows. */
interface LedgerNode extends Pick<BankClientDependencies, 'onReported' | 'onUnknownTokens'> {
  /** Name of this run of the process, under which its holds are recorded. */
  readonly run: string
  readonly bank: Bank
  /** The node's own file, with its holds and the settled calls that the bank may not have counted. */
  readonly file: NodeFile
  /** Rows of the shared database. */
  readonly rows: RowStore
  /** Sends texts to all nodes, and receives theirs. */
  readonly announcer: { announce(text: string): Promise<void>; listen(listener: Listener): unknown }
  /** Called when another node has started or stopped. */
  readonly onNodesChanged?: (() => void) | undefined
}

/** The ledger of one node, which borrows its quota. */
export interface LeasedLedger {
  readonly ledger: Ledger
  readonly accounts: LeasedAccounts
  readonly bankClient: BankClient
  readonly store: Store
  /** Reports the calls that an earlier run left unreported, and begins to borrow quota. */
  start(): Promise<void>
  /**
   * Resolves to true if the bank is reachable and charges can be written. Without the bank, calls with known
   * keys can still be charged while leased quota lasts.
   */
  isReady(): Promise<boolean>
  /** Reports all settled calls, and returns the borrowed quota except that of open holds. */
  close(): Promise<void>
}

/** Connects the ledger, its accounts and the client of the bank. */
export function connectLedger(from: LedgerNode): LeasedLedger {
  const { run, bank, file, rows, announcer, onReported, onUnknownTokens } = from
  const openHolds = (): Iterable<OpenHold> => [...ledger.openHolds, ...ledger.parkedHolds]
  const recall = (account: AccountName): Promise<void> => announcer.announce(`recall ${account} ${file.node}`)
  const bankClient = new BankClient({
    bank,
    file,
    openHolds,
    onReported,
    onReachabilityChange: (failure) => ledger.writes.storage.note('bank', failure),
    onUnknownTokens,
  })
  const accounts = new LeasedAccounts(rows, bankClient, recall, openHolds)
  const store = sharedStore(rows, {
    file,
    onSettled: () => bankClient.onSettled(),
    flush: () => bankClient.flush(),
    held: (account) => bankClient.held(account),
  })
  const ledger: Ledger = new Ledger(store, run, accounts)
  return {
    ledger,
    accounts,
    bankClient,
    store,
    async start() {
      await ledger.reserveParkedHolds((parked) => accounts.balancesOfParkedHold(parked))
      await bankClient.start()
      const to = { accounts, bankClient, name: file.node, onNodesChanged: from.onNodesChanged }
      announcer.listen({
        received: (text) => handleAnnouncement(text, to),
        connected: () => accounts.onAllChanged(),
      })
    },
    isReady: async () => bankClient.isConnected && (await ledger.probe()),
    close: () => bankClient.close({ isUnresolved: ledger.unresolved + ledger.parkedHolds.size > 0 }),
  }
}

/**
 * Pattern of account names: `u:3` (user), `t:5` (token) or `b:…` (budget, which may contain any characters).
 */
const ACCOUNT = '([ut]:\\d{1,16}|b:.+)'
const CHANGED = new RegExp(`^account ${ACCOUNT}$`, 's')
const WANTED = new RegExp(`^recall ${ACCOUNT} (\\S+)$`, 's')

/**
 * Handles an announcement of another node. `account u:3`: that account was changed. `recall t:5 NODE`:
 * that node needs the unused leases of that account. `nodes`: a node has started or stopped. Announcements
 * are not trusted: this node asks the bank, at most fifty times a second.
 */
function handleAnnouncement(
  text: string,
  to: Pick<LeasedLedger, 'accounts' | 'bankClient'> & {
    readonly name: string
    readonly onNodesChanged: (() => void) | undefined
  },
): void {
  const [, changed] = CHANGED.exec(text) ?? []
  const [, wanted, by] = WANTED.exec(text) ?? []
  if (text === NODES_CHANGED_ANNOUNCEMENT) to.onNodesChanged?.()
  else if (changed !== undefined) to.accounts.onChanged(changed as AccountName)
  else if (wanted === undefined) return
  else if (by !== to.name) to.bankClient.leases.requestRecall(wanted as AccountName)
  to.bankClient.reportSoon()
}
