import type { Change } from '../domain/change.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import { formatChange, MAX_TOKENS, parseChange } from './change-text.ts'

/** A way to tell all nodes a short text. What is told while it is out of order is lost. */
export interface Announcer {
  /** Rejects where it is out of order. */
  announce(text: string): Promise<void>
  /** Tells this listener what nodes say, this one too, and when the way is in order, or in order again. */
  listen(listener: Listener): () => void
}

/** How often what could not be told is tried again. */
const AGAIN_MS = 500

/**
 * What other nodes change, and telling them what this one does. These are hints: whoever hears of a change
 * reads what is so now from the database. Where one may have been missed, anything may have changed.
 */
export class ChangeFeed {
  readonly #node: string
  readonly #announcing: Announcer
  readonly #listeners = new Set<(change: Change) => void>()
  readonly #endListening: () => void
  #isFirst = true
  #again: NodeJS.Timeout | undefined

  /** `node` tells this one from the others. */
  constructor(node: string, announcing: Announcer) {
    this.#node = node
    this.#announcing = announcing
    this.#endListening = announcing.listen({
      received: (text) => this.#heard(text),
      connected: () => this.#connected(),
    })
  }

  /** Hears what the other nodes change from now on. */
  listen(listener: (change: Change) => void): void {
    this.#listeners.add(listener)
  }

  /**
   * Tells the other nodes; to be called when the change is committed. What they miss now they hear when they
   * can.
   */
  notify(change: Change): void {
    if (change.of !== 'tokens') return this.#announce(change)
    for (let from = 0; from < change.ids.length; from += MAX_TOKENS) {
      this.#announce({ of: 'tokens', ids: change.ids.slice(from, from + MAX_TOKENS) })
    }
  }

  close(): void {
    clearTimeout(this.#again)
    this.#endListening()
  }

  #announce(change: Change): void {
    this.#announcing.announce(formatChange(this.#node, change)).catch(() => {
      // Which it was need not be kept in mind: everything contains it.
      this.#again ??= setTimeout(() => {
        this.#again = undefined
        this.#announce({ of: 'anything' })
      }, AGAIN_MS).unref()
    })
  }

  #heard(text: string): void {
    const told = parseChange(text)
    if (!told || told.node === this.#node) return
    for (const listener of this.#listeners) listener(told.change)
  }

  // At the first connection nothing is remembered yet that is older.
  #connected(): void {
    if (!this.#isFirst) for (const listener of this.#listeners) listener({ of: 'anything' })
    this.#isFirst = false
  }
}
