import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { seedAccounts } from './seed-accounts.ts'
import { LeasedAccounts } from '../ledger/leased-accounts.ts'
import { Ledger } from '../ledger/ledger.ts'
import { sharedStore } from '../ledger/shared-store.ts'
import { BankClient } from '../ledger/bank-client.ts'
import type { AccountName } from '../store/bank.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import { postgresBank } from '../store/postgres/bank.ts'
import { BankConnection } from '../store/postgres/bank-connection.ts'
import { openPostgresStore, type SharedRows } from '../store/postgres/open.ts'
import { RELAY_ROLE } from '../store/postgres/relay-role.ts'
import { openNodeFile } from '../store/sqlite/open-node-file.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { OpenedLedger, StartupLog, OpenLedgerOptions } from './opened-ledger.ts'

/** How long a start waits for a server that may be starting, too. */
const PATIENCE_MS = 30_000
const AGAIN_MS = 1_000

/**
 * Opens the ledger of one node among many: rows and bank on PostgreSQL, holds and what is not reported yet in
 * a file of its own. What an earlier run on that file left is reported before this resolves.
 */
export async function openSharedLedger({
  config,
  secrets,
  log,
  thread,
}: OpenLedgerOptions): Promise<OpenedLedger> {
  await using opened = new AsyncDisposableStack()
  const { environment } = config
  const url = environment.databaseUrl
  const rows = opened.adopt(
    await patiently(() => openPostgresStore({ url, secrets }), log),
    (open: SharedRows) => open.close(),
  )
  if (!rows.hasRelayRole) {
    log.warn(
      `the user of DATABASE_URL may not arrange the role ${RELAY_ROLE}: calls are charged with that user's own rights ` +
        '(docs/ledger.md tells how the role is made by hand)',
    )
  }
  const { bankId, hasRelayRole } = rows
  const file = opened.adopt(
    await openNodeFile({ path: join(environment.dataDir, 'node.db'), bankId, thread }),
    (open) => open.close(),
  )
  const connection = opened.adopt(new BankConnection(url, { hasRole: hasRelayRole }), (open) => open.close())
  const announcements = opened.adopt(new Announcements(url), (open) => open.close())
  const teller = new BankClient({
    bank: postgresBank(connection, file.node),
    file,
    openHolds: () => ledger.openHolds,
    onReachabilityChange: (trouble) => {
      if (trouble) log.warn(`calls go on with what is borrowed: ${trouble.message}`)
      else log.info('the database can be reached again')
    },
    onUnknownTokens: (calls) => {
      const tokens = [...new Set(calls.map(({ tokenId }) => tokenId))].join(', ')
      log.warn(`${calls.length} calls could not be charged: the database does not know the tokens ${tokens}`)
    },
  })
  const accounts = new LeasedAccounts(rows, teller, (account) =>
    announcements.announce(`recall ${account} ${file.node}`),
  )
  const store = sharedStore(rows, { file, onSettled: () => teller.onSettled(), flush: () => teller.flush() })
  const ledger: Ledger = new Ledger(store, randomUUID(), accounts)
  const firstCredentials = await seedAccounts(store, config.users)
  const recovered = await ledger.recover()
  await teller.start()
  opened.defer(() => teller.close({ isUnresolved: ledger.unresolved > 0 }))
  announcements.listen({
    received: (text) => heed(text, { accounts, teller, node: file.node }),
    connected: () => accounts.onAllChanged(),
  })
  // What others change is heard from the first call on.
  await announcements.firstAttempt
  const everything = opened.move()
  return {
    store,
    databaseId: bankId,
    ledger,
    firstCredentials,
    recovered,
    announcements,
    prune: (days, signal) => rows.maintainUsageLog(days, signal),
    // Calls of keys in use are answered without the database all the same, for as long as anything borrowed
    // can be spent.
    isReady: async () => teller.isConnected && (await ledger.probe()),
    close: () => everything.disposeAsync(),
  }
}

/**
 * `account u:3 7`: it was changed, its epoch is 7. `recall t:5 NODE`: that node needs of it what others do
 * not.
 */
function heed(
  text: string,
  to: { readonly accounts: LeasedAccounts; readonly teller: BankClient; readonly node: string },
): void {
  const [, word, account, rest] = /^(account|recall) ([ut]:\d+) (\S+)$/.exec(text) ?? []
  if (word === 'account') to.accounts.changed(account as AccountName, Number(rest))
  if (word === 'recall' && rest !== to.node) {
    to.teller.leases.requestRecall(account as AccountName)
    to.teller.wake()
  }
}

// Servers that start together need not start in order.
async function patiently<Opened>(open: () => Promise<Opened>, log: StartupLog): Promise<Opened> {
  const endMs = performance.now() + PATIENCE_MS
  let hasTold = false
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > endMs) throw error
      if (!hasTold) log.warn(`${error.message}; tried again for ${PATIENCE_MS / 1000} seconds`)
      hasTold = true
      await delay(AGAIN_MS)
    }
  }
}
