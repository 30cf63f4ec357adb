import { LRUCache } from 'lru-cache'
import { type Fields, string } from './fields.ts'

const MAX_RESPONSES = 1000
const MAX_ITEMS = 10_000

/** Memory of a simulated provider: what later requests may continue or refer to. */
export class ResponseHistory {
  readonly #conversations = new LRUCache<string, readonly Fields[]>({ max: MAX_RESPONSES })
  readonly #items = new LRUCache<string, Fields>({ max: MAX_ITEMS })

  /** Returns all items up to a response and with it; undefined if it is unknown, or forgotten. */
  upTo(id: string): readonly Fields[] | undefined {
    return this.#conversations.get(id)
  }

  /** Returns an item of a response; undefined if it is unknown, or forgotten. */
  item(id: string): Fields | undefined {
    return this.#items.get(id)
  }

  /** Keeps a response, which answers a conversation. */
  keep(id: string, conversation: readonly Fields[], output: readonly Fields[]): void {
    this.#conversations.set(id, [...conversation, ...output])
    for (const item of output) this.#items.set(string(item.id), item)
  }
}
