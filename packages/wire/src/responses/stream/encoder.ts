import type { Usage } from '../../usage.ts'
import type { ReplyIdentity, StreamEncoder, StreamOptions } from '../../codec.ts'
import { type CopyableText, textFrameOf, type FrameWriter, type TextFrame } from '../../frame-writer.ts'
import type { ProviderSignature, SearchPart, ClientTool } from '../../conversation.ts'
import type { Citation, Logprobs, ReplyEvent, ReplyPart, ReplyText, StartedPart, Stop } from '../../reply.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { responseError } from '../errors.ts'
import {
  annotationsOf,
  itemId,
  type ItemStatus,
  type ItemType,
  itemType,
  refusalPart,
  saysSomething,
  summaryPart,
  textPart,
  ClientToolsByFunction,
  writeItem,
} from '../encode/reply.ts'
import { ResponseObject } from '../response-object.ts'
import { incompleteReason } from '../stop-reasons.ts'
import { isCutOff } from '../../tool-input.ts'
import { CustomInputDecoder } from '../../openai-tools.ts'

/**
 * A part that began before the previous part ended. Its events are kept until then, because items are written
 * one after another.
 */
interface Waiting {
  readonly events: ReplyEvent[]
  isEnded: boolean
}

const IN_PROGRESS = 'response.in_progress'
/** Index of the part with the provider's words about the end, which no part of a reply has. */
const OF_END = -1

/**
 * Encodes the stream of a response: `created` and `in_progress`, one item after another, and a final event.
 * Events are numbered without gaps. An item is closed when the next one begins or the response ends, because
 * only then is it known whether it is complete.
 */
export class ResponsesStreamEncoder implements StreamEncoder {
  readonly #forms: ClientToolsByFunction
  readonly #response: ResponseObject
  #sequence = 0
  #isStarted = false
  /** The part that is being written, its item, and whether the part has ended. */
  #current: { readonly index: number; readonly item: ItemStream; isEnded: boolean } | undefined
  readonly #waiting = new Map<number, Waiting>()
  /** JSON texts of the items that are completely written. */
  readonly #output: string[] = []
  #ended: { readonly stop: Stop; readonly usage: Usage | undefined } | undefined
  #out = ''

  constructor(identity: ReplyIdentity, { replyContext }: Pick<StreamOptions, 'replyContext'> = {}) {
    this.#forms = new ClientToolsByFunction(replyContext?.tools)
    this.#response = new ResponseObject(identity, replyContext)
  }

  push(events: readonly ReplyEvent[]): string {
    this.#out = ''
    for (const event of events) if (!this.#ended) this.#write(event)
    return this.#out
  }

  copy(event: CopyableText, out: FrameWriter): boolean {
    if (this.#ended || this.#current?.index !== event.index) return false
    return this.#current.item.copy(event, out)
  }

  /**
   * Begins the response, or repeats `response.in_progress`. It must be an event, because clients ignore
   * comments.
   */
  keepAliveFrame(model: string, isNumbered = true): string {
    const isStarted = this.#isStarted
    if (!isNumbered) return isStarted ? eventOfResponse(IN_PROGRESS, '', this.#inProgress()) : ''
    this.#out = ''
    this.#start(model)
    return isStarted ? this.#progressFrame(IN_PROGRESS) : this.#out
  }

  finalFrames(charged = this.#ended?.usage): string {
    if (!this.#ended) return ''
    const reason = incompleteReason(this.#ended.stop)
    const status = reason === undefined ? 'completed' : 'incomplete'
    const response = this.#response.write({
      status,
      incompleteReason: reason,
      output: this.#output,
      usage: charged,
    })
    return this.#responseFrame(`response.${status}`, response)
  }

  /** Writes `response.failed` with the completed items. */
  failureFrame(error: ErrorContent): string {
    const response = this.#response.write({
      status: 'failed',
      error: responseError(error),
      output: this.#output,
    })
    return this.#responseFrame('response.failed', response)
  }

  #write(event: ReplyEvent): void {
    switch (event.kind) {
      case 'start':
        return this.#start(event.model)
      case 'part-start':
        return this.#begin(event)
      case 'text':
      case 'thinking':
      case 'tool-input':
        if (this.#current?.index !== event.index) return this.#wait(event)
        this.#out += this.#current.item.add(event.text, event.kind === 'text' ? event.logprobs : undefined)
        return
      case 'citation':
        if (this.#current?.index !== event.index) return this.#wait(event)
        this.#current.item.cite(event.citation)
        return
      case 'proof':
        if (this.#current?.index !== event.index) return this.#wait(event)
        this.#current.item.proof = event.proof
        return
      case 'part-end':
        return this.#end(event)
      case 'ping':
        if (this.#isStarted) this.#out += this.#progressFrame(IN_PROGRESS)
        return
      case 'end':
        return this.#finish(event.stop, event.usage)
      case 'failure':
    }
  }

  #start(model: string): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#response.model = model
    this.#out += this.#progressFrame('response.created') + this.#progressFrame(IN_PROGRESS)
  }

  #begin(event: Extract<ReplyEvent, { kind: 'part-start' }>): void {
    if (event.part.kind === 'opaque' && !saysSomething(event.part)) return
    if (this.#current && !this.#current.isEnded) {
      this.#waiting.set(event.index, { events: [event], isEnded: false })
      return
    }
    this.#close('completed')
    this.#start('')
    this.#current = { index: event.index, item: this.#itemFor(event.part), isEnded: false }
  }

  #itemFor(part: StartedPart): ItemStream {
    const form: ClientTool | undefined = part.kind === 'tool-call' ? this.#forms.of(part.name) : undefined
    return new ItemStream(part, {
      form,
      response: this.#response.itemKey,
      index: this.#output.length,
      nextNumber: () => this.#sequence++,
    })
  }

  #wait(event: Extract<ReplyEvent, { readonly index: number }>): void {
    this.#waiting.get(event.index)?.events.push(event)
  }

