import type { Fields } from '../field.ts'
import { parseExactRecord } from '../json/exact-json.ts'
import { asRecord } from '../json/record.ts'
import { frameData } from '../sse/frame-splitter.ts'
import type { EventOrder } from './event-order.ts'
import { mergeAnswers } from './merge-answers.ts'

/** Number of events that are noted. A stream that has more of them stays as it is from there on. */
const MAX_NOTED = 65_536
/** Matches the types of events of which a block may have any number. */
const PIECES = /(?:delta|annotation\.added)$/

/**
 * Chooses what a client gets of a stream whose events have an order: the events as they came, as long as each may follow
 * those before it, and from the first one on that may not, the events that the codec writes. Those then have the members
 * that the codec does not know, and continue the numbers that the client has seen.
 */
export class RewrittenEvents {
  readonly #order: EventOrder
  /** Events of the codec's types that the client got, without those of which there may be any number. */
  readonly #sent = new Set<string>()
  /** Blocks that the client saw begin, by number, without those that it saw end; and the numbers of the others. */
  readonly #open = new Map<unknown, Fields>()
  readonly #ended = new Set<unknown>()
  /** Ids of items by number, as the client has seen them. */
  readonly #ids = new Map<unknown, unknown>()
  /** Number of blocks that the codec began, and of those that it ended. */
  #writtenBegins = 0
  #writtenEnds = 0
  /** The last number of an event that the client got. */
  #number: number | undefined
  /** What is added to the numbers of the codec's blocks; undefined while events go out as they came. */
  #shift: number | undefined
  /** The last event of each type that the codec has not written yet. */
  readonly #pending = new Map<string, Fields>()

  constructor(order: EventOrder) {
    this.#order = order
  }

  /** What the client gets for an event. `written`: what the codec wrote for it. Undefined: the event as it came. */
  framesFor(given: Fields, written: string): string | undefined {
    if (this.#isFull) return undefined
    const type = String(given['type'])
    if (this.#shift === undefined && this.#order.takes(given)) {
      this.#note(given)
      this.#writtenBegins += countOf(written, this.#order.begin)
      this.#writtenEnds += countOf(written, this.#order.end)
      return undefined
    }
    const frames = this.#rewritten(written, given)
    return frames === '' && !this.#order.written.test(type) ? undefined : frames
  }

  /** What the client still gets at the end of a stream for which the codec wrote this. */
  missingEnd(written: string): string {
    return this.#isFull ? '' : this.#rewritten(written, {})
  }

  get #isFull(): boolean {
    return this.#sent.size >= MAX_NOTED
  }

  #rewritten(written: string, given: Fields): string {
    const before = this.#shift === undefined ? this.#endUnwritten() : ''
    this.#shift ??= this.#order.begun - this.#writtenBegins
    const type = String(given['type'])
    if (this.#order.written.test(type)) this.#pending.set(type, given)
    const shift = this.#shift
    const frames = written.split(/(?<=\n\n)/)
    return before + frames.map((frame) => this.#moved(frame, shift)).join('')
  }

  /** Ends blocks that the codec has not begun: it begins a text with its first piece, and numbers its blocks itself. */
  #endUnwritten(): string {
    const open = [...this.#open.values()]
    const written = this.#writtenBegins - this.#writtenEnds
    return open
      .slice(Math.min(written, open.length))
      .map((begin) => this.#frame(this.#order.endOf(begin)))
      .join('')
  }

  /** A frame of the codec with the number that its block has for the client; '' if the client needs it not. */
  #moved(frame: string, shift: number): string {
    const event = parseExactRecord(frameData(frame) ?? '')
    const type = String(event?.['type'])
    if (!event || !this.#order.written.test(type)) return ''
    const { place } = this.#order
    const at = event[place]
    const moved = typeof at === 'number' ? { ...event, [place]: at + shift } : event
    if (this.#sent.has(keyOf(moved, place)) || this.#ended.has(moved[place])) return ''
    const given = this.#pending.get(type)
    this.#pending.delete(type)
    if (given && type === this.#order.begin) this.#noteId(moved[place], given)
    return this.#frame(this.#withIds(given ? withLacking(moved, given) : moved))
  }

  #frame(event: Fields): string {
    const number = this.#number === undefined ? {} : { sequence_number: ++this.#number }
    const whole = { ...event, ...number }
    this.#note(whole)
    return `event: ${String(event['type'])}\ndata: ${JSON.stringify(whole)}\n\n`
  }

  #note(event: Fields): void {
    const { type, sequence_number: number } = event
    const { place, begin, end } = this.#order
    const at = event[place]
    if (typeof number === 'number') this.#number = number
    if (!this.#order.written.test(String(type))) return
    if (type === begin) {
      this.#open.set(at, event)
      this.#noteId(at, event)
    } else if (type === end) {
      this.#open.delete(at)
      this.#ended.add(at)
    }
    if (!PIECES.test(String(type)) || typeof asRecord(event['delta'])?.['stop_reason'] === 'string')
      this.#sent.add(keyOf(event, place))
  }

  #noteId(at: unknown, begin: Fields): void {
    const id = asRecord(begin['item'])?.['id']
    if (typeof id === 'string' && !this.#ids.has(at)) this.#ids.set(at, id)
  }

  /** Gives the items of an event the ids that the client has seen in their first events. */
  #withIds(event: Fields): Fields {
    const { item_id: itemId, item, response } = event
    const id = this.#ids.get(event[this.#order.place])
    const output = asRecord(response)?.['output']
    return {
      ...event,
      ...(id !== undefined && itemId !== undefined && { item_id: id }),
      ...(id !== undefined && asRecord(item) && { item: { ...asRecord(item), id } }),
      ...(Array.isArray(output) && { response: { ...asRecord(response), output: output.map(this.#withId) } }),
    }
  }

  readonly #withId = (item: unknown, at: number): unknown => {
    const id = this.#ids.get(at)
    return id === undefined ? item : { ...asRecord(item), id }
  }
}

function keyOf(event: Fields, place: string): string {
  const numbers = [event[place], event['content_index'] ?? event['summary_index']]
  return [event['type'], ...numbers.map((one) => (typeof one === 'number' ? one : ''))].join(' ')
}

function countOf(frames: string, type: string): number {
  return frames.split(`event: ${type}\n`).length - 1
}

/** Adds to an event of the codec what it lacks. What a response states about itself stays as it was given. */
function withLacking(written: Fields, given: Fields): Fields {
  const merged = mergeAnswers(written, given, () => {})
  const [own, stated] = [asRecord(written['response']), asRecord(given['response'])]
  if (!own || !stated) return merged
  return { ...merged, response: { ...mergeAnswers(stated, own, () => {}), output: own['output'] } }
}
