import type { Usage } from '../../usage.ts'
import type { ReplyIdentity, StreamEncoder, StreamOptions } from '../../codec.ts'
import type { CopyableText, FrameWriter } from '../../frame-writer.ts'
import type { ClientTool } from '../../conversation.ts'
import type { ReplyEvent, StartedPart, Stop } from '../../reply.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { responseError } from '../errors.ts'
import { ClientToolsByFunction, saysSomething } from '../encode/reply.ts'
import { ResponseObject } from '../response-object.ts'
import { incompleteReason } from '../stop-reasons.ts'
import { ItemStream } from './item-stream.ts'

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
    const item = this.#current?.item
    if (item?.continueWith(event.part)) {
      this.#current = { index: event.index, item, isEnded: false }
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