  #end(event: Extract<ReplyEvent, { kind: 'part-end' }>): void {
    const waiting = this.#waiting.get(event.index)
    if (waiting) waiting.isEnded = true
    if (this.#current?.index !== event.index) return
    this.#current.isEnded = true
    this.#takeUp()
  }

  /** Writes the parts that were kept, in order, up to the first one that has not ended. */
  #takeUp(): void {
    for (const [index, { events, isEnded }] of this.#waiting) {
      this.#waiting.delete(index)
      for (const event of events) this.#write(event)
      if (!isEnded) return
      if (this.#current) this.#current.isEnded = true
    }
  }

  #close(status: 'completed' | 'incomplete'): void {
    const item = this.#current?.item
    this.#current = undefined
    if (!item) return
    const closed = item.close(status)
    this.#out += closed.frames
    if (closed.item !== undefined) this.#output.push(closed.item)
  }

  #finish(stop: Stop, usage: Usage | undefined): void {
    this.#start('')
    if (this.#current) this.#current.isEnded = true
    for (const waiting of this.#waiting.values()) waiting.isEnded = true
    this.#takeUp()
    if (stop.words !== undefined) {
      this.#begin({ kind: 'part-start', index: OF_END, part: { kind: 'text', refusal: true } })
      this.#write({ kind: 'text', index: OF_END, text: stop.words })
    }
    this.#close(incompleteReason(stop) === undefined ? 'completed' : 'incomplete')
    this.#ended = { stop, usage }
  }

  #progressFrame(type: string): string {
    return this.#responseFrame(type, this.#inProgress())
  }

  #inProgress(): string {
    return this.#response.write({ status: 'in_progress', output: [] })
  }

  #responseFrame(type: string, response: string): string {
    return eventOfResponse(type, `"sequence_number":${this.#sequence++},`, response)
  }
}

/** An event about the whole response. `place`: its number as a member; empty if it has none. */
function eventOfResponse(type: string, place: string, response: string): string {
  return `event: ${type}\ndata: {"type":"${type}",${place}"response":${response}}\n\n`
}

/** The position of an item in the stream. */
interface Place {
  readonly form: ClientTool | undefined
  /** The part that the ids of all items of the response have in common. */
  readonly response: string
  readonly index: number
  /** Returns the number of the next event. */
  nextNumber(): number
}

/**
 * Names of the events for the text of an item, and of the member that contains the whole text in the last of
 * these events.
 */
interface Growth {
  readonly event: string
  readonly whole: 'text' | 'refusal' | 'arguments' | 'input'
  /** Members of an event that state the position of the text within the item, as JSON. */
  readonly place: string
  /** Whether the events contain the log probabilities of the text's tokens. */
  readonly hasLogprobs: boolean
  /** The events that begin and end a text within its item. */
  readonly frame?: { readonly event: string; part(text: Omit<ReplyText, 'kind'>): object }
}

