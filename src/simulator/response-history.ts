import { LRUCache } from 'lru-cache'
import type { Fields } from './fields.ts'

const MAX_RESPONSES = 1000

/** Memory of a simulated provider: the conversations that later requests may continue, by response. */
export class ResponseHistory {
  readonly #items = new LRUCache<string, readonly Fields[]>({ max: MAX_RESPONSES })

  /** Returns all items up to a response and with it; undefined if it is unknown, or forgotten. */
  upTo(id: string): readonly Fields[] | undefined {
    return this.#items.get(id)
  }

  keep(id: string, items: readonly Fields[]): void {
    this.#items.set(id, items)
  }
}
