import type { DataChange } from '../domain/data-change.ts'
import type { Listener } from '../store/postgres/announcements.ts'

/** Prefix of announced changes, because the nodes announce other texts in the same way. */
const PREFIX = 'changed'
/** Maximum number of token ids in one announcement; a PostgreSQL notification must be shorter than 8,000 bytes. */
export const MAX_TOKEN_IDS = 400

/** Formats a change, and the node that made it, as the text to announce. */
export function formatChange(node: string, change: DataChange): string {
  return [PREFIX, node, change.of, ...idsOf(change)].join(' ')
}

function idsOf(change: DataChange): readonly number[] {
  switch (change.of) {
    case 'tokens':
      return change.ids
    case 'user':
      return [change.id]
    case 'keys':
    case 'settings':
    case 'anything':
      return []
  }
}

/** Parses an announced text; undefined for any other text. */
export function parseChange(text: string): { node: string; change: DataChange } | undefined {
  const [prefix, node = '', of, ...rest] = text.split(' ')
  if (prefix !== PREFIX || node === '' || rest.length > MAX_TOKEN_IDS) return undefined
  const ids = rest.map((id) => (/^\d{1,16}$/.test(id) ? Number(id) : Number.NaN))
  const [id] = ids
  if (ids.some((one) => !Number.isSafeInteger(one))) return undefined
  if (of === 'tokens' && id !== undefined) return { node, change: { of, ids } }
  if (of === 'user' && id !== undefined && ids.length === 1) return { node, change: { of, id } }
  if (ids.length > 0) return undefined
  if (of === 'keys' || of === 'settings' || of === 'anything') return { node, change: { of } }
  return undefined
}

/** Sends a short text to all nodes. A text is lost for a node that is disconnected at that time. */
export interface Announcer {
  /** Sends a text to all nodes. Rejects while the connection is down. */
  announce(text: string): Promise<void>
  /**
   * Adds a listener that receives the texts of all nodes, including this one, and is notified of every new
   * connection. Returns a function that removes the listener.
   */
  listen(listener: Listener): () => void
}

/** Milliseconds until a failed announcement is repeated. */
const RETRY_MS = 500

/**
 * Receives changes made by other nodes, and announces changes made by this one. A change only says what to
 * read again from the database. If an announcement may have been missed, listeners get the change `anything`.
 */
export class ChangeFeed {
  readonly #node: string
  readonly #announcer: Announcer
  readonly #listeners = new Set<(change: DataChange) => void>()
  readonly #endListening: () => void
  /** Whether this node announced changes since it connected. */
  #hasNotified = false
  #retryTimer: NodeJS.Timeout | undefined

  /** `node` identifies this node, which ignores its own announcements. */
  constructor(node: string, announcer: Announcer) {
    this.#node = node
    this.#announcer = announcer
    this.#endListening = announcer.listen({
      received: (text) => this.#onText(text),
      connected: () => this.#onConnected(),
    })
  }

  /**
   * Adds a listener to changes by other nodes, and to every new connection from now on. A start adds it after the first
   * attempt to connect: if that succeeded, nothing outdated can be cached.
   */
  listen(listener: (change: DataChange) => void): void {
    this.#listeners.add(listener)
  }

  /** Announces a committed change. Nodes that are disconnected now get the change `anything` later. */
  notify(change: DataChange): void {
    this.#hasNotified = true
    if (change.of !== 'tokens') return this.#announce(change)
    for (let from = 0; from < change.ids.length; from += MAX_TOKEN_IDS) {
      this.#announce({ of: 'tokens', ids: change.ids.slice(from, from + MAX_TOKEN_IDS) })
    }
  }

  close(): void {
    clearTimeout(this.#retryTimer)
    this.#endListening()
  }

  #announce(change: DataChange): void {
    this.#announcer.announce(formatChange(this.#node, change)).catch(() => {
      // `anything` makes all nodes read everything again, so it replaces any change that was lost.
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

  #onConnected(): void {
    for (const listener of this.#listeners) listener({ of: 'anything' })
    // Others may have been connected to another server already when this node announced changes at the former one.
    if (this.#hasNotified) this.#announce({ of: 'anything' })
    this.#hasNotified = false
  }
}
