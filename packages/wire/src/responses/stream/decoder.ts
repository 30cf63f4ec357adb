import { failureEvent } from '../../answer-error.ts'
import { type CacheDiagnosis, responseDiagnosis } from '../../cache-diagnosis.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import { isErrorObject } from '../../reply-facts.ts'
import { laterStatedService, type StatedService, statedTier } from '../../service-tier.ts'
import type { ReportedUsage } from '../../reported-usage.ts'
import { FrameReader } from '../../sse/frame-reader.ts'
import { type CopyablePart, decodeFrameText } from '../../frame-writer.ts'
import type { FrameText, FrameTextMatch } from '../../sse/frame-template.ts'
import { isErrorEvent } from '../../sse/frame-splitter.ts'
import {
  elementsOfList,
  itemTextFinders,
  type MemberText,
  readAnnotation,
  readItem,
  readLogprobs,
  stringOrEmpty,
} from '../decode/reply.ts'
import {
  DELTA_EVENTS,
  type Event,
  eventType,
  MAX_ITEMS,
  responseInEvent,
  TERMINAL_EVENTS,
  textIndex,
  textsOfDelta,
} from '../event.ts'
import { errorOfResponse } from '../errors.ts'
import { ItemPlaces } from '../item-places.ts'
import { readResponsesStop } from '../stop-reasons.ts'
import { recordItemToolUse, usageInResponse } from '../usage.ts'
import { ToolUseCounter } from '../../tool-use.ts'
import type { Citation, Logprobs, ReplyEvent, ReplyPart, ReplyText } from '../../reply.ts'
import { CUSTOM_INPUT_MEMBER } from '../../openai-tools.ts'

const KINDS: ReadonlyMap<string, (typeof DELTA_EVENTS)[number]['kind']> = new Map(
  DELTA_EVENTS.map(({ type, kind }) => [type, kind]),
)
/** Maximum number of texts of one item that are distinguished; all further texts count as one. */
const MAX_TEXTS = 1_024

/**
 * Decodes the stream of a response. Text that was in no delta is taken from its finished item, or from the
 * finished response. Only the final event makes the response complete.
 */
export class ResponsesStreamDecoder extends FrameReader {
  readonly #items = new ItemParts((event) => this.emit(event))
  readonly #places = new ItemPlaces()
  #isStarted = false
  #usage: ReportedUsage | undefined
  served: StatedService | undefined
  diagnosis: CacheDiagnosis | undefined
  /**
   * Uses of the provider's tools in the items so far. They are counted while the stream arrives, because its
   * last event may leave items out.
   */
  readonly tools = new ToolUseCounter()

  get usage(): ReportedUsage | undefined {
    return this.#usage
  }

