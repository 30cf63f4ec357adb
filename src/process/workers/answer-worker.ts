import type { CountedLimit } from '../../limits/limit-counter.ts'
import type { HeldPlaces } from '../../limits/held-places.ts'
import type { HeldShares } from '../../limits/held-shares.ts'
import type { PlaceReport } from '../../limits/place-peers.ts'
import type { ShareRequest } from '../../limits/share-messages.ts'
import type { BankRequest, OwnedDatabase } from '../../store/sqlite/owned-database.ts'
import type { CollectedMetrics } from './collected-metrics.ts'
import type { WorkerCrew } from './worker-crew.ts'
import type { WorkerProcess } from './worker-process.ts'

/** Services that the workers share. */
interface SharedParts {
  readonly database: OwnedDatabase
  /** Sends a text to all workers. */
  readonly announce: (text: string) => void
  readonly shares: HeldShares
  readonly places: HeldPlaces
  readonly metrics: CollectedMetrics
  readonly crew: WorkerCrew
}

/** Answers what a worker asks of the owner. */
export function answerWorker(worker: WorkerProcess, parts: SharedParts): void {
  const { link, name } = worker
  const { database, announce, shares, places, metrics, crew } = parts
  link.answer('batch', (operations: Parameters<OwnedDatabase['write']>[1]) =>
    database.write(name, operations),
  )
  link.answer('bank', (request: BankRequest) => database.bank(name, request))
  link.on('announce', announce)
  link.answer('share', ([counted, request]: [CountedLimit, ShareRequest]) =>
    shares.exchange(counted, request, crew.serving.length),
  )
  link.answer('places', ([subject, report]: [string, PlaceReport]) => places.exchange(name, subject, report))
  link.answer('ready', () => crew.ready(worker))
  link.on('leaving', () => crew.leaving(worker))
  link.answer('metrics of others', (own: string) => metrics.collect(worker, own))
}
