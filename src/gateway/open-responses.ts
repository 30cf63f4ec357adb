import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import { isHoldOfBatch } from '../domain/hold.ts'
import type { CallHandlers } from '../api/endpoint.ts'
import { renderError as renderAnyError } from '../api/envelopes.ts'
import type { Cluster } from '../cluster/join-cluster.ts'
import type { OpenedLedger } from './open-ledger.ts'
import { bufferCollector } from './heap-collector.ts'
import { isOfOneNode, type ObjectServices, openObjects } from './open-objects.ts'
import type { IdempotencyClaims } from '../features/equal-calls/idempotent-calls.ts'
import { FileStore } from '../features/batches/file-store.ts'
import { Batches, type BatchServices } from '../features/batches/batches.ts'
import { BatchRuns, type BatchRunServices } from '../features/batches/batch-runs.ts'
import { BatchStore } from '../features/batches/batch-store.ts'
import { ManagedBatches, type ManagedBatchServices } from '../features/batches/managed-batches.ts'
import { Files, type FileServices } from '../features/batches/files.ts'
import { KeptAnswers } from '../features/equal-calls/kept-answers.ts'
import {
  BackgroundCalls,
  type BackgroundCallServices,
} from '../features/stored-responses/background-calls.ts'
import { FreeSpaceMonitor, measureDiskSpace, type SpaceLog } from '../store/free-space-monitor.ts'
import {
  StoredResponses,
  type StoredResponseEndpoints,
} from '../features/stored-responses/stored-responses.ts'
import { SignatureStore } from '../features/stored-responses/signature-store.ts'
import { ResponseStore } from '../features/stored-responses/response-store.ts'
import { KeptStore } from '../store/kept-store.ts'
import { type Secrets, hmacOf } from '../store/secrets.ts'

/**
 * Stored responses and signatures that later calls can refer to, and calls whose responses are still being
 * generated in the background.
 */
interface OpenedResponses {
  readonly responses: ResponseStore
  readonly answers: KeptAnswers
  readonly files: FileStore
  readonly kept: KeptStore
  /** Holds of batches that an earlier run of this node left. */
  readonly batchHolds: readonly OpenHold[]
  readonly claims: IdempotencyClaims
  readonly background: BackgroundCalls
  readonly signatures: SignatureStore
  /** Monitor of the free space of the data folder; undefined if the database server is on another machine. */
  readonly room: FreeSpaceMonitor | undefined
  /** Whether all nodes of the database read and write the same files. */
  readonly hasSharedFiles: () => boolean
  close(): Promise<void>
}

/** Opens the store of responses, and continues to follow calls that an earlier run left in the background. */
export async function openResponses(
  { store, others, node }: Pick<OpenedLedger, 'store' | 'others' | 'node'>,
  secrets: Secrets,
  {
    environment,
    announcer,
    ...services
  }: Omit<BackgroundCallServices, 'responses' | 'isShared'> &
    Pick<ObjectServices, 'environment'> & {
      readonly announcer: Cluster['limitAnnouncer']
      readonly log: SpaceLog
    },
): Promise<OpenedResponses> {
  const tag = (purpose: Parameters<typeof hmacOf>[1], text: string): string => hmacOf(secrets, purpose, text)
  const isShared = others !== undefined
  // The disk space of this machine matters only if the database is on it.
  const room = others
    ? undefined
    : await FreeSpaceMonitor.open({
        measure: () => measureDiskSpace(environment.dataDir),
        log: services.log,
        nowMs: () => performance.now(),
      })
  if (room) services.metrics.isKeeping = () => room.isOk
  const objects = openObjects({
    environment,
    settings: services.settings,
    warn: (fields, sentence) => services.log.warn(fields, sentence),
    hasOthers: isShared,
  })
  // V8 lets buffers of contents take hundreds of megabytes before it collects them.
  const garbage = bufferCollector()
  const kept = new KeptStore({
    rows: store,
    objects: { place: objects.place, node: others && node, onGarbage: (bytes) => garbage.note(bytes) },
    maxBytes: {
      user: () => services.settings().options.keep_bytes,
      cache: () => services.settings().options.cache?.most ?? 0,
      files: () => services.settings().options.files.most,
    },
    room,
  })
  const answers = new KeptAnswers({ rows: store, kept, announcer })
  const onLost = (): void => services.metrics.add('lostResponses', 1)
  const responses = new ResponseStore({ rows: store, tag, kept, onLost })
  const signatures = new SignatureStore({ kept, tag, isShared, metrics: services.metrics })
  const background = new BackgroundCalls({ ...services, responses, isShared })
  const parked = await services.ledger.resumeParkedHolds((call) =>
    services.log.warn({ call }, 'a call in the background is charged to nobody: its API key is gone'),
  )
  const { true: batchHolds = [], false: holds = [] } = Object.groupBy(parked, (hold) =>
    isHoldOfBatch(hold) ? 'true' : 'false',
  )
  await background.takeUp(holds)
  const closing = new AbortController()
  await kept.keepRemovingObjects(closing.signal)
  const hasSharedFiles = (): boolean => {
    const { store: place } = services.settings().options.files
    return !others || others.names().length < 2 || !isOfOneNode(place)
  }
  const close = async (): Promise<void> => {
    closing.abort()
    background.close()
    room?.close()
    await objects[Symbol.asyncDispose]()
  }
  // Ends the claims on idempotent calls that earlier runs left: this run has none yet, and no other process
  // uses its name.
  await store.write('lapseClaims', { node: others && node })
  const claims = { rows: store, node, tag }
  const files = new FileStore(kept)
  return {
    files,
    kept,
    batchHolds,
    responses,
    background,
    signatures,
    answers,
    claims,
    room,
    hasSharedFiles,
    close,
  }
}

/** Opens the batches of users, and begins to work on them. */
export function openBatches({
  kept,
  ...services
}: Omit<BatchRunServices, 'store' | 'renderError'> &
  Pick<ManagedBatchServices, 'files'> & { readonly kept: KeptStore }): AsyncDisposable & {
  readonly batches: BatchStore
  readonly runs: BatchRuns
  /** The batches as account management sees them. */
  readonly managed: ManagedBatches
} {
  const batches = new BatchStore(kept)
  const renderError: BatchRunServices['renderError'] = (path, error, id) =>
    renderAnyError(path === '/v1/messages' ? 'messages' : 'relay', error, id)
  const runs = new BatchRuns({ ...services, store: batches, renderError })
  runs.start()
  const { files } = services
  const managed = new ManagedBatches({ batches, files, onCancelled: (id) => runs.cancel(id) })
  return { batches, runs, managed, [Symbol.asyncDispose]: () => runs.close() }
}

/** The endpoints that read what is kept for users. */
export function keptEndpoints(
  services: StoredResponseEndpoints & FileServices & BatchServices,
): Pick<CallHandlers, 'responses' | 'files' | 'batches'> {
  return {
    responses: new StoredResponses(services),
    files: new Files(services),
    batches: new Batches(services),
  }
}
