import { Service } from '../ipc/service.ts'
import { startThread } from '../ipc/start-thread.ts'
import type { ContentLocation } from '../domain/content-log.ts'
import type { Secrets } from '../store/secrets.ts'
import type { ContentThreadOptions, ContentRequests, ContentThreadRequests } from './messages.ts'

/**
 * Heap of the thread in MiB. It normally needs much less, because what is parsed at once is bounded; running
 * out of memory might end the whole process.
 */
const HEAP_MB = 512
const YOUNG_MB = 16

/** The thread of the content log. It starts with the first request, and again if it has ended. */
export class ContentThread {
  readonly #service: Service<ContentThreadRequests>
  readonly #place: () => ContentLocation
  /** The place that the thread knows. */
  #knownPlace: ContentLocation | undefined

  /**
   * `place` returns where new content is stored. `heapMb` is the maximum heap of the thread in MiB; above it
   * the thread crashes.
   */
  constructor(options: Omit<ContentThreadOptions, 'place'>, place: () => ContentLocation, heapMb = HEAP_MB) {
    this.#place = place
    this.#service = new Service({
      name: 'content log',
      keepsAlive: true,
      start: (name) => {
        this.#knownPlace = place()
        const workerData: ContentThreadOptions = { ...options, place: this.#knownPlace }
        const limits = { maxYoungMb: YOUNG_MB, maxOldMb: heapMb }
        return startThread('./content-worker', import.meta.url, { name, workerData, ...limits })
      },
    })
  }

  /** Whether the thread is running. */
  get isRunning(): boolean {
    return this.#service.isRunning
  }

  /** Gives the thread secrets that have changed. A thread that starts later gets them from the options. */
  replaceSecrets(secrets: Secrets): void {
    this.#replace('replaceSecrets', secrets)
  }

  /** Starts the thread, so that the first request need not wait for that. */
  start(): void {
    this.#service.start()
  }

  /** Sends a request to the thread. Rejects if the request fails, or with `ServiceEnded`. */
  ask<Name extends keyof ContentRequests>(
    name: Name,
    input: Parameters<ContentRequests[Name]>[0],
    transfer: ArrayBuffer[] = [],
  ): Promise<Awaited<ReturnType<ContentRequests[Name]>>> {
    const place = this.#place()
    if (place !== this.#knownPlace) this.#replace('replacePlace', place)
    this.#knownPlace = place
    return this.#service.request(name, input, { transfer })
  }

  /** Replaces what the thread was started with. If it is not running, it gets that at its next start. */
  #replace<Name extends 'replaceSecrets' | 'replacePlace'>(
    name: Name,
    value: Parameters<ContentThreadRequests[Name]>[0],
  ): void {
    if (this.#service.isRunning) this.#service.request(name, value).catch(() => {})
  }

  /** Closes the files, and ends the thread. */
  async close(): Promise<void> {
    if (this.#service.isRunning) await this.#service.request('close', undefined).catch(() => {})
    await this.#service.close()
  }
}
