import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Secrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import type { Store } from '../store.ts'
import { isLocalRead } from './messages.ts'
import { DatabaseThread, type IdleThread, startThread } from './thread.ts'

/**
 * Opens the database file, makes it if it is not there, and brings its schema up to date. Rejects, with a
 * sentence for the operator, if the file was made with another secret or by a newer version, is damaged, or
 * cannot be used at all.
 */
export async function openSqliteStore(options: {
  readonly path: string
  readonly secrets: Secrets
  /** A thread that is started already. */
  readonly thread?: IdleThread | undefined
  /**
   * True: the database is served on the calling thread. Starting threads costs a command more than its few
   * operations, and nobody else waits for it meanwhile.
   */
  readonly onCallingThread?: boolean
}): Promise<Store> {
  const { path, secrets: secrets, thread, onCallingThread: isServedHere = false } = options
  const start = isServedHere ? await startOnCallingThread() : startThread
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
  // A reader that died takes its own questions with it and nothing else: the next question starts another.
  function handleReaderFailure(reason: StoreUnavailable): void {
    if (!reader.hasEnded) failed.resolve(reason)
  }
  return {
    read: (name: string, input?: unknown) => (isLocalRead(name) ? writer : reader).run(name, input) as never,
    write: (name: string, input?: unknown) => writer.run(name, input) as never,
    get queued() {
      return writer.queued
    },
    failed: failed.promise,
    async close() {
      writer.refuseMore()
      // The last connection to go tidies up, and only one that writes can.
      await reader.close()
      await writer.close()
    },
  }
}

// What a thread loads is loaded only where there is none.
async function startOnCallingThread(): Promise<() => MessagePort> {
  const { serveDatabase } = await import('./serve-database.ts')
  return () => {
    const { port1, port2 } = new MessageChannel()
    serveDatabase(port2)
    return port1
  }
}

/** A thread that is started by the first question, and costs nothing where nobody asks. */
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
