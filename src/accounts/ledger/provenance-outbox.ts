import { setTimeout as delay } from 'node:timers/promises'
import type { NodeFile } from '../../store/node-file.ts'
import type { RowStore } from '../../store/store.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'

/**
 * Maximum number of settled calls whose provenance (the provider account that made the response) is shared in
 * one transaction.
 */
const MAX_CALLS = 200
/** Delay before the next attempt after the shared database could not be reached. */
const RETRY_MS = 1_000

/**
 * Shares with the other nodes which provider accounts made the responses of this node's calls (provenance).
 * Provenance is first written to the node's own file together with the charge. From there it is copied to the
 * shared database in order and in batches, one batch at a time.
 */
export class ProvenanceOutbox {
  readonly #file: Pick<NodeFile, 'write'>
  readonly #rows: Pick<RowStore, 'write'>
  readonly #stopping = new AbortController()
  #waiting: (() => void)[] = []
  #running: Promise<void> | undefined
  /** Set while the file may contain calls added after its last page was read. */
  #hasMore = false
  #isDown = false

  /** Begins to share the provenance that an earlier run left in the node's file. */
  constructor(file: Pick<NodeFile, 'write'>, rows: Pick<RowStore, 'write'>) {
    this.#file = file
    this.#rows = rows
    this.#running = this.#run()
  }

  /**
   * Call it after the settlement of a call whose provenance was written. Resolves once every node can see the
   * provenance. Resolves early if the shared database is unreachable; the provenance is then shared later, if
   * need be by a later run of the process.
   */
  share(): Promise<void> {
    this.#hasMore = true
    const shared = new Promise<void>((resolve) => {
      if (this.#isDown) resolve()
      else this.#waiting.push(resolve)
    })
    this.#running ??= this.#run()
    return shared
  }

  /** Stops after the provenance that can be shared at once. The rest stays in the file. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#hasMore = false
      const waiting = this.#waiting
      this.#waiting = []
      try {
        await this.#shareAll(waiting)
        this.#isDown = false
      } catch {
        this.#isDown = true
        release([...waiting, ...this.#waiting.splice(0)])
        this.#hasMore = !this.#stopping.signal.aborted
        await delay(RETRY_MS, undefined, { ref: false, signal: this.#stopping.signal }).catch(() => {})
      }
    } while (this.#hasMore)
    this.#running = undefined
  }

  async #shareAll(waiting: (() => void)[]): Promise<void> {
    /** Position after which calls are shared in full batches again. */
    let singlyUpTo = 0
    for (let limit = MAX_CALLS; ; ) {
      const entries = await this.#file.write('unshared', { limit })
      const last = entries.at(-1)
      const isLastPage = entries.length < limit
      if (last) {
        try {
          await this.#rows.write('storeProvenance', { calls: entries.map(({ call }) => call) })
        } catch (error) {
          if (error instanceof StoreUnavailable) throw error
          // A call that the database refuses must not block the others. Smaller batches identify it, and it
          // is skipped.
          if (last !== entries[0]) {
            limit = 1
            singlyUpTo = last.place
            continue
          }
        }
      }
      if (isLastPage) release(waiting)
      if (last) await this.#file.write('shared', { place: last.place })
      if (isLastPage) return
      // Otherwise calls that are settled meanwhile could come as fast as single ones are shared, for ever.
      if (last && last.place >= singlyUpTo) limit = MAX_CALLS
    }
  }
}

function release(waiting: readonly (() => void)[]): void {
  for (const resolve of waiting) resolve()
}
