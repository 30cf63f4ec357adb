import { Worker } from 'node:worker_threads'
import type { StoredBytes } from './form-body.ts'

/** How long one recording may take to be read, and may wait for others: far longer than on a busy machine. */
const TIMEOUT_MS = 20_000
const MAX_WAIT_MS = 60_000
/** Recordings, waiting or being read, above which another one is not read. */
const MAX_WAITING = 1_000
/** How long the worker outlives the last recording. */
const IDLE_MS = 60_000
/** Bytes of a second of sound: fewer than any usual coding of speech has, and more. */
const MIN_BYTES_PER_SECOND = 500
const EXPECTED_BYTES_PER_SECOND = 4_000

/** A recording for the worker: its bytes, or where they are in an open file. */
export interface RecordingToMeasure {
  readonly bytes?: Uint8Array
  readonly file?: number
  readonly from: number
  readonly length: number
}

/** Length of a recording. */
export interface RecordingLength {
  /** Not rounded. */
  readonly seconds: number
  /** Whether it was not read, but estimated by the size. */
  readonly isEstimate: boolean
}

interface Waiting {
  /** Makes the message to the worker, which copies bytes that are in memory. */
  readonly message: () => RecordingToMeasure
  /** The moment, by `performance.now()`, from which on it is not read any more. */
  readonly untilMs: number
  readonly resolve: (seconds: number | undefined) => void
}

/**
 * Reads how long recordings are, in a thread of its own: their packets are counted, so that a header that
 * lies changes nothing.
 */
export class RecordingLengths {
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #timeout: NodeJS.Timeout | undefined
  /** The first one is being read. */
  readonly #queue: Waiting[] = []

  /**
   * The length of the recording at these bytes of a body, which must stay until then. One that cannot be read
   * counts by its size.
   */
  async measure(stored: StoredBytes, from: number, length: number): Promise<RecordingLength> {
    const seconds = length === 0 ? undefined : await this.#read(stored, from, length)
    if (seconds === undefined) return { seconds: length / EXPECTED_BYTES_PER_SECOND, isEstimate: true }
    // No coding of speech is smaller: whoever claims more is not believed.
    return { seconds: Math.min(seconds, length / MIN_BYTES_PER_SECOND), isEstimate: false }
  }

  /** Ends the thread; recordings that are being read count by their size. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    clearTimeout(this.#timeout)
    await this.#worker?.terminate()
  }

  async #read(stored: StoredBytes, from: number, length: number): Promise<number | undefined> {
    if (this.#queue.length >= MAX_WAITING) return undefined
    const file = Buffer.isBuffer(stored) ? undefined : await stored.descriptor()
    const message = (): RecordingToMeasure =>
      Buffer.isBuffer(stored)
        ? { bytes: Uint8Array.from(stored.subarray(from, from + length)), from: 0, length }
        : { ...(file !== undefined && { file }), from, length }
    return new Promise((resolve) => {
      this.#queue.push({ message, untilMs: performance.now() + MAX_WAIT_MS, resolve })
      if (this.#queue.length === 1) this.#next()
    })
  }

  #next(): void {
    clearTimeout(this.#idle)
    clearTimeout(this.#timeout)
    const nowMs = performance.now()
    while ((this.#queue[0]?.untilMs ?? nowMs) < nowMs) this.#queue.shift()?.resolve(undefined)
    const [first] = this.#queue
    if (!first) {
      this.#idle = setTimeout(() => void this.#worker?.terminate(), IDLE_MS).unref()
      return
    }
    this.#worker ??= this.#start()
    this.#timeout = setTimeout(() => void this.#worker?.terminate(), TIMEOUT_MS).unref()
    this.#worker.postMessage(first.message())
  }

  #start(): Worker {
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const worker = new Worker(new URL(`./recording-length-worker${extension}`, import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    })
    worker.unref()
    const settle = (seconds: number | undefined): void => {
      this.#queue.shift()?.resolve(seconds)
      this.#next()
    }
    worker.on('message', settle)
    worker.on('error', () => {})
    worker.on('exit', () => {
      this.#worker = undefined
      if (this.#queue.length > 0) settle(undefined)
    })
    return worker
  }
}
