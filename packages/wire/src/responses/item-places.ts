import { asRecord } from '../json/record.ts'
import { type Event, MAX_ITEMS } from './event.ts'

/**
 * Finds the item of a stream to which an event belongs, as its index in the output. Items are recognized by
 * `output_index`, because some servers change the ids of items between events. An event without one, as all
 * of llama.cpp (https://github.com/ggml-org/llama.cpp/issues/20607), belongs to the item that began with its
 * id. If none did, it belongs to the item that began last.
 */
export class ItemPlaces {
  readonly #ids = new Map<string, number>()
  #last = 0
  #hasBegun = false
  /** Whether items began without an index: the finished response may list them in another order. */
  #isUnindexed = false

  /** The item of any event but the one with which an item begins. */
  of(event: Event): number {
    this.#hasBegun = true
    return statedIndex(event) ?? this.#known(event) ?? this.#last
  }

  /** The item that begins with this event. */
  begin(event: Event): number {
    const stated = statedIndex(event)
    this.#isUnindexed ||= stated === undefined
    const next = this.#hasBegun ? Math.min(this.#last + 1, MAX_ITEMS) : 0
    this.#last = stated ?? this.#known(event) ?? next
    this.#hasBegun = true
    for (const id of idsOf(event)) if (this.#ids.size < MAX_ITEMS) this.#ids.set(id, this.#last)
    return this.#last
  }

  /** The item at this position of the finished response. */
  inOutput(item: Event, position: number): number {
    return (this.#isUnindexed ? this.#known({ item }) : undefined) ?? position
  }

  #known(event: Event): number | undefined {
    for (const id of idsOf(event)) {
      const index = this.#ids.get(id)
      if (index !== undefined) return index
    }
    return undefined
  }
}

function statedIndex({ output_index: index }: Event): number | undefined {
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0
    ? Math.min(index, MAX_ITEMS)
    : undefined
}

/** The ids that an event states of its item. Some servers write the id of a call as its `call_id` alone. */
function idsOf(event: Event): string[] {
  const item = asRecord(event['item'])
  return [event['item_id'], item?.['id'], item?.['call_id']].filter(
    (id): id is string => typeof id === 'string' && id !== '',
  )
}
