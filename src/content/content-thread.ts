import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { ContentLocation } from '../domain/content-log.ts'
import type { Secrets } from '../store/secrets.ts'
import type { ContentThreadOptions, ContentRequests, FromContentThread, ToContentThread } from './messages.ts'

// The extension is .ts in the source and .js in the build.
const WORKER = new URL(`./content-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)
/**
 * Heap of the thread in MiB. It normally needs much less, because what is parsed at once is bounded; running
 * out of memory might end the whole process.
 */
const HEAP_MB = 512
const YOUNG_MB = 16

interface Pending {
  readonly resolve: (output: never) => void
  readonly reject: (error: Error) => void
}

/** The thread has ended before it completed a request. */
export class ThreadEnded extends Error {}

/** The thread of the content log. It starts with the first request, and again if it has ended. */
export class ContentThread {
  readonly #options: ContentThreadOptions
  readonly #place: () => ContentLocation
  readonly #heapMb: number
  #worker: Worker | undefined
  readonly #pending = new Map<number, Pending>()
  #number = 0

  /**
   * `place` returns where new content is stored. `heapMb` is the maximum heap of the thread in MiB; above it
   * the thread crashes.
   */
  constructor(options: ContentThreadOptions, place: () => ContentLocation, heapMb = HEAP_MB) {
    this.#options = options
    this.#heapMb = heapMb
    this.#place = place
  }

  /** Whether the thread is running. */
  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  /** Gives the thread secrets that have changed. A thread that starts later gets them from the options. */
  replaceSecrets(secrets: Secrets): void {
    if (this.#worker) this.#ask('secrets', secrets, []).catch(() => {})
  }

  /** Starts the thread, so that the first request need not wait for that. */
  start(): void {
    this.#worker ??= this.#newWorker()
  }

  /** Sends a request to the thread. Rejects if the request fails, or if the thread ends first. */
  ask<Name extends keyof ContentRequests>(
    name: Name,
    input: Parameters<ContentRequests[Name]>[0],
    transferred: ArrayBuffer[] = [],
  ): ReturnType<ContentRequests[Name]> {
    return this.#ask(name, input, transferred) as ReturnType<ContentRequests[Name]>
  }

  /** Closes the files, and ends the thread. */
  async close(): Promise<void> {
    const worker = this.#worker
    if (!worker) return
    await this.#ask('close', undefined, []).catch(() => {})
    await worker.terminate()
  }

  #ask(name: ToContentThread['name'], input: unknown, transferred: ArrayBuffer[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const worker = (this.#worker ??= this.#newWorker())
      const number = (this.#number += 1)
      this.#pending.set(number, { resolve, reject })
      worker.ref()
      worker.postMessage({ number, name, input, place: this.#place() } satisfies ToContentThread, transferred)
    })
  }

  #newWorker(): Worker {
    const worker = new Worker(WORKER, {
      name: 'content log',
      workerData: this.#options,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, maxOldGenerationSizeMb: this.#heapMb },
    })
    worker.unref()
    worker.on('message', ({ number, output, error }: FromContentThread) => {
      const pending = this.#pending.get(number)
      this.#pending.delete(number)
      if (this.#pending.size === 0) worker.unref()
      if (error === undefined) pending?.resolve(output as never)
      else pending?.reject(new Error(error))
    })
    let reason = 'the thread of the content log has ended'
    worker.on('error', (error) => (reason = `${reason}: ${error.message}`))
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      const lost = [...this.#pending.values()]
      this.#pending.clear()
      for (const { reject } of lost) reject(new ThreadEnded(reason))
    })
    return worker
  }
}
