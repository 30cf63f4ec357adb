import type { Worker } from 'node:worker_threads'
import { Service, type StartWatch } from '../../ipc/service.ts'
import { startThread } from '../../ipc/start-thread.ts'
import { FairQueue } from '../../limits/fair-queue.ts'
import type { StoredBytes } from '../../call/form-body.ts'

/**
 * Maximum time that a recording waits for others, in milliseconds; below it, the maximum time to read one,
 * however busy the machine is.
 */
const MAX_WAIT_MS = 60_000
const TIMEOUT_MS = 20_000
/** Maximum processor time per recording in milliseconds: as much as one of many hours needs. */
const MAX_CPU_MS = 4_000
/** Interval, in milliseconds, at which the processor time is checked. */
const CPU_CHECK_MS = 100
/** Maximum number of recordings that are waiting or being read. The length of further ones is estimated. */
const MAX_WAITING = 1_000
/** Idle time, in milliseconds, after which the thread is ended. */
const IDLE_MS = 60_000
/** Maximum heap of the thread in MiB. */
const MAX_HEAP_MB = 128
/** Bytes per second that are expected of audio. */
const EXPECTED_BYTES_PER_SECOND = 4_000

/** A recording that the worker thread measures: its bytes, or their position in an open file. */
export interface RecordingToMeasure {
  readonly bytes?: Uint8Array
  readonly file?: number
  readonly from: number
  readonly length: number
}

/** The requests of the thread. */
export interface RecordingRequests {
  /** Seconds of a recording; undefined if it cannot be read. */
  measure(recording: RecordingToMeasure): Promise<number | undefined>
}

/** Length of a recording. */
export interface RecordingLength {
  /** Length in seconds, not rounded. */
  readonly seconds: number
  /** Whether the length was estimated from the size. */
  readonly isEstimate: boolean
}

/** Thrown if too many recordings are waiting. */
class TooManyWaiting extends Error {}

/**
 * Measures the length of recordings in a separate thread. The sound in packets is counted, so that false
 * headers and timestamps have no effect. API keys take turns. The length of a recording that takes too long
 * is estimated from its size.
 */
export class RecordingLengths {
  readonly #turns = new FairQueue(1, MAX_WAITING)
  readonly #maxCpuMs: number
  readonly #service: Service<RecordingRequests>
  /** The thread that was started last. */
  #worker: Worker | undefined

  /** `maxCpuMs`: maximum processor time per recording, in milliseconds. */
  constructor(watch: StartWatch, maxCpuMs = MAX_CPU_MS) {
    this.#maxCpuMs = maxCpuMs
    this.#service = new Service({
      name: 'recordings',
      start: (name) => {
        const options = { name, maxOldMb: MAX_HEAP_MB }
        return (this.#worker = startThread('./recording-length-worker', import.meta.url, options))
      },
      idleMs: IDLE_MS,
      watch,
    })
  }

  /**
   * Measures the length of the recording at these bytes of a body, which must remain available until the end.
   * A recording that cannot be read is estimated from its size. `key`: id of the API key on whose behalf the
   * recording is read.
   */
  async measure(key: number, stored: StoredBytes, from: number, length: number): Promise<RecordingLength> {
    const seconds = length === 0 ? undefined : await this.#read(key, stored, from, length)
    if (seconds === undefined) return { seconds: length / EXPECTED_BYTES_PER_SECOND, isEstimate: true }
    return { seconds, isEstimate: false }
  }

  /** Ends the thread. Recordings that are being read are estimated from their size. */
  close(): Promise<void> {
    return this.#service.close()
  }

  async #read(key: number, stored: StoredBytes, from: number, length: number): Promise<number | undefined> {
    const untilMs = performance.now() + MAX_WAIT_MS
    try {
      return await this.#turns.run(
        String(key),
        () => new TooManyWaiting(),
        async () => {
          if (performance.now() > untilMs) return undefined
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
    const service = this.#service
    service.start()
    // The processor time of loading is not counted for the recording.
    await service.ready
    const worker = this.#worker
    const before = await cpuMs(worker)
    if (!service.isRunning || this.#worker !== worker) return undefined
    const check = setInterval(() => {
      void cpuMs(worker).then((now) => {
        if (now - before > this.#maxCpuMs) void service.end()
      })
    }, CPU_CHECK_MS).unref()
    try {
      return await service.request('measure', recording, { timeoutMs: TIMEOUT_MS })
    } catch {
      return undefined
    } finally {
      clearInterval(check)
    }
  }
}

/** Processor time in milliseconds that a thread has used; 0 if it is not running. */
async function cpuMs(worker: Worker | undefined): Promise<number> {
  try {
    const usage = await worker?.cpuUsage()
    return usage ? (usage.user + usage.system) / 1_000 : 0
  } catch {
    return 0
  }
}
