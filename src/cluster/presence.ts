import type { Announcer } from './change-feed.ts'

/** How often a node says that it is there, and for how long it is believed. */
const BEAT_MS = 1_000
const BELIEVED_MS = 3_000

/**
 * Counts the nodes that are there, by what they say of themselves. `here NODE`: that node runs; `gone NODE`:
 * it stops. Time is that of this node's own beats as they come back: where none do, nobody is heard, and all
 * who were there count on.
 */
export class Presence {
  readonly #node: string
  readonly #announcing: Announcer
  readonly #seenMs = new Map<string, number>()
  readonly #endListening: () => void
  readonly #beating: NodeJS.Timeout

  constructor(node: string, announcing: Announcer) {
    this.#node = node
    this.#announcing = announcing
    this.#endListening = announcing.listen({
      received: (text) => this.#heard(text),
      connected: () => this.#say('here'),
    })
    this.#beating = setInterval(() => this.#say('here'), BEAT_MS).unref()
  }

  /** This one included. */
  get count(): number {
    const ownMs = this.#seenMs.get(this.#node) ?? 0
    for (const [node, seenMs] of this.#seenMs) if (seenMs < ownMs - BELIEVED_MS) this.#seenMs.delete(node)
    return Math.max(1, this.#seenMs.size)
  }

  /** Says that this node stops. */
  close(): void {
    clearInterval(this.#beating)
    this.#endListening()
    this.#say('gone')
  }

  #say(word: 'here' | 'gone'): void {
    this.#announcing.announce(`${word} ${this.#node}`).catch(() => {})
  }

  #heard(text: string): void {
    const [, word, node = ''] = /^(here|gone) (\S{1,100})$/.exec(text) ?? []
    if (word === 'gone') this.#seenMs.delete(node)
    if (word !== 'here') return
    // Who is new hears at once who is there, and does not wait for the next beat.
    if (!this.#seenMs.has(node) && node !== this.#node) this.#say('here')
    this.#seenMs.set(node, performance.now())
  }
}
