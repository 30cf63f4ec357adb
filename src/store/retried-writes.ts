import { setTimeout as delay } from 'node:timers/promises'
import { StoreUnavailable } from './store-unavailable.ts'

/**
 * Milliseconds to wait before each retry of a write. A client relies on it already, for example by the id of a response,
 * so the write should not be lost.
 */
const PAUSES_MS = [1_000, 5_000, 25_000, 60_000] as const
/** Maximum bytes of all writes that wait to be retried. */
const MAX_BYTES = 67_108_864

/**
 * Repeats writes whose failure must not fail their call. While the store is unavailable, the writes wait in a
 * limited amount of memory.
 */
export class RetriedWrites {
  readonly #onLost: () => void
  readonly #maxBytes: number
  readonly #pausesMs: readonly number[]
  #waitingBytes = 0

  /**
   * `onLost` is called for each write that is discarded because there is no memory or because all retries
   * failed.
   */
  constructor(onLost: () => void, maxBytes = MAX_BYTES, pausesMs: readonly number[] = PAUSES_MS) {
    this.#onLost = onLost
    this.#maxBytes = maxBytes
    this.#pausesMs = pausesMs
  }

  /**
   * Runs a write. If the store is unavailable, repeats the write later; discards it if there is no memory for
   * it. Resolves after the first attempt. `bytes`: memory that the write needs while it waits.
   */
  async run(write: () => Promise<void>, bytes: number): Promise<void> {
    try {
      await write()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      if (this.#waitingBytes + bytes > this.#maxBytes) this.#onLost()
      else void this.#retry(write, bytes)
    }
  }

  async #retry(write: () => Promise<void>, bytes: number): Promise<void> {
    this.#waitingBytes += bytes
    const isWritten = await this.#isWrittenLater(write)
    this.#waitingBytes -= bytes
    if (!isWritten) this.#onLost()
  }

  async #isWrittenLater(write: () => Promise<void>): Promise<boolean> {
    for (const pauseMs of this.#pausesMs) {
      await delay(pauseMs, undefined, { ref: false })
      try {
        await write()
        return true
      } catch {
        // The error is ignored, because the write is retried after a longer pause.
      }
    }
    return false
  }
}
