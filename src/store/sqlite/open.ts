import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { settleSecrets } from '../secret-state.ts'
import type { Secrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { Store } from '../store.ts'
import { type DatabasePort, DatabaseThread, startThread, type IdleThread } from './database-thread.ts'
import { isLocalRead, isSumRead, SUM_UP_OPERATION } from './messages.ts'
import type { SumProgress } from './gathered-sums.ts'
import type { NodeFile } from '../node-file.ts'

/**
 * Opens the database file and migrates its schema. Creates the file if it is missing. Rejects with a sentence
 * for the operator if the file was created with another secret or migrated by a newer version, is damaged, or
 * cannot be used.
 */
export async function openSqliteStore(options: {
  readonly path: string
  readonly secrets: Secrets
  /** Idle thread for writing; undefined to start one. */
  readonly thread?: IdleThread | undefined
  /**
   * Whether the database runs on the calling thread. Commands use this: starting a thread would take longer
   * than their few operations, and they have nothing else to do meanwhile.
   */
  readonly onCallingThread?: boolean
}): Promise<Store> {
  const { path, secrets, thread, onCallingThread = false } = options
  const start = onCallingThread ? await startOnCallingThread() : startThread
  const failed = Promise.withResolvers<StoreUnavailable>()
  const writer = new DatabaseThread({ role: 'writer', path, secrets }, failed.resolve, thread ?? start())
  try {
    const state = await writer.ready
    // The thread has settled its own copy only.
    if (state) settleSecrets(secrets, state)
  } catch (error) {
    await writer.close()
    throw error
  }
  const reader = new LazyReader(
    () => new DatabaseThread({ role: 'reader', path, secrets }, handleReaderFailure, start()),
  )
  // If the reader's thread dies, only its own reads fail: the next read starts another thread.
  function handleReaderFailure(reason: StoreUnavailable): void {
    if (!reader.hasEnded) failed.resolve(reason)
  }
  const sumUp = shareConcurrentRuns(async () => {
    let progress = (await writer.run(SUM_UP_OPERATION, undefined)) as SumProgress
    while (progress.isBehind) progress = (await writer.run(SUM_UP_OPERATION, progress.through)) as SumProgress
  })
  async function read(name: string, input: unknown): Promise<unknown> {
    if (isSumRead(name)) await sumUp()
    return reader.run(name, input)
  }
  return {
    read: (name: string, input?: unknown) =>
      (isLocalRead(name) ? writer.run(name, input) : read(name, input)) as never,
    write: (name: string, input?: unknown) => writer.run(name, input) as never,
    get queued() {
      return writer.queued
    },
    failed: failed.promise,
    async close() {
      writer.refuseMore()
      // The writer is closed last, because the last connection to close cleans up the WAL and needs write
      // access for this.
      await reader.close()
      await writer.close()
    },
  }
}

// The module is imported on demand, because usually only the database thread needs it.
async function startOnCallingThread(): Promise<() => MessagePort> {
  const { serveDatabase } = await import('./serve-database.ts')
  return () => {
    const { port1, port2 } = new MessageChannel()
    serveDatabase(port2)
    return port1
  }
}

/** A read-only connection whose thread is started by the first read. */
class LazyReader {
  readonly #start: () => DatabaseThread
  #thread: DatabaseThread | undefined
  #isClosed = false

  constructor(start: () => DatabaseThread) {
    this.#start = start
  }

  get hasEnded(): boolean {
    return this.#thread?.hasEnded ?? false
  }

  run(name: string, input: unknown): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable('the store is closed'))
    if (!this.#thread || this.hasEnded) this.#thread = this.#start()
    return this.#thread.run(name, input)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#thread?.close()
  }
}

/**
 * Limits `work` to one run at a time. Calls during a run all share the next run, so that each call waits for
 * a run that began after the call.
 */
export function shareConcurrentRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const start = (): Promise<void> => {
    next = undefined
    running = work().finally(() => {
      running = undefined
    })
    return running
  }
  return () => {
    if (!running) return start()
    return (next ??= running.then(start, start))
  }
}

/**
 * Opens the local file of a node that reports to this bank. Creates the file if it is missing. Rejects with a
 * sentence for the operator if the file is damaged, was changed by a newer version, or has calls that must be
 * reported to another bank.
 */
export async function openNodeFile(options: {
  readonly path: string
  readonly bankId: string
  /** Idle thread to use, or a port to one on the calling thread; undefined to start a thread. */
  readonly thread?: DatabasePort | undefined
}): Promise<NodeFile> {
  const { path, bankId } = options
  const failed = Promise.withResolvers<StoreUnavailable>()
  const thread = new DatabaseThread({ role: 'node', path }, failed.resolve, options.thread)
  try {
    await thread.ready
    const node = (await thread.run('joinBank', { bankId })) as string
    return {
      node,
      write: (name, ...[input]) => thread.run(name, input) as never,
      get queued() {
        return thread.queued
      },
      failed: failed.promise,
      close: () => thread.close(),
    }
  } catch (error) {
    await thread.close()
    throw error
  }
}