  protected read(data: string, frame: string): void {
    const event = parseRecord(data)
    if (!event) {
      if (isErrorEvent(frame)) this.#fail(data, undefined)
      return
    }
    const type = eventType(event, frame)
    const kind = KINDS.get(type)
    if (kind) {
      const delta = event['delta']
      if (typeof delta !== 'string') return
      const logprobs = readLogprobs(event['logprobs'])
      return this.#items.grow(this.#places.of(event), textIndex(event), kind, delta, logprobs)
    }
    if (TERMINAL_EVENTS.has(type)) return this.#finish(type, event, data)
    if (UNKNOWN_DELTA.test(type)) for (const text of textsOfDelta(event)) this.arrived.addUnknown(text)
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#start(responseInEvent(event) ?? {})
      case 'response.output_item.added': {
        this.resetTemplates()
        const index = this.#places.begin(event)
        recordItemToolUse(this.tools, index, event['item'])
        return this.#items.begin(index, asRecord(event['item']) ?? {})
      }
      case 'response.output_item.done': {
        const item = asRecord(event['item']) ?? {}
        const index = this.#places.of(event)
        recordItemToolUse(this.tools, index, item)
        return this.#items.finish(
          index,
          item,
          itemTextFinders(data, (scan) => [scan.span('item')?.node].filter((node) => node !== undefined))(
            item,
            0,
          ),
        )
      }
      case 'response.reasoning_summary_part.added':
        return this.#items.beginSummary(this.#places.of(event), textIndex(event))
      case 'response.output_text.annotation.added': {
        const citation = readAnnotation(asRecord(event['annotation']))
        return citation && this.#items.cite(this.#places.of(event), textIndex(event), citation)
      }
      case 'error':
        return this.#fail(data, event)
      default:
        if (isErrorObject(event)) this.#fail(data, event)
    }
  }

  /**
   * Returns the text with an index made of item, text and kind of text, so that the frame template of one
   * text is never used for another.
   */
  protected pieceOf(data: string): FrameText | undefined {
    const event = parseRecord(data)
    const kind = DELTA_EVENTS.findIndex(({ type }) => type === event?.['type'])
    const text = event?.['delta']
    if (!event || kind < 0 || typeof text !== 'string' || text === '') return undefined
    if (readLogprobs(event['logprobs'])) return undefined
    const place = this.#places.of(event) * MAX_TEXTS + Math.min(textIndex(event), MAX_TEXTS - 1)
    return { index: place * DELTA_EVENTS.length + kind, text }
  }

  protected readPiece(index: number, text: string): void {
    const { kind } = DELTA_EVENTS[index % DELTA_EVENTS.length] as (typeof DELTA_EVENTS)[number]
    const place = Math.floor(index / DELTA_EVENTS.length)
    this.#items.grow(Math.floor(place / MAX_TEXTS), place % MAX_TEXTS, kind, text)
  }

  protected override copyPiece(
    index: number,
    bytes: Buffer,
    match: FrameTextMatch,
  ): CopyablePart | undefined {
    const { kind } = DELTA_EVENTS[index % DELTA_EVENTS.length] as (typeof DELTA_EVENTS)[number]
    const place = Math.floor(index / DELTA_EVENTS.length)
    const item = { index: Math.floor(place / MAX_TEXTS), textIndex: place % MAX_TEXTS }
    return kind === 'custom' || kind === 'refusal' ? undefined : this.#items.copy(item, kind, bytes, match)
  }

  protected isTerminator(data: string): boolean {
    return TERMINAL_EVENTS.has(stringOrEmpty(parseRecord(data)?.['type']))
  }

  /** Emits nothing: a stream without its final event counts as truncated. */
  protected handleClose(): void {}

  #start(response: Event): void {
    this.served = laterStatedService(this.served, statedTier(response['service_tier']))
    this.diagnosis = responseDiagnosis(response)
    if (this.#isStarted) return
    this.#isStarted = true
    this.emit({
      kind: 'start',
      id: stringOrEmpty(response['id']),
      model: stringOrEmpty(response['model']),
      usage: usageInResponse(response),
    })
  }

  #finish(type: string, event: Event, data: string): void {
    const response = responseInEvent(event) ?? {}
    this.#usage = usageInResponse(response, this.tools) ?? this.#usage
    if (type === 'response.failed' || type === 'response.cancelled') return this.#fail(data, event)
    const error = errorOfResponse(response)
    if (error) {
      this.isOver = true
      return this.emit(failureEvent(error))
    }
    this.#start(response)
    const output = response['output']
    const textsIn = itemTextFinders(data, (scan) => {
      const holder = scan.span('response')
      return elementsOfList(scan, holder && scan.memberOf(holder.node, 'output'))
    })
    for (const [index, value] of (Array.isArray(output) ? output.slice(0, MAX_ITEMS) : []).entries()) {
      const item = asRecord(value) ?? {}
      this.#items.finish(this.#places.inOutput(item, index), item, textsIn(item, index))
    }
    this.#items.endAll()
    this.isOver = true
    const status = type.slice('response.'.length)
    this.emit({
      kind: 'end',
      stop: readResponsesStop({ status, ...response }, this.#items),
      usage: this.#usage,
      served: this.served,
    })
  }

  /** Emits an error of the upstream, which is in an `error` event or in the response of `response.failed`. */
  #fail(data: string, event: Event | undefined): void {
    this.isOver = true
    const response = event && responseInEvent(event)
    const failure = asRecord(response?.['error'])
    const read = failureEvent({ data: failure ? JSON.stringify({ error: failure }) : data })
    this.emit({ ...read, type: read.type === 'error' ? undefined : read.type })
  }
}

type Item = Readonly<Record<string, unknown>>

/** Types of deltas that the gateway does not know, but for those of audio. */
const UNKNOWN_DELTA = /^response\.(?!.*audio).*\.delta$/

/** Kinds of text to which deltas add. */
type Kind = 'text' | 'refusal' | 'thinking' | 'tool-call' | 'custom'

/** An item of which more events may arrive. */
interface OpenItem {
  /** The item in its `added` event. A tool call has its name from then on. */
  readonly added: Item
  /** Index of the part to which the current text of the item belongs; undefined if there is no text yet. */
  part: number | undefined
  /** Index of the current text within the item, and the characters of this text that were emitted. */
  textIndex: number
  emitted: string
  /** Number of citations, and of log probabilities, of the current text that were emitted. */
  emittedCitations: number
  emittedLogprobs: number
  /** Number of texts of the item that are complete. */
  finished: number
  /** The first half of a surrogate pair, kept until the second half arrives. */
  half: string
}

