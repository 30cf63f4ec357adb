import { setTimeout as delay } from 'node:timers/promises'
import { mergeMetricsTexts } from '../../telemetry/merge-metrics-texts.ts'
import { METRICS } from '../../telemetry/metric-table.ts'
import { metricsText } from '../../telemetry/series.ts'
import { WorkerProcess } from './worker-process.ts'
import { randomUUID } from 'node:crypto'
import { gatewaySecrets } from '../gateway-secrets.ts'
import { recordConfiguration } from '../record-configuration.ts'
import type { FirstCredentials } from '../seed-accounts.ts'
import type { Config } from '../../config/config.ts'
import type { FileTexts } from '../../config/read-file.ts'
import { sqlitePath } from '../../domain/database-url.ts'
import type { Settings } from '../../domain/settings.ts'
import { SlotsOfWorkers, PermitsOfWorkers } from '../../limits/owner-peers.ts'
import type { CountedLimit } from '../../limits/rate-counter.ts'
import type { SlotReport, PermitRequest } from '../../limits/peers.ts'
import { type LiveQuery, liveQueryKey } from '../../management/usage/live-source.ts'
import { LocalDigests, type ProcessDigests } from '../../relay/digests/digest-store.ts'
import { answerPreviousCalls, LocalPreviousCalls } from '../../relay/affinity/previous-calls.ts'
import { EqualCallRegistry } from '../../relay/answer-cache/equal-calls-of-other-workers.ts'
import { answerDigestRequests } from '../../relay/digests/owner-digests.ts'
import { type DataFolderLock, waitAndLockDataFolder } from '../../store/data-folder.ts'
import { type BankRequest, openOwnedDatabase, type OwnedDatabase } from '../../store/sqlite/owned-database.ts'
import type { WorkerCallBatch } from '../exchange-calls-between-workers.ts'
import { explainError, urlOfAddress } from '../listen.ts'
import { CAN_SHARE_ADDRESS, freePort } from '../listeners.ts'
import { openLog } from '../open-log.ts'
import { reloadOnChange, type ReloadResult } from '../reload.ts'
import { SharedSockets } from './shared-sockets.ts'
import { WorkerPool } from './worker-pool.ts'

/** Maximum milliseconds for which a worker's metrics are awaited. */
const WAIT_MS = 1_000

/**
 * Collects the metrics of all workers. The last counters of a worker that has ended are kept, because a sum
 * that decreases would look like a restart of all workers.
 */
