import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { recordConfiguration } from './record-configuration.ts'
import {
  type LeasedLedger,
  connectLedger,
  NODES_CHANGED_ANNOUNCEMENT,
} from '../accounts/ledger/leased-ledger.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import { postgresBank } from '../store/postgres/bank.ts'
import { BankConnection } from '../store/postgres/bank-connection.ts'
import { NodeMessages } from '../store/node-messages.ts'
import { LiveNodes } from '../store/postgres/live-nodes.ts'
import { openPostgresStore, type SharedRows } from '../store/postgres/open.ts'
import { pruneParts } from './prune.ts'
import { RELAY_ROLE } from '../store/postgres/relay-role.ts'
import { openNodeFile } from '../store/sqlite/open.ts'
import { DatabaseAddressError, StoreUnavailable } from '../store/store-unavailable.ts'
import type { OpenedLedger, StartupLog, OpenLedgerOptions } from './open-ledger.ts'

/** Maximum milliseconds for which a start waits for the database server, which may be starting too. */
const CONNECT_TIMEOUT_MS = 30_000
/**
 * Maximum milliseconds for which a start waits for the database server to close the connection of this node's
 * earlier run.
 */
const NAME_TIMEOUT_MS = 8_000
const RETRY_MS = 1_000

/**
 * Opens the ledger of a node that shares a PostgreSQL database with others. Users, usage and balances are in
 * PostgreSQL; reserved quota, and charges that are not reported yet, are in a file of the node. Charges that
 * an earlier run left in that file are reported before this resolves.
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
    await retryUntilAvailable(
      () => openPostgresStore({ url, secrets, report: (sentence) => log.info(sentence) }),
      log,
    ),
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
      onReconnected: () => leased.bankClient.onReconnected(),
    }),
    (open) => open.close(),
  )
  // This query must succeed before calls are recovered: the file may be a copy from a node that is still
  // running, whose open calls must not be charged here.
  await retryUntilAvailable(() => connection.query('select 1', []), log, NAME_TIMEOUT_MS)
  const announcements = opened.adopt(new Announcements(url, messages), (open) => open.close())
  const liveNodes = new LiveNodes(connection, node)
  const leased: LeasedLedger = connectLedger({
    run: randomUUID(),
    bank: postgresBank(connection, node),
    file,
    rows,
    announcer: announcements,
    onNodesChanged: () => liveNodes.expire(),
    onReported: () => liveNodes.refresh(),
    onUnknownTokens: (calls) => {
      const tokens = [...new Set(calls.map(({ token_id: tokenId }) => tokenId))].join(', ')
      log.warn(`${calls.length} calls could not be charged: the database does not know the tokens ${tokens}`)
    },
  })
  const { store, ledger } = leased
  const firstCredentials = await recordConfiguration(store, config)
  const recovered = await ledger.recover()
  await leased.start()
  const announceNodes = (): Promise<void> =>
    announcements.announce(NODES_CHANGED_ANNOUNCEMENT).catch(() => {})
  opened.defer(async () => {
    await leased.close()
    await announceNodes()
  })
  // Wait until announcements are received, so that no change by another node is missed from the first call
  // on.
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
    pruneParts: pruneParts(
      rows,
      (days, signal) => rows.maintainUsageLog(days.log, signal),
      'pruneLentBudgets',
    ),
    isReady: () => leased.isReady(),
    close: () => resources.disposeAsync(),
  }
}

/**
 * Tries again until the database server is available, because servers that start together become ready in any
 * order.
 */
export async function retryUntilAvailable<Opened>(
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
      const isPassing = error instanceof StoreUnavailable && !(error instanceof DatabaseAddressError)
      if (!isPassing || performance.now() > endMs) throw error
      if (!hasWarned) log.warn(`${error.message}; tried again for ${timeoutMs / 1000} seconds`)
      hasWarned = true
      await delay(RETRY_MS)
    }
  }
}
