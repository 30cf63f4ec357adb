import { Worker } from 'node:worker_threads'
import { FairQueue } from '../limits/fair-queue.ts'
import type { StoredBytes } from './form-body.ts'
import type { HelperThreads } from './helper-threads.ts'

/**
 * Maximum time that a recording waits for others, in milliseconds; below it, the maximum time to read one,
 * however busy the machine is.
 */
const MAX_WAIT_MS = 60_000
const TIMEOUT_MS = 20_000
/** Maximum processor time per recording in milliseconds: ten times as much as any real recording needs. */
const MAX_CPU_MS = 4_000
/** Interval, in milliseconds, at which the processor time is checked. */
const CPU_CHECK_MS = 100
/** Maximum number of recordings that are waiting or being read. The length of further ones is estimated. */
const MAX_WAITING = 1_000
/** Idle time, in milliseconds, after which the thread is ended. */
const IDLE_MS = 60_000
/** Bytes per second of audio: a minimum below that of any common speech codec, and an expected value. */
const MIN_BYTES_PER_SECOND = 500
const EXPECTED_BYTES_PER_SECOND = 4_000

/** A recording that the worker thread measures: its bytes, or their position in an open file. */
export interface RecordingToMeasure {
  readonly bytes?: Uint8Array
  readonly file?: number
  readonly from: number
  readonly length: number
}

export interface RecordingLength {
  /** Length in seconds, not rounded. */
  readonly seconds: number
  /** Whether the length was estimated from the size. */
  readonly isEstimate: boolean
}

/** A recording that the thread is reading. */
interface Reading {
  readonly worker: Worker
  readonly resolve: (seconds: number | undefined) => void
}

/** Thrown if too many recordings are waiting. */
class TooManyWaiting extends Error {}

/**
 * Measures the length of recordings in a thread of its own. Packets are counted, so that false headers have
 * no effect. API keys take turns. The length of a recording that takes too long is estimated from its size.
 */
export class RecordingLengths {
  readonly #turns = new FairQueue(1, MAX_WAITING)
  readonly #threads: Pick<HelperThreads, 'start'>
  readonly #maxCpuMs: number
  #worker: Worker | undefined
  /** Pending until the thread has loaded its code, or has ended. */
  #loaded: Promise<unknown> = Promise.resolve()
  #idle: NodeJS.Timeout | undefined
  #reading: Reading | undefined
  #isClosed = false

  /** `maxCpuMs`: maximum processor time per recording, in milliseconds. */
  constructor(threads: Pick<HelperThreads, 'start'>, maxCpuMs = MAX_CPU_MS) {
    this.#threads = threads
    this.#maxCpuMs = maxCpuMs
  }

  /**
   * Measures the length of the recording at these bytes of a body, which must remain available until the end.
   * A recording that cannot be read is estimated from its size. `key`: id of the API key on whose behalf the
   * recording is read.
   */
  async measure(key: number, stored: StoredBytes, from: number, length: number): Promise<RecordingLength> {
    const seconds = length === 0 ? undefined : await this.#read(key, stored, from, length)
    if (seconds === undefined) return { seconds: length / EXPECTED_BYTES_PER_SECOND, isEstimate: true }
    // No codec needs fewer bytes per second, so longer durations are not trusted.
    return { seconds: Math.min(seconds, length / MIN_BYTES_PER_SECOND), isEstimate: false }
  }

  /** Ends the thread. Recordings that are being read are estimated from their size. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#end(this.#worker)
  }

  async #read(key: number, stored: StoredBytes, from: number, length: number): Promise<number | undefined> {
    const untilMs = performance.now() + MAX_WAIT_MS
    try {
      return await this.#turns.run(
        String(key),
        () => new TooManyWaiting(),
        async () => {
          if (this.#isClosed || performance.now() > untilMs) return undefined
          if (Buffer.isBuffer(stored)) {
            const bytes = Uint8Array.from(stored.subarray(from, from + length))
            return this.#readNow({ bytes, from: 0, length })
          }
          return this.#readNow({ file: await stored.descriptor(), from, length })
        },
      )
    } catch (error) {
      if (error instanceof TooManyWaiting) return undefined
      throw error
    }
  }

  async #readNow(recording: RecordingToMeasure): Promise<number | undefined> {
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    if (!worker) return undefined
    const stop = (): void => void this.#end(worker)
    await this.#loaded
    const before = await cpuMs(worker)
    if (this.#worker !== worker) return undefined
    const timeout = setTimeout(stop, TIMEOUT_MS).unref()
    const check = setInterval(() => {
      void cpuMs(worker).then((now) => {
        if (now - before > this.#maxCpuMs) stop()
      })
    }, CPU_CHECK_MS).unref()
    try {
      return await new Promise<number | undefined>((resolve) => {
        this.#reading = { worker, resolve }
        worker.postMessage(recording)
      })
    } finally {
      clearTimeout(timeout)
      clearInterval(check)
      this.#endWhenIdle()
    }
  }

  #endWhenIdle(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => void this.#end(this.#worker), IDLE_MS).unref()
  }

  async #end(worker: Worker | undefined): Promise<void> {
    if (this.#worker === worker) this.#worker = undefined
    await worker?.terminate()
  }

  #start(): Worker | undefined {
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const url = new URL(`./recording-length-worker${extension}`, import.meta.url)
    const name = 'recordings'
    const make = (): Worker => new Worker(url, { name, resourceLimits: { maxOldGenerationSizeMb: 128 } })
    const worker = this.#threads.start(name, make, () => {
      this.#worker ??= this.#start()
      this.#endWhenIdle()
    })
    if (!worker) return undefined
    worker.unref()
    const settle = (seconds: number | undefined): void => {
      const reading = this.#reading
      if (reading?.worker !== worker) return
      this.#reading = undefined
      reading.resolve(seconds)
    }
    this.#loaded = new Promise((resolve) => {
      worker.once('message', resolve)
      worker.once('exit', resolve)
    })
    worker.on('message', (message: 'ready' | number | undefined) => {
      if (message !== 'ready') settle(message)
    })
    worker.on('error', () => {})
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      settle(undefined)
    })
    return worker
  }
}

/** Processor time in milliseconds that a thread has used; 0 if it is not running. */
async function cpuMs(worker: Worker): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1_000
  } catch {
    return 0
  }
}
