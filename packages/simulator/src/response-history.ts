import { LRUCache } from 'lru-cache'
import { type Fields, asFields, asList, asString } from './fields.ts'

const MAX_RESPONSES = 1000
const MAX_ITEMS = 10_000

/** What a simulated provider remembers, so that later requests can continue or refer to it. */
export class ResponseHistory {
  readonly #responses = new LRUCache<string, Fields>({ max: MAX_RESPONSES })
  readonly #conversations = new LRUCache<string, readonly Fields[]>({ max: MAX_RESPONSES })
  readonly #items = new LRUCache<string, Fields>({ max: MAX_ITEMS })

  /** Returns all items up to and including those of a response; undefined if it is unknown or was deleted. */
  upTo(id: string): readonly Fields[] | undefined {
    return this.#conversations.get(id)
  }

  /** Returns an item of a response; undefined if it is unknown or was deleted. */
  item(id: string): Fields | undefined {
    return this.#items.get(id)
  }

  /** Returns a response; undefined if it is unknown or was deleted. */
  response(id: string): Fields | undefined {
    return this.#responses.get(id)
  }

  /** Returns the input of the request that a response answered, with an id for each item. */
  inputOf(id: string): readonly Fields[] {
    const output = asList(this.response(id)?.output).length
    const items = this.upTo(id) ?? []
    return items
      .slice(0, items.length - output)
      .map((item, at) => ({ id: `msg_${id.slice(-12)}${at}`, type: 'message', ...item }))
  }

  /** Remembers a response and the conversation that it answers. */
  keep(response: Fields, conversation: readonly Fields[]): void {
    const id = asString(response.id)
    const output = asList(response.output).map(asFields)
    this.#responses.set(id, response)
    this.#conversations.set(id, [...conversation, ...output])
    for (const item of output) this.#items.set(asString(item.id), item)
  }

  /** Forgets a response, but not its items. */
  forget(id: string): void {
    this.#responses.delete(id)
    this.#conversations.delete(id)
  }
}
