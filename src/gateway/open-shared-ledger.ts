import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { handleAnnouncement, NODES_CHANGED } from './account-announcements.ts'
import { recordFile } from './record-file.ts'
import { LeasedAccounts } from '../accounts/ledger/leased-accounts.ts'
import { Ledger } from '../accounts/ledger/ledger.ts'
import { sharedStore } from '../accounts/ledger/shared-store.ts'
import { BankClient } from '../accounts/ledger/bank-client.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import { postgresBank } from '../store/postgres/bank.ts'
import { BankConnection } from '../store/postgres/bank-connection.ts'
import { NodeMessages } from '../store/node-messages.ts'
import { LiveNodes } from '../store/postgres/live-nodes.ts'
import { openPostgresStore, type SharedRows } from '../store/postgres/open.ts'
import { slotsBefore } from './prune.ts'
import { pruneExpired, pruneParts } from '../store/prune.ts'
import { RELAY_ROLE } from '../store/postgres/relay-role.ts'
import { openNodeFile } from '../store/sqlite/open.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { OpenedLedger, StartupLog, OpenLedgerOptions } from './opened-ledger.ts'

/** Maximum time for which a start waits for the database server, which may be starting too. */
const CONNECT_TIMEOUT_MS = 30_000
/** Maximum time for which a start waits for the server to end the session of a machine that was lost. */
const NAME_TIMEOUT_MS = 8_000
const RETRY_MS = 1_000

/**
 * Opens the ledger of one node in a cluster: rows and bank on PostgreSQL, holds and outbox in the node's own
 * file. Before this resolves, it reports the outbox that an earlier run left in that file.
 */
export async function openSharedLedger({
  config,
  secrets,
  log,
  thread,
}: OpenLedgerOptions): Promise<OpenedLedger> {
  await using opened = new AsyncDisposableStack()
  const { environment } = config
  const messages = new NodeMessages(secrets)
  const url = environment.databaseUrl
  const rows = opened.adopt(
    await retryUntilAvailable(() => openPostgresStore({ url, secrets }), log),
    (open: SharedRows) => open.close(),
  )
  if (!rows.hasRelayRole) {
    log.warn(
      `the user of DATABASE_URL may not manage the role ${RELAY_ROLE}: calls are charged with that user's ` +
        'own rights (docs/ledger.md describes how to create the role by hand)',
    )
  }
  const { bankId, hasRelayRole } = rows
  const file = opened.adopt(
    await openNodeFile({ path: join(environment.dataDir, 'node.db'), bankId, thread }),
    (open) => open.close(),
  )
  const { node } = file
  const connection = opened.adopt(
    new BankConnection(url, {
      hasRole: hasRelayRole,
      node,
      onReconnected: () => bankClient.onReconnected(),
    }),
    (open) => open.close(),
  )
  // Runs before any recovery: the file may be a copy of the folder of a node that still runs, whose open
  // calls must not be settled here.
  await retryUntilAvailable(() => connection.query('select 1', []), log, NAME_TIMEOUT_MS)
  const announcements = opened.adopt(new Announcements(url, messages), (open) => open.close())
  const liveNodes = new LiveNodes(connection, node)
  const bankClient: BankClient = new BankClient({
    onReported: () => liveNodes.refresh(),
    bank: postgresBank(connection, node),
    file,
    openHolds: () => [...ledger.openHolds, ...ledger.parkedHolds],
    onReachabilityChange: (failure) => ledger.writes.storage.note('bank', failure),
    onUnknownTokens: (calls) => {
      const tokens = [...new Set(calls.map(({ token_id: tokenId }) => tokenId))].join(', ')
      log.warn(`${calls.length} calls could not be charged: the database does not know the tokens ${tokens}`)
    },
  })
  const accounts = new LeasedAccounts(rows, bankClient, (account) =>
    announcements.announce(`recall ${account} ${node}`),
  )
  const store = sharedStore(rows, {
    file,
    onSettled: () => bankClient.onSettled(),
    flush: () => bankClient.flush(),
  })
  const ledger: Ledger = new Ledger(store, randomUUID(), accounts)
  const firstCredentials = await recordFile(store, config)
  const recovered = await ledger.recover()
  await bankClient.start()
  const announceNodes = (): Promise<void> => announcements.announce(NODES_CHANGED).catch(() => {})
  opened.defer(async () => {
    await bankClient.close({ isUnresolved: ledger.unresolved + ledger.parkedHolds.size > 0 })
    await announceNodes()
  })
  const onNodesChanged = (): void => liveNodes.expire()
  announcements.listen({
    received: (text) => handleAnnouncement(text, { accounts, bankClient, node, onNodesChanged }),
    connected: () => accounts.onAllChanged(),
  })
  // Must be received before the first call, so that no change by another node is missed.
  await announcements.firstAttempt
  await announceNodes()
  const resources = opened.move()
  return {
    store,
    databaseId: bankId,
    messages,
    ledger,
    firstCredentials,
    recovered,
    node,
    others: { names: () => liveNodes.names },
    prune: async (days, signal) => ({
      ...(await rows.maintainUsageLog(days.log, signal)),
      removedResponses: await pruneExpired(rows, 'pruneResponses', Date.now(), signal),
      removedParts: await pruneParts(rows, Date.now(), signal),
      removedSignatures: await pruneExpired(rows, 'pruneSignatures', Date.now(), signal),
      removedBudgets: await pruneExpired(rows, 'pruneLentBudgets', Date.now(), signal),
      removedSlots: await pruneExpired(rows, 'pruneSlots', slotsBefore(days), signal),
      removedAuditEntries: await pruneExpired(rows, 'pruneAuditLog', Date.now(), signal),
    }),
    // Calls of known keys are answered without the database as long as leased quota lasts.
    isReady: async () => bankClient.isConnected && (await ledger.probe()),
    close: () => resources.disposeAsync(),
  }
}

// Servers that start together may become ready in any order.
async function retryUntilAvailable<Opened>(
  open: () => Promise<Opened>,
  log: StartupLog,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<Opened> {
  const endMs = performance.now() + timeoutMs
  let hasWarned = false
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > endMs) throw error
      if (!hasWarned) log.warn(`${error.message}; tried again for ${timeoutMs / 1000} seconds`)
      hasWarned = true
      await delay(RETRY_MS)
    }
  }
}