const GROWTHS: Partial<Record<ItemType, Growth>> = {
  message: {
    event: 'response.output_text',
    whole: 'text',
    place: ',"content_index":0',
    hasLogprobs: true,
    frame: { event: 'response.content_part', part: textPart },
  },
  reasoning: {
    event: 'response.reasoning_summary_text',
    whole: 'text',
    place: ',"summary_index":0',
    hasLogprobs: false,
    frame: { event: 'response.reasoning_summary_part', part: summaryPart },
  },
  function_call: {
    event: 'response.function_call_arguments',
    whole: 'arguments',
    place: '',
    hasLogprobs: false,
  },
  custom_tool_call: {
    event: 'response.custom_tool_call_input',
    whole: 'input',
    place: '',
    hasLogprobs: false,
  },
}

const REFUSAL_GROWTH: Growth = {
  event: 'response.refusal',
  whole: 'refusal',
  place: ',"content_index":0',
  hasLogprobs: false,
  frame: { event: 'response.content_part', part: refusalPart },
}

const NO_LOGPROBS = ',"logprobs":[]'

/**
 * Writes one item of a stream: its `added` event, the deltas of its text, and its `done` event. Messages and
 * thoughts begin with their first text. A tool call whose input is needed as a whole is written at its end.
 */
class ItemStream {
  proof: ProviderSignature | undefined
  readonly #part: StartedPart
  readonly #place: Place
  #type: ItemType
  #id: string
  readonly #growth: Growth | undefined
  /** Extracts the input of a custom tool from the JSON arguments that the model writes. */
  readonly #custom: CustomInputDecoder | undefined
  /** The text as the upstream sent it, and as it was written to the client. */
  #text = ''
  #written = ''
  #isOpen = false
  #hasText = false
  readonly #citations: Citation[] = []
  /** Log probabilities of the tokens, and how many of them were written in deltas. */
  readonly #logprobs: unknown[] = []
  #sentLogprobs = 0
  /**
   * The beginning of a delta event up to its sequence number, and what is between this number and the text.
   */
  #deltaHead = ''
  #deltaPlace = ''
  /** The beginning of a delta event up to its sequence number, and the bytes before and after its text. */
  #delta: { readonly head: Buffer; readonly afterNumber: TextFrame } | undefined

  constructor(part: StartedPart, place: Place) {
    this.#part = part
    this.#place = place
    this.#type = itemType(part, place.form)
    this.#id = itemId(this.#type, place.response, place.index)
    this.#growth = part.kind === 'text' && part.refusal ? REFUSAL_GROWTH : GROWTHS[this.#type]
    this.#custom = this.#type === 'custom_tool_call' ? new CustomInputDecoder() : undefined
  }

  /** Adds a piece of text. Returns the frames to write. */
  add(text: string, logprobs?: Logprobs): string {
    if (logprobs) this.#logprobs.push(...logprobs)
    if (text === '') return ''
    this.#text += text
    return this.#growth ? this.#append(this.#custom ? this.#custom.push(text) : text) : ''
  }

