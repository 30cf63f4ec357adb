import type { Change } from '../domain/change.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import { formatChange, MAX_TOKENS, parseChange } from './change-text.ts'

/** Sends a short text to all nodes. Texts are lost while the connection is down. */
export interface Announcer {
  /** Rejects while the connection is down. */
  announce(text: string): Promise<void>
  /**
   * Adds a listener for the texts of all nodes, this one included, and for (re)connections. Returns a
   * function that removes it.
   */
  listen(listener: Listener): () => void
}

/** Delay before a failed announcement is repeated. */
const RETRY_MS = 500

/**
 * Receives changes made by other nodes, and announces those of this one. Changes are hints: a listener reads
 * the current state from the database. If a hint may have been missed, the change `anything` is reported.
 */
export class ChangeFeed {
  readonly #node: string
  readonly #announcer: Announcer
  readonly #listeners = new Set<(change: Change) => void>()
  readonly #endListening: () => void
  #isFirst = true
  #retryTimer: NodeJS.Timeout | undefined

  /** `node` identifies this node. */
  constructor(node: string, announcer: Announcer) {
    this.#node = node
    this.#announcer = announcer
    this.#endListening = announcer.listen({
      received: (text) => this.#onText(text),
      connected: () => this.#onConnected(),
    })
  }

  /** Adds a listener to changes by other nodes. */
  listen(listener: (change: Change) => void): void {
    this.#listeners.add(listener)
  }

  /** Announces a change, which must be committed. Nodes that cannot receive it now get `anything` later. */
  notify(change: Change): void {
    if (change.of !== 'tokens') return this.#announce(change)
    for (let from = 0; from < change.ids.length; from += MAX_TOKENS) {
      this.#announce({ of: 'tokens', ids: change.ids.slice(from, from + MAX_TOKENS) })
    }
  }

  close(): void {
    clearTimeout(this.#retryTimer)
    this.#endListening()
  }

  #announce(change: Change): void {
    this.#announcer.announce(formatChange(this.#node, change)).catch(() => {
      // `anything` covers every change that was lost.
      this.#retryTimer ??= setTimeout(() => {
        this.#retryTimer = undefined
        this.#announce({ of: 'anything' })
      }, RETRY_MS).unref()
    })
  }

  #onText(text: string): void {
    const parsed = parseChange(text)
    if (!parsed || parsed.node === this.#node) return
    for (const listener of this.#listeners) listener(parsed.change)
  }

  // On the first connection nothing is cached that could be outdated.
  #onConnected(): void {
    if (!this.#isFirst) for (const listener of this.#listeners) listener({ of: 'anything' })
    this.#isFirst = false
  }
}
