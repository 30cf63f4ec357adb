import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import type { ProtocolName } from '../protocols.ts'

/** Follows the events of a stream as its protocol orders them. */
export interface EventOrder {
  /** The member of events with the number of a block or item. */
  readonly place: 'index' | 'output_index'
  /** Matches the types of the events that the codec writes; all others stay as they are. */
  readonly written: RegExp
  /** Types of the events that begin and end a block or item. */
  readonly begin: string
  readonly end: string
  /** Number of blocks or items that have begun. */
  readonly begun: number
  /** The event that ends the block or item that this event begins. */
  endOf(begin: Fields): Fields
  /** Whether an event may follow those so far. If it may not, nothing is noted. */
  takes(event: Fields): boolean
}

/** A messages stream: blocks one after another, with the numbers 0, 1 and so on, between a beginning and an end. */
class MessagesOrder implements EventOrder {
  readonly place = 'index'
  readonly written = /^(?:message|content_block)_(?:start|delta|stop)$/
  readonly begin = 'content_block_start'
  readonly end = 'content_block_stop'
  begun = 0
  #isOpen = false
  #hasEnd = false

  endOf({ index }: Fields): Fields {
    return { type: this.end, index }
  }

  takes(event: Fields): boolean {
    const isCurrent = this.#isOpen && event['index'] === this.begun - 1
    switch (event['type']) {
      case 'message_start':
        // It may contain a complete message.
        this.#hasEnd = hasReason(event['message'])
        return true
      case this.begin:
        if (this.#isOpen || event['index'] !== this.begun) return false
        this.begun++
        return (this.#isOpen = true)
      case 'content_block_delta':
        return isCurrent
      case this.end:
        this.#isOpen &&= !isCurrent
        return isCurrent
      case 'message_delta':
        if (this.#isOpen) return false
        this.#hasEnd ||= hasReason(event['delta'])
        return true
      case 'message_stop':
        return this.#hasEnd
      default:
        return true
    }
  }
}

function hasReason(value: unknown): boolean {
  return typeof asRecord(value)?.['stop_reason'] === 'string'
}

/** A responses stream: items with different numbers that begin and end. */
class ResponsesOrder implements EventOrder {
  readonly place = 'output_index'
  readonly written =
    /^response\.(?:created|in_progress|completed|incomplete|(?:output_item|content_part|output_text|refusal|function_call_arguments|custom_tool_call_input|reasoning_summary_(?:part|text))\.(?:added|delta|done|annotation\.added))$/
  readonly begin = 'response.output_item.added'
  readonly end = 'response.output_item.done'
  readonly #open = new Set<unknown>()
  readonly #all = new Set<unknown>()

  get begun(): number {
    return this.#all.size
  }

  endOf({ output_index, item }: Fields): Fields {
    return { type: this.end, output_index, item: { ...asRecord(item), status: 'completed' } }
  }

  takes(event: Fields): boolean {
    const { type, output_index: at } = event
    if (typeof type !== 'string' || !this.written.test(type)) return true
    if (type === this.begin) {
      if (this.#all.has(at) || typeof at !== 'number') return false
      this.#all.add(at)
      this.#open.add(at)
      return true
    }
    if (at !== undefined) return type === this.end ? this.#open.delete(at) : this.#open.has(at)
    return type === 'response.completed' ? this.#open.size === 0 : true
  }
}

const ORDERS: Readonly<Partial<Record<ProtocolName, () => EventOrder>>> = {
  messages: () => new MessagesOrder(),
  responses: () => new ResponsesOrder(),
}

/** Creates what follows a stream; undefined for protocols whose events have no order. */
export function eventOrderOf(protocol: ProtocolName): EventOrder | undefined {
  return ORDERS[protocol]?.()
}