  /**
   * Copies a text as bytes. Returns false if that is not possible: for the first text of an item, and for a
   * text that must be changed.
   */
  copy(event: CopyableText, out: FrameWriter): boolean {
    if (!this.#delta || this.#custom || this.#logprobs.length > this.#sentLogprobs) return false
    const { text, bytes, spans } = event
    this.#text += text
    this.#written += text
    for (let i = 0; i < spans.length; i += 2) {
      out.bytes(this.#delta.head)
      out.text(String(this.#place.nextNumber()))
      out.copiedAt(this.#delta.afterNumber, bytes, spans, i)
    }
    return true
  }

  /**
   * Records a page that the text cites. Citations are written at the end of the item, when the text is
   * complete.
   */
  cite(citation: Citation): void {
    this.#citations.push(citation)
  }

  /**
   * Returns the frames that end the item, and the JSON of the item; no frames if the item is empty. A tool
   * call whose arguments were cut off is always marked as incomplete.
   */
  close(given: Exclude<ItemStatus, 'in_progress'>): {
    readonly frames: string
    readonly item: string | undefined
  } {
    const part = this.#whole()
    if (!part) return { frames: '', item: undefined }
    const status = part.kind === 'tool-call' && isCutOff(part.input) ? 'incomplete' : given
    this.#settleType()
    let frames = this.#growth ? this.#append(this.#custom?.end() ?? '') : ''
    const isFunction = this.#type === 'function_call'
    if (isFunction && this.#written === '') frames += this.#append('{}')
    frames += this.#open()
    if (part.kind === 'search') frames += this.#searchFrames(part)
    if (this.#growth && (this.#hasText || this.#custom)) frames += this.#endText(this.#growth)
    const item = writeItem(part, { id: this.#id, type: this.#type, status, form: this.#place.form })
    frames += this.#frame('response.output_item.done', `,"output_index":${this.#place.index},"item":${item}`)
    return { frames, item }
  }

  /**
   * Decides the item type of a tool call from its complete input, if no event of the item was written yet.
   */
  #settleType(): void {
    if (this.#isOpen || this.#growth) return
    this.#type = itemType(this.#part, this.#place.form, this.#text)
    this.#id = itemId(this.#type, this.#place.response, this.#place.index)
  }

  /** The part for this item with its complete content. */
  #whole(): ReplyPart | undefined {
    const part = this.#part
    switch (part.kind) {
      case 'text':
        if (this.#text === '') return undefined
        return { ...part, text: this.#text, citations: this.#citations, logprobs: this.#logprobs }
      case 'thinking':
        if (this.#text === '' && !this.proof) return undefined
        return { kind: 'thinking', text: this.#text, ...(this.proof && { proof: this.proof }) }
      case 'tool-call':
        return { ...part, input: this.#text }
      case 'search':
      case 'opaque':
        return part
    }
  }

  #append(text: string): string {
    if (text === '' || !this.#growth) return ''
    const opening = this.#hasText ? '' : this.#open() + this.#beginText(this.#growth)
    this.#written += text
    return `${opening}${this.#deltaHead}${this.#place.nextNumber()}${this.#deltaPlace}${JSON.stringify(text)}${this.#growth.hasLogprobs ? this.#nextLogprobs() : ''}}\n\n`
  }

  #nextLogprobs(): string {
    if (this.#logprobs.length === this.#sentLogprobs) return NO_LOGPROBS
    const next = JSON.stringify(this.#logprobs.slice(this.#sentLogprobs))
    this.#sentLogprobs = this.#logprobs.length
    return `,"logprobs":${next}`
  }

  /** Writes the `added` event. The item in it has no text yet. */
  #open(): string {
    if (this.#isOpen) return ''
    this.#isOpen = true
    const part = this.#started()
    const item = writeItem(part, {
      id: this.#id,
      type: this.#type,
      status: 'in_progress',
      form: this.#place.form,
    })
    return this.#frame('response.output_item.added', `,"output_index":${this.#place.index},"item":${item}`)
  }

  #started(): ReplyPart {
    const part = this.#part
    if (part.kind === 'opaque' || part.kind === 'search') return part
    // A tool call that has no deltas is complete in its `added` event.
    if (part.kind === 'tool-call') return { ...part, input: this.#growth ? '' : this.#text }
    return { kind: part.kind, text: '' }
  }

  #beginText({ event, place, hasLogprobs, frame }: Growth): string {
    this.#hasText = true
    const where = this.#where(place)
    this.#deltaHead = `event: ${event}.delta\ndata: {"type":"${event}.delta","sequence_number":`
    this.#deltaPlace = `${where},"delta":`
    const after = textFrameOf(this.#deltaPlace, `${hasLogprobs ? NO_LOGPROBS : ''}}\n\n`)
    this.#delta = { head: Buffer.from(this.#deltaHead), afterNumber: after }
    return frame
      ? this.#frame(`${frame.event}.added`, `${where},"part":${JSON.stringify(frame.part({ text: '' }))}`)
      : ''
  }

  #endText({ event, whole, place, hasLogprobs, frame }: Growth): string {
    const where = this.#where(place)
    const text = JSON.stringify(this.#written)
    const rest = hasLogprobs ? `,"logprobs":${JSON.stringify(this.#logprobs)}` : ''
    const annotations = annotationsOf(this.#written, this.#citations)
      .map((annotation, index) =>
        this.#frame(
          `${event}.annotation.added`,
          `${where},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`,
        ),
      )
      .join('')
    const done = this.#frame(`${event}.done`, `${where},"${whole}":${text}${rest}`)
    if (!frame) return done
    const part = frame.part({ text: this.#written, citations: this.#citations, logprobs: this.#logprobs })
    return annotations + done + this.#frame(`${frame.event}.done`, `${where},"part":${JSON.stringify(part)}`)
  }

  /** Events for a search. The search is already finished when they are written. */
  #searchFrames({ isFailed }: SearchPart): string {
    const states = ['in_progress', 'searching', ...(isFailed ? [] : ['completed'])]
    return states.map((state) => this.#frame(`response.web_search_call.${state}`, this.#where(''))).join('')
  }

  #where(place: string): string {
    return `,"item_id":"${this.#id}","output_index":${this.#place.index}${place}`
  }

  #frame(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#place.nextNumber()}${members}}\n\n`
  }
}
