import type { RefusedCall } from '../domain/refused-call.ts'
import type { Store } from '../store/store.ts'

/** Pause in which refused calls gather before they are written. */
const GATHER_MS = 500
/** Maximum number of waiting rows, of all keys and of one. */
const MAX_WAITING = 2_000
const MAX_WAITING_OF_KEY = 200

/**
 * Keeps refused calls, which leave no row in the usage log, for 72 hours. They are written behind the answers,
 * in batches; a crash loses those of the last moment. What one key can add is bounded here and in the store, so
 * that it cannot push out those of other keys. Calls without a valid key count as those of one.
 */
export class RefusedCalls {
  readonly #store: Pick<Store, 'write'>
  readonly #maxRows: () => number
  /** The newest refused calls of each key that are not written yet. */
  #waiting = new Map<number, RefusedCall[]>()
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined

  /** `maxRows` is the maximum number of rows. */
  constructor(store: Pick<Store, 'write'>, maxRows: () => number) {
    this.#store = store
    this.#maxRows = maxRows
  }

  /** Adds a refused call. */
  add(call: RefusedCall): void {
    if (this.#maxRows() === 0) return
    let ofKey = this.#waiting.get(call.token_id)
    if (!ofKey) this.#waiting.set(call.token_id, (ofKey = []))
    if (ofKey.length >= MAX_WAITING_OF_KEY) ofKey.shift()
    else if (this.#count >= MAX_WAITING) return
    else this.#count += 1
    ofKey.push(call)
    this.#timer ??= setTimeout(() => void this.flush(), GATHER_MS).unref()
  }

  /** Writes what waits. */
  flush(): Promise<void> {
    return (this.#writing ??= this.#flushOnce().finally(() => (this.#writing = undefined)))
  }

  /** Writes the last ones. */
  async close(): Promise<void> {
    await this.#writing
    await this.flush()
    clearTimeout(this.#timer)
  }

  async #flushOnce(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#count === 0) return
    const calls = [...this.#waiting.values()].flat()
    this.#waiting = new Map()
    this.#count = 0
    try {
      await this.#store.write('addRefusedCalls', { calls, maxRows: this.#maxRows() })
    } catch {
      // The counters of refused calls are kept until they can be written; single calls are not worth that.
    }
  }
}
