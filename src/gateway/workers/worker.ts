import { flushCompileCache } from 'node:module'
import { Socket } from 'node:net'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '../app.ts'
import { gatewaySecrets } from '../gateway-secrets.ts'
import { openWorkerLedger } from '../open-worker-ledger.ts'
import { OwnerAnnouncer } from '../../cluster/join-through-owner.ts'
import { readConfig } from '../../config/config.ts'
import type { Environment } from '../../config/environment.ts'
import { sqlitePath } from '../../domain/database-url.ts'
import { Link } from '../../ipc/link.ts'
import { setCollectorFlags } from '../v8-flags.ts'
import { prepareServer } from '../listen.ts'
import { startHelperThreads } from '../start-helper-threads.ts'
import { openLog } from '../open-log.ts'
import { serveGateway } from '../serve.ts'
import { waitForStopSignal } from '../stop-signals.ts'
import { SocketsFromOwner } from './sockets-from-owner.ts'
import { type WorkersState, LINK_DESCRIPTOR, type WorkerEnd, type WorkerSetup } from './worker-messages.ts'

/** Maximum milliseconds that a worker which ends waits until its last message is sent. */
const GOODBYE_MS = 1_000

/**
 * Runs a worker: accepts calls until the main process or a signal stops it. If the main process is gone, this
 * process ends at once, because it could not charge any calls; the next start charges those that were
 * running.
 */
export async function runWorker(given: Environment): Promise<number> {
  const link = new Link(new Socket({ fd: LINK_DESCRIPTOR }))
  void link.closed.then(() => process.exit(1))
  // SIGHUP to the process group is meant for the main process, which reads the configuration.
  process.on('SIGHUP', () => {})
  const stopping = Promise.race([
    waitForStopSignal(),
    new Promise<void>((resolve) => link.on('stop', resolve)),
  ])
  const setup = await link.request<WorkerSetup>('setup')
  const { index, planned, name, port, configFile } = setup
  const environment = { ...given, configFile }
  await using opened = new AsyncDisposableStack()
  const { log, lines } = openLog(environment, index)
  opened.adopt(lines, (open) => open.close())
  const helpers = startHelperThreads(opened, log)
  let app: App | undefined
  const server = opened.adopt(
    prepareServer(() => app),
    (open) => open.close(),
  )
  if (server.fewConnections && index === 1) log.warn(server.fewConnections)
  let crew: WorkersState = { count: planned, isComplete: true }
  link.on('crew', (state: WorkersState) => (crew = state))
  link.answer('ping', () => {})
  const secrets = gatewaySecrets(environment)
  const accounts = opened.adopt(
    await openWorkerLedger({
      path: sqlitePath(environment.databaseUrl) ?? '',
      secrets,
      name,
      workers: {
        link,
        announcer: new OwnerAnnouncer(link),
        count: () => crew.count,
        isComplete: () => crew.isComplete,
        index,
        planned,
      },
    }),
    (open) => open.close(),
  )
  const config = readConfig(environment, setup.texts)
  const serving = opened.use(
    await serveGateway({
      config,
      log,
      lines,
      secrets,
      accounts,
      connections: server.connections,
      helpers,
    }),
  )
  app = serving.app
  const sockets = new SocketsFromOwner()
  const listening = await server.listen({ host: environment.host, port }, sockets.listen)
  opened.adopt(listening, (open) => open.close())
  link.answer('listening', () => sockets.listening)
  flushCompileCache()
  setCollectorFlags()
  await link.request('ready')
  await stopping
  // Tell the main process that this worker ends: the signal may have been sent to this worker only.
  link.send('leaving')
  const unresolved = await serving.drain(async (maxMs) => listening.stopListening(maxMs))
  await opened.disposeAsync()
  await Promise.race([link.request('end', { unresolved } satisfies WorkerEnd), delay(GOODBYE_MS)])
  return unresolved > 0 ? 1 : 0
}
