import type { Announcer } from './change-feed.ts'

/** Interval of heartbeats, and the silence after which a node no longer counts. */
const HEARTBEAT_MS = 1_000
const NODE_TIMEOUT_MS = 3_000

/**
 * Counts the nodes that run, by their heartbeats: `here NODE` while a node runs, `gone NODE` when it stops.
 * Silence is measured against this node's own heartbeats as they come back: while the connection is down none
 * arrive, and all known nodes continue to count.
 */
export class Presence {
  readonly #node: string
  readonly #announcer: Announcer
  readonly #seenMs = new Map<string, number>()
  readonly #endListening: () => void
  readonly #heartbeat: NodeJS.Timeout

  constructor(node: string, announcer: Announcer) {
    this.#node = node
    this.#announcer = announcer
    this.#endListening = announcer.listen({
      received: (text) => this.#onText(text),
      connected: () => this.#announce('here'),
    })
    this.#heartbeat = setInterval(() => this.#announce('here'), HEARTBEAT_MS).unref()
  }

  /** Number of nodes, this one included; at least 1. */
  get count(): number {
    const ownMs = this.#seenMs.get(this.#node) ?? 0
    for (const [node, seenMs] of this.#seenMs) if (seenMs < ownMs - NODE_TIMEOUT_MS) this.#seenMs.delete(node)
    return Math.max(1, this.#seenMs.size)
  }

  /** Announces that this node stops. */
  close(): void {
    clearInterval(this.#heartbeat)
    this.#endListening()
    this.#announce('gone')
  }

  #announce(kind: 'here' | 'gone'): void {
    this.#announcer.announce(`${kind} ${this.#node}`).catch(() => {})
  }

  #onText(text: string): void {
    const [, kind, node = ''] = /^(here|gone) (\S{1,100})$/.exec(text) ?? []
    if (kind === 'gone') this.#seenMs.delete(node)
    if (kind !== 'here') return
    // A new node learns at once which nodes run, without waiting for their next heartbeat.
    if (!this.#seenMs.has(node) && node !== this.#node) this.#announce('here')
    this.#seenMs.set(node, performance.now())
  }
}
