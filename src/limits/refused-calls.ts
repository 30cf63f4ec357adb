import type { RefusalCount } from '../domain/records/refusal.ts'
import type { Store } from '../store/store.ts'
import type { RefusedCall } from '../domain/refused-call.ts'

/** Milliseconds for which refused calls are collected before they are written together. */
const GATHER_MS = 500
/**
 * Maximum number of refused calls of all API keys that wait to be written; `MAX_WAITING_OF_KEY` is that of
 * one key.
 */
const MAX_WAITING = 2_000
const MAX_WAITING_OF_KEY = 200

/**
 * Stores refused calls, which have no row in the usage log, for 72 hours. They are written in batches after
 * the client got its answer; a crash loses the most recent ones. The number per API key is limited in memory
 * and in the database, so that one key cannot push out the refused calls of others. Calls without a valid key
 * count as calls of one key.
 */
export class RefusedCalls {
  readonly #store: Pick<Store, 'write'>
  readonly #maxRows: () => number
  /** The most recent refused calls of each API key that are not written yet. */
  #waiting = new Map<number, RefusedCall[]>()
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined

  /** `maxRows` returns the maximum number of stored rows. */
  constructor(store: Pick<Store, 'write'>, maxRows: () => number) {
    this.#store = store
    this.#maxRows = maxRows
  }

  /** Adds a refused call to those that wait to be written to the database. */
  add(call: RefusedCall): void {
    if (this.#maxRows() === 0) return
    let ofKey = this.#waiting.get(call.token_id)
    if (!ofKey) this.#waiting.set(call.token_id, (ofKey = []))
    if (ofKey.length >= MAX_WAITING_OF_KEY) ofKey.shift()
    else if (this.#count >= MAX_WAITING) return
    else this.#count += 1
    ofKey.push(call)
    this.#flushLater()
  }

  /** Writes the waiting refused calls to the database. */
  flush(): Promise<void> {
    return (this.#writing ??= this.#flushOnce().finally(() => {
      this.#writing = undefined
      // Calls that were refused during a slow write may have become due before it ended.
      if (this.#count > 0) this.#flushLater()
    }))
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => {
      // Otherwise no timer would be set any more if a write is running now.
      this.#timer = undefined
      void this.flush()
    }, GATHER_MS).unref()
  }

  /** Writes the refused calls that still wait to the database, and stops. */
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
      // Refused calls that cannot be written are lost, unlike their counts, which are written later.
    }
  }
}

const SLOT_MS = 1_800_000
/** Maximum number of API keys that are counted separately per error code and half hour. */
const MAX_KEYS = 1_000
const FLUSH_MS = 10_000

/** The caller of a refused call; a field is absent if it is not known. */
interface RefusedCaller {
  readonly userId?: number | undefined
  readonly tokenId?: number | undefined
}

/**
 * Counts refused calls, which have no row in the usage log, by half hour, error code and API key. The counts
 * are added to the database every ten seconds; a crash loses those since the last write. Beyond a maximum
 * number of keys, further keys are counted together, to limit memory and rows.
 */
export class RefusalCounts {
  readonly #store: Pick<Store, 'write'>
  readonly #nowMs: () => number
  readonly #timer: NodeJS.Timeout
  #counts = new Map<string, RefusalCount>()
  /** API keys that were counted in the current half hour, by error code. */
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

  /**
   * Writes the counts of refused calls to the database; those that cannot be written are kept for the next
   * time.
   */
  flush(): Promise<void> {
    return (this.#writing ??= this.#flushOnce().finally(() => (this.#writing = undefined)))
  }

  /** Writes the last counts of refused calls to the database, and stops. */
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
      // The counts are sorted, so that all nodes write in the same order, which avoids deadlocks.
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
