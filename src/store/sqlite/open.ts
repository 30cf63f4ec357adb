import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Secrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { Store } from '../store.ts'
import { type DatabasePort, DatabaseThread, startThread, type IdleThread } from './database-thread.ts'
import { isLocalRead, isSumRead, SUM_UP_OPERATION } from './messages.ts'
import type { SumProgress } from './deferred-sums.ts'
import type { NodeFile } from '../node-file.ts'

/**
 * Opens the database file; creates it if it is missing, and migrates its schema. Rejects with a sentence for
 * the operator if the file was made with another secret or by a newer version, is damaged, or is unusable.
 */
export async function openSqliteStore(options: {
  readonly path: string
  readonly secrets: Secrets
  /** Idle thread, or another connection, to write with; undefined = starts a thread. */
  readonly thread?: DatabasePort | undefined
  /**
   * True = the database runs on the calling thread. For commands, whose few operations cost less than a
   * thread, and which have nothing else to serve.
   */
  readonly onCallingThread?: boolean
}): Promise<Store> {
  const { path, secrets, thread, onCallingThread = false } = options
  const start = onCallingThread ? await startOnCallingThread() : startThread
  const failed = Promise.withResolvers<StoreUnavailable>()
  const writer = new DatabaseThread({ role: 'writer', path, secrets }, failed.resolve, thread ?? start())
  try {
    await writer.ready
  } catch (error) {
    await writer.close()
    throw error
  }
  const reader = new LazyReader(
    () => new DatabaseThread({ role: 'reader', path, secrets }, handleReaderFailure, start()),
  )
  // A reader that died fails its own reads only: the next read starts another one.
  function handleReaderFailure(reason: StoreUnavailable): void {
    if (!reader.hasEnded) failed.resolve(reason)
  }
  const sumUp = shareRuns(async () => {
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
      // The writer closes last: the last connection to close cleans up the log, which needs write access.
      await reader.close()
      await writer.close()
    },
  }
}

// Loaded only here: otherwise the thread loads these modules.
async function startOnCallingThread(): Promise<() => MessagePort> {
  const { serveDatabase } = await import('./serve-database.ts')
  return () => {
    const { port1, port2 } = new MessageChannel()
    serveDatabase(port2)
    return port1
  }
}

/** Reader whose thread is started by the first read. */
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
 * Joins calls of `work`: at most one run is under way, and all calls during it share the next one. So each
 * call is answered by a run that began after it.
 */
export function shareRuns(work: () => Promise<void>): () => Promise<void> {
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
 * Opens the file of a node that reports to this bank; creates it if it is missing. Rejects with a sentence
 * for the operator if the file is damaged, of a newer version, or has calls to report to another bank.
 */
export async function openNodeFile(options: {
  readonly path: string
  readonly bankId: string
  /** Idle thread to use; undefined = starts one. */
  readonly thread?: IdleThread | undefined
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