export class WorkerMetrics {
  readonly #workers: () => readonly WorkerProcess[]
  readonly #last = new Map<WorkerProcess, string>()
  #ended: readonly [string] | undefined

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers
  }

  /**
   * Metrics, as Prometheus text, of the other workers, of ended workers, and of this process. `own` are those
   * of the worker that requests them.
   */
  async collect(requester: WorkerProcess, own: string): Promise<readonly string[]> {
    this.#last.set(requester, own)
    const others = this.#workers().filter((worker) => worker !== requester)
    const texts = await Promise.all(others.map((worker) => this.#read(worker)))
    return [...texts.filter((text) => text !== ''), ...(this.#ended ?? []), ownText()]
  }

  /** Keeps the counters of a worker that has ended, so that sums do not decrease. */
  keepOf(worker: WorkerProcess): void {
    const last = this.#last.get(worker)
    this.#last.delete(worker)
    if (last === undefined) return
    this.#ended = [mergeMetricsTexts([...(this.#ended ?? []), last], { countersOnly: true })]
  }

  async #read(worker: WorkerProcess): Promise<string> {
    const reading = worker.link.request<string>('own metrics').catch(() => '')
    const text = await Promise.race([reading, delay(WAIT_MS, '', { ref: false })])
    if (text !== '') this.#last.set(worker, text)
    return text
  }
}

function ownText(): string {
  const { name, help, type } = METRICS.residentMemory
  const samples = [{ name, labels: {}, value: process.memoryUsage.rss() }]
  return metricsText([{ name, help, type, samples: () => samples }])
}

/**
 * Maximum milliseconds for which a start waits for the port, because workers of a killed main process may
 * still be ending.
 */
const PORT_TIMEOUT_MS = 3_000
const PORT_RETRY_MS = 20

/** A gateway of several worker processes. */
interface OwnedGateway {
  readonly url: string
  readonly settings: Settings
  readonly firstCredentials: FirstCredentials | undefined
  readonly recovered: { readonly count: number; readonly quota: number }
  readonly failed: Promise<Error>
  close(): Promise<number>
}

/**
 * Starts a gateway of several worker processes. This process, the owner, writes to the database, leases quota
 * to the workers and counts their rate limits; it accepts no calls itself. `locked` is the lock on the data
 * folder, if it is already held. Rejects with an error message for the operator.
 */
export async function startOwner(config: Config, locked?: DataFolderLock): Promise<OwnedGateway> {
  await using opened = new AsyncDisposableStack()
  const { environment } = config
  const path = sqlitePath(environment.databaseUrl)
  if (path === undefined) throw new Error(NOT_ON_POSTGRES)
  if (!CAN_SHARE_ADDRESS) throw new Error('several workers need Linux, which spreads connections over them')
  const { log, lines } = openLog(environment, 'owner')
  opened.adopt(lines, (open) => open.close())
  if (environment.redisUrl !== undefined)
    log.warn('REDIS_URL is not used: limits of workers are counted on this machine')
  const folder = opened.adopt(
    locked ?? (await waitAndLockDataFolder(environment.dataDir, 'gateway')),
    (lock) => lock.release(),
  )
  if (folder.warning !== undefined) log.warn(folder.warning)
  const { host } = environment
  const port = await portOf(environment)
  const sockets = opened.adopt(await SharedSockets.bind({ host, port }, environment.workers), (open) =>
    open.close(),
  )
  let crew: WorkerPool | undefined
  const announce = (text: string): void => {
    for (const { link } of crew?.workers ?? []) link.send('announce', text)
  }
  const database = opened.adopt(
    await openOwnedDatabase({
      path,
      secrets: gatewaySecrets(environment),
      announce: (account) => announce(`account ${account}`),
    }),
    (open) => open.close(),
  )
  const firstCredentials = await recordConfiguration(database.store, config)
  const recovered = await database.store.write('recover', { owner: randomUUID(), nowMs: Date.now() })
  await database.store.write('lapseClaims', { node: undefined })
  let { texts } = config
  const { workers: planned, configFile, variables } = environment
  const slots = new SlotsOfWorkers()
  const metrics = new WorkerMetrics(() => started.serving)
  const followed = new FollowedCalls(() => started.workers)
  const shared = {
    database,
    announce,
    permits: new PermitsOfWorkers(),
    slots,
    metrics,
    prompts: new LocalDigests(),
    sessions: new LocalDigests(),
    previous: new LocalPreviousCalls(),
    equal: new EqualCallRegistry(),
  }
  let unresolved = 0
  const started: WorkerPool = new WorkerPool({
    planned,
    sockets,
    async start(index) {
      const worker = await WorkerProcess.start(index, variables)
      const { name, link } = worker
      answerWorker(worker, { ...shared, crew: started })
      followed.add(worker)
      link.answer('setup', () => ({ index, planned, name, port, configFile, texts }))
      link.answer('end', (end: { unresolved: number }) => void (unresolved += end.unresolved))
      return worker
    },
    async lose(worker) {
      // Both are started at the same time, because the database is closed as soon as the first one fails.
      const [{ count, quota }] = await Promise.all([
        database.lose(worker.name),
        database.store.write('lapseClaims', { node: worker.name }),
      ])
      slots.drop(worker.name)
      followed.drop(worker)
      metrics.keepOf(worker)
      if (count > 0)
        log.warn({ worker: worker.index, calls: count, quota }, 'calls of a lost worker were settled')
    },
    log,
  })
  crew = started
  opened.defer(() => started.kill())
  await started.start()

  const reloading = await reloadOnChange(
    config,
    async (next) => {
      await applyInTurn(started, next.texts)
      ;({ texts } = next)
    },
    (result: ReloadResult) => started.serving[0]?.link.send('reloaded', result),
    log,
  )
  opened.defer(() => reloading.close())
  const everything = opened.move()
  return {
    url: urlOfAddress({ host, port }),
    settings: config.settings,
    firstCredentials,
    recovered,
    failed: database.failed,
    async close() {
      await reloading.close()
      await started.stop()
      await everything.disposeAsync()
      return unresolved
    },
  }
}

const NOT_ON_POSTGRES =
  'several workers share the embedded database; on PostgreSQL, start several gateways instead, each with a ' +
  'DATA_DIR of its own (docs/scaling.md)'

async function portOf(address: { readonly host: string; readonly port: number }): Promise<number> {
  const endMs = performance.now() + PORT_TIMEOUT_MS
  for (;;) {
    try {
      return await freePort(address)
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (!isTaken || performance.now() > endMs) throw explainError(error as NodeJS.ErrnoException, address)
    }
    await new Promise((resolve) => setTimeout(resolve, PORT_RETRY_MS))
  }
}

// Applies the configuration to one worker first, which may refuse it. If another worker then fails, it is
// replaced by one that starts with the new configuration.
async function applyInTurn(crew: WorkerPool, texts: FileTexts): Promise<void> {
  const [first, ...others] = crew.serving
  await first?.link.request('reload', texts)
  await Promise.all(others.map((worker) => worker.link.request('reload', texts).catch(() => worker.kill())))
}

/** Objects of the main process that all workers use. */
interface SharedResources {
  readonly database: OwnedDatabase
  /** Sends a message to all workers. */
  readonly announce: (text: string) => void
  readonly permits: PermitsOfWorkers
  readonly slots: SlotsOfWorkers
  readonly prompts: ProcessDigests
  readonly sessions: ProcessDigests
  readonly previous: LocalPreviousCalls
  readonly equal: EqualCallRegistry
  readonly metrics: WorkerMetrics
  readonly crew: WorkerPool
}

/** Answers a worker's requests to this process. */
function answerWorker(worker: WorkerProcess, services: SharedResources): void {
  const { link, name } = worker
  const { database, announce, permits, slots, metrics, prompts, sessions, previous, equal, crew } = services
  link.answer('batch', (operations: Parameters<OwnedDatabase['write']>[1]) =>
    database.write(name, operations),
  )
  link.answer('bank', (request: BankRequest) => database.bank(name, request))
  link.on('announce', announce)
  link.answer('permits', ([counted, request]: [CountedLimit, PermitRequest]) =>
    permits.exchange(counted, request, crew.serving.length),
  )
  link.answer('slots', ([subject, report]: [string, SlotReport]) => slots.exchange(name, subject, report))
  answerDigestRequests(link, 'prompt', prompts)
  answerDigestRequests(link, 'session', sessions)
  answerPreviousCalls(link, previous)
  equal.add(name, link)
  link.answer('ready', () => crew.ready(worker))
  link.on('leaving', () => crew.leaving(worker))
  link.answer('metrics of others', (own: string) => metrics.collect(worker, own))
}

/** Passes each worker's settled calls on to the workers whose clients follow such calls live. */
class FollowedCalls {
  readonly #workers: () => readonly WorkerProcess[]
  /** Queries of each worker's clients that follow calls live, by name. */
  readonly #followers = new Map<WorkerProcess, ReadonlyMap<string, LiveQuery>>()

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers
  }

  /** Answers the requests of a worker that has started. */
  add(worker: WorkerProcess): void {
    worker.link.on('follow', (queries: readonly LiveQuery[]) => {
      this.#followers.set(worker, new Map(queries.map((query) => [liveQueryKey(query), query])))
      this.#announce()
    })
    worker.link.on('settled', (turn: WorkerCallBatch) => {
      for (const [follower, queries] of this.#followers)
        if (follower !== worker && queries.has(turn.name)) follower.link.send('settled', turn)
    })
    this.#sendState(worker)
  }

  drop(worker: WorkerProcess): void {
    if (this.#followers.delete(worker)) this.#announce()
  }

  #announce(): void {
    for (const worker of this.#workers()) this.#sendState(worker)
  }

  #sendState(worker: WorkerProcess): void {
    const others = [...this.#followers].filter(([follower]) => follower !== worker)
    const queries = new Map(others.flatMap(([, wanted]) => [...wanted]))
    worker.link.send('followed', [...queries.values()])
  }
}