const CUSTOM_HEAD = `{"${CUSTOM_INPUT_MEMBER}":"`
const BETWEEN_SUMMARIES = '\n\n'

/**
 * Builds parts from the items of a stream. Each text becomes a part, and all thoughts of an item become one
 * part. Text that was in no delta is emitted when the item is done.
 */
class ItemParts {
  calledTools = false
  readonly #emit: (event: ReplyEvent) => void
  readonly #open = new Map<number, OpenItem>()
  readonly #done = new Set<number>()
  /** The id of the latest call at each index, and the ids of calls that have ended. */
  readonly #calls = new Map<number, string>()
  readonly #ended = new Set<string>()
  #parts = 0

  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit
  }

  /** Begins an item. A tool call becomes a part at once, other items with their first text. */
  begin(index: number, added: Item): void {
    this.#divide(index, added)
    if (this.#done.has(index)) return
    const item = openItem(added)
    this.#open.set(index, item)
    const type = added['type']
    if (type === 'function_call') this.#startCall(item, '')
    else if (type === 'custom_tool_call') this.#startCall(item, CUSTOM_HEAD)
  }

  /** Ends the call at an index at which another one begins: some servers give all calls the same index. */
  #divide(index: number, added: Item): void {
    const before = this.#calls.get(index)
    const call = callOf(added)
    if (call === undefined) return
    this.#calls.set(index, call)
    if (before === undefined || call === before) return
    this.#noteEnded(before)
    const open = this.#open.get(index)
    if (open?.part !== undefined) this.#endText(open)
    this.#done.delete(index)
  }

  /** Begins another summary in the thoughts of an item, separated from the one before by a blank line. */
  beginSummary(index: number, summary: number): void {
    const item = this.#open.get(index)
    if (summary > 0 && item?.part !== undefined) this.#emitText(item, 'thinking', BETWEEN_SUMMARIES)
  }

  /** Adds a piece to a text of an item. If the item had no `added` event, it begins now. */
  grow(index: number, textIndex: number, kind: Kind, text: string, logprobs?: Logprobs): void {
    if (text === '' || this.#done.has(index)) return
    if (!this.#open.has(index)) this.begin(index, { type: ITEM_TYPES[kind] })
    const item = this.#open.get(index) as OpenItem
    const isContent = kind === 'text' || kind === 'refusal'
    if (isContent && item.part !== undefined && textIndex !== item.textIndex) this.#endText(item)
    item.textIndex = textIndex
    if (logprobs) item.emittedLogprobs += logprobs.length
    this.#emitText(item, kind, text, logprobs)
  }

  /**
   * Returns the current part of the item, so that the text can be copied as bytes; undefined if the text does
   * not belong to this part.
   */
  copy(
    { index, textIndex }: { readonly index: number; readonly textIndex: number },
    kind: Exclude<Kind, 'custom' | 'refusal'>,
    bytes: Buffer,
    match: FrameTextMatch,
  ): CopyablePart | undefined {
    const item = this.#open.get(index)
    if (item?.part === undefined || item.textIndex !== textIndex) return undefined
    item.emitted += decodeFrameText(bytes, match)
    return { kind: kind === 'tool-call' ? 'tool-input' : kind, index: item.part }
  }

  /**
   * Adds a source that a text cites. If the source arrives before the text, it is emitted when the item is
   * done.
   */
  cite(index: number, textIndex: number, citation: Citation): void {
    const item = this.#open.get(index)
    if (item?.part === undefined || item.textIndex !== textIndex || item.added['type'] !== 'message') return
    item.emittedCitations++
    this.#emit({ kind: 'citation', index: item.part, citation })
  }

  /** Ends an item. `item` is the item in its `done` event. */
  finish(given: number, item: Item, textOf: MemberText): void {
    let index = given
    const call = callOf(item)
    if (call !== undefined) {
      if (this.#ended.has(call)) return
      this.#noteEnded(call)
      for (const [at, { added }] of this.#open) if (callOf(added) === call) index = at
    }
    if (this.#done.has(index)) return
    this.#done.add(index)
    const open = this.#open.get(index) ?? openItem(item)
    this.#open.delete(index)
    // An empty text had no deltas, so it is not among those that are finished.
    const parts = readItem(item, textOf).filter((part) => part.kind !== 'text' || part.text !== '')
    for (const part of parts.slice(open.finished)) this.#complete(open, part)
    // If the item is now of another kind than its deltas, its current text ends.
    if (open.part !== undefined) this.#endText(open)
  }

  #noteEnded(call: string): void {
    if (this.#ended.size < MAX_ITEMS) this.#ended.add(call)
  }

  /** Ends all open items. */
  endAll(): void {
    for (const item of this.#open.values()) if (item.part !== undefined) this.#endText(item)
    this.#open.clear()
  }

  #complete(open: OpenItem, part: ReplyPart): void {
    switch (part.kind) {
      case 'text':
        this.#completeText(open, part)
        break
      case 'thinking':
        this.#emitRest(open, 'thinking', part.text)
        if (part.proof)
          this.#emit({ kind: 'proof', index: this.#partOf(open, 'thinking'), proof: part.proof })
        break
      case 'tool-call':
        if (open.part === undefined) this.#start(open, { kind: 'tool-call', id: part.id, name: part.name })
        this.calledTools = true
        this.#emitRest(open, 'tool-call', part.input)
        break
      case 'search':
      case 'opaque':
        this.#start(open, part)
    }
    if (open.part !== undefined) this.#endText(open)
  }

  /** Emits the rest of a text that was in no delta, with its log probabilities and its citations. */
  #completeText(open: OpenItem, { text, refusal, citations = [], logprobs = [] }: ReplyText): void {
    this.#emitRest(open, refusal ? 'refusal' : 'text', text)
    if (open.part === undefined) return
    const index = open.part
    const rest = logprobs.slice(open.emittedLogprobs)
    if (rest.length > 0) this.#emit({ kind: 'text', index, text: '', logprobs: rest })
    for (const citation of citations.slice(open.emittedCitations))
      this.#emit({ kind: 'citation', index, citation })
  }

  #emitRest(open: OpenItem, kind: Exclude<Kind, 'custom'>, whole: string): void {
    // If the deltas differ from the final text, the rest is not emitted.
    if (whole.length > open.emitted.length && whole.startsWith(open.emitted))
      this.#emitText(open, kind, whole.slice(open.emitted.length))
  }

  #emitText(item: OpenItem, kind: Kind, text: string, logprobs?: Logprobs): void {
    const piece = kind === 'custom' ? escaped(item, text) : text
    if (piece === '') return
    const index = this.#partOf(item, kind)
    item.emitted += piece
    if (kind === 'text') this.#emit({ kind, index, text: piece, ...(logprobs && { logprobs }) })
    else if (kind === 'refusal') this.#emit({ kind: 'text', index, text: piece })
    else if (kind === 'thinking') this.#emit({ kind, index, text: piece })
    else this.#emit({ kind: 'tool-input', index, text: piece })
  }

  #partOf(item: OpenItem, kind: Kind): number {
    if (item.part !== undefined) return item.part
    if (kind === 'refusal') return this.#start(item, { kind: 'text', refusal: true })
    return kind === 'text' || kind === 'thinking' ? this.#start(item, { kind }) : this.#startCall(item, '')
  }

  #startCall(item: OpenItem, head: string): number {
    const { added } = item
    this.calledTools = true
    const id = stringOrEmpty(added['call_id']) || stringOrEmpty(added['id'])
    const index = this.#start(item, { kind: 'tool-call', id, name: stringOrEmpty(added['name']) })
    if (head !== '') this.#emit({ kind: 'tool-input', index, text: head })
    item.emitted = head
    return index
  }

  #start(item: OpenItem, part: Extract<ReplyEvent, { kind: 'part-start' }>['part']): number {
    const index = this.#parts++
    item.part = index
    this.#emit({ kind: 'part-start', index, part })
    return index
  }

  #endText(item: OpenItem): void {
    if (item.part !== undefined) this.#emit({ kind: 'part-end', index: item.part })
    item.part = undefined
    item.emitted = ''
    item.emittedCitations = 0
    item.emittedLogprobs = 0
    item.finished++
  }
}

/** The id of a call; undefined for a call without one, and for other items, of which a result has the id of its call. */
function callOf({ type, call_id: id }: Item): string | undefined {
  const isCall = typeof type === 'string' && type.endsWith('_call')
  return isCall && typeof id === 'string' && id !== '' ? id : undefined
}

function openItem(added: Item): OpenItem {
  return {
    added,
    part: undefined,
    textIndex: 0,
    emitted: '',
    emittedCitations: 0,
    emittedLogprobs: 0,
    finished: 0,
    half: '',
  }
}

/** Escapes plain text as a part of JSON arguments. */
function escaped(item: OpenItem, text: string): string {
  const whole = item.half + text
  item.half = /[\ud800-\udbff]$/.test(whole) ? whole.slice(-1) : ''
  return JSON.stringify(whole.slice(0, whole.length - item.half.length)).slice(1, -1)
}

/** Type of an item that begins without an `added` event, by the kind of its first text. */
const ITEM_TYPES: Readonly<Record<Kind, string>> = {
  text: 'message',
  refusal: 'message',
  thinking: 'reasoning',
  'tool-call': 'function_call',
  custom: 'custom_tool_call',
}
