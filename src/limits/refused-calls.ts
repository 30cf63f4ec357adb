import type { RefusalCount } from '../domain/records/refusal.ts'
import type { Store } from '../store/store.ts'
import type { RefusedCall } from '../domain/refused-call.ts'

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

const SLOT_MS = 1_800_000
/** Maximum number of API keys counted separately for one code in one half hour. */
const MAX_KEYS = 1_000
const FLUSH_MS = 10_000

/** Caller of a refused call, as far as known. */
interface RefusedCaller {
  readonly userId?: number | undefined
  readonly tokenId?: number | undefined
}

/**
 * Counts refused calls, which leave no row in the usage log, by half hour, code and API key, and adds the
 * counts to the store every ten seconds. Memory and rows are bounded: beyond the maximum, keys are counted
 * together. A crash loses the counts since the last write.
 */
export class RefusalCounts {
  readonly #store: Pick<Store, 'write'>
  readonly #nowMs: () => number
  readonly #timer: NodeJS.Timeout
  #counts = new Map<string, RefusalCount>()
  /** Keys of the current half hour by code. */
  #keys = new Map<string, Set<number>>()
  #slot = 0
  #writing: Promise<void> | undefined

  constructor(store: Pick<Store, 'write'>, nowMs: () => number = Date.now) {
    this.#store = store
    this.#nowMs = nowMs
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Counts a refused call. */
  add(code: string, { userId, tokenId }: RefusedCaller): void {
    const slot = Math.floor(this.#nowMs() / SLOT_MS)
    if (slot !== this.#slot) {
      this.#slot = slot
      this.#keys = new Map()
    }
    const isKnown = userId !== undefined && tokenId !== undefined && this.#hasRoom(code, tokenId)
    const who = isKnown ? { user_id: userId, token_id: tokenId } : { user_id: 0, token_id: 0 }
    this.#addCount({ slot, code, ...who, calls: 1 })
  }

  /** Writes the counts; those that cannot be written are kept for the next time. */
  flush(): Promise<void> {
    return (this.#writing ??= this.#flushOnce().finally(() => (this.#writing = undefined)))
  }

  /** Writes the last counts. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.flush()
  }

  async #flushOnce(): Promise<void> {
    if (this.#counts.size === 0) return
    const written = this.#counts
    this.#counts = new Map()
    try {
      // Sorted, so that all nodes write in the same order, which avoids deadlocks.
      const counts = [...written]
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([, count]) => count)
      await this.#store.write('addRefusals', { counts })
    } catch {
      for (const count of written.values()) this.#addCount(count)
    }
  }

  #addCount(count: RefusalCount): void {
    const name = `${count.slot} ${count.code} ${count.token_id}`
    const calls = (this.#counts.get(name)?.calls ?? 0) + count.calls
    this.#counts.set(name, { ...count, calls })
  }

  #hasRoom(code: string, tokenId: number): boolean {
    let keys = this.#keys.get(code)
    if (!keys) this.#keys.set(code, (keys = new Set()))
    if (keys.has(tokenId)) return true
    if (keys.size >= MAX_KEYS) return false
    keys.add(tokenId)
    return true
  }
}
