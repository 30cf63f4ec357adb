import type { Usage } from '../../usage.ts'
import { choiceOfPart, type ReplyEvent, type StartedPart, type Stop } from '../../reply.ts'
import type { ReplyIdentity, StreamEncoder, StreamOptions } from '../../codec.ts'
import type { ProviderSignature } from '../../conversation.ts'
import { type CopyableText, textFrameOf, type FrameWriter } from '../../frame-writer.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { geminiErrorText, statusOfStreamError } from '../errors.ts'
import { writeLogprobs } from '../logprobs.ts'
import { writeGeminiStop } from '../stop-reasons.ts'
import { writeUsage } from '../usage.ts'
import { GroundingCollector } from '../grounding.ts'
import { EMPTY_PART, PartWriter } from '../encode/reply.ts'

/** A part of which the pieces are collected, because it is written only when it is complete. */
interface CollectedPart {
  readonly part: Exclude<StartedPart, { kind: 'text' | 'thinking' | 'search' }>
  input: string
  isEnded: boolean
}

const CANDIDATE = '{"candidates":[{"content":{"role":"model","parts":['
const TEXT = '{"text":'
const THOUGHT = ',"thought":true'
const PARTS_END = ']},'

const NO_FRAMES = { text: textFrameOf('', ''), thinking: textFrameOf('', '') }

/**
 * Encodes a stream: texts and thoughts as they arrive, each function call in one chunk when it is complete,
 * and a last chunk with the finish reason and the usage. Every chunk contains a part, because clients discard
 * chunks without one. The chunks are events, or the elements of one JSON array.
 */
export class GeminiStreamEncoder implements StreamEncoder {
  readonly #identity: ReplyIdentity
  readonly #out: ChunkFrames
  readonly #writer = new PartWriter()
  readonly #grounding = new GroundingCollector()
  readonly #gathered = new Map<number, CollectedPart>()
  #id = ''
  #model = ''
  /** The end of every chunk: the model and the id of the response. */
  #tail = ''
  /** The bytes before and after a text, and before and after a thought, in a stream of events. */
  #frames = NO_FRAMES
  readonly #choice: number
  /** The end of the candidate in a chunk, which follows its content. */
  readonly #candidateEnd: string
  /** Encoders of the second and further candidates, by index. */
  readonly #others = new Map<number, GeminiStreamEncoder>()
  #ended: { readonly stop: Stop; readonly usage: Usage | undefined } | undefined

  constructor(
    identity: ReplyIdentity,
    { jsonArray = false }: Pick<StreamOptions, 'jsonArray'> = {},
    other?: { readonly choice: number; readonly out: ChunkFrames },
  ) {
    this.#identity = identity
    this.#choice = other?.choice ?? 0
    this.#candidateEnd = `"index":${this.#choice}}],`
    this.#out = other?.out ?? new ChunkFrames(jsonArray)
    this.#name('', '')
  }

  push(events: readonly ReplyEvent[]): string {
    let text = ''
    for (const event of events) if (!this.#ended) text += this.#encoderOf(event).#write(event)
    return text
  }

  copy(event: CopyableText, out: FrameWriter): boolean {
    if (this.#out.isArray || this.#ended || event.kind === 'tool-input') return false
    if (choiceOfPart(event.index) > 0) return false
    if (event.kind === 'text') this.#grounding.grow(event.index, event.text)
    out.copied(this.#frames[event.kind], event)
    return true
  }

  finalFrames(charged = this.#ended?.usage): string {
    if (!this.#ended) return ''
    const usage = charged ? `"usageMetadata":${JSON.stringify(writeUsage(charged))},` : ''
    return this.#out.last(this.#lastChunk(this.#ended.stop, usage))
  }

  /**
   * Returns '' for a JSON array, which cannot be kept alive: each element must contain a part, and some
   * clients do not accept white space between elements.
   */
  keepAliveFrame(): string {
    return this.#out.isArray ? '' : KEEP_ALIVE_FRAME
  }

  failureFrame(error: ErrorContent): string {
    return this.#out.last(geminiErrorText({ ...error, status: statusOfStreamError(error) }))
  }

  /** Returns the encoder of the candidate to which an event belongs. */
  #encoderOf(event: ReplyEvent): GeminiStreamEncoder {
    return 'index' in event ? this.#encoder(choiceOfPart(event.index)) : this
  }

  #encoder(choice: number): GeminiStreamEncoder {
    const known = choice === 0 ? this : this.#others.get(choice)
    if (known) return known
    const other = new GeminiStreamEncoder(this.#identity, {}, { choice, out: this.#out })
    other.#name(this.#id, this.#model)
    this.#others.set(choice, other)
    return other
  }

  #lastChunk(stop: Stop, usage: string): string {
    const facts = writeGeminiStop(stop) + this.#grounding.write()
    return `${CANDIDATE}${EMPTY_PART}${PARTS_END}${facts}${this.#candidateEnd}${usage}${this.#tail}`
  }

  #write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'start':
        this.#name(event.id, event.model)
        return ''
      case 'part-start':
        if (event.part.kind === 'search') this.#grounding.search(event.part)
        if (event.part.kind === 'tool-call' || event.part.kind === 'opaque')
          this.#gathered.set(event.index, { part: event.part, input: '', isEnded: false })
        return ''
      case 'text':
        this.#grounding.grow(event.index, event.text)
        if (event.text === '' && !event.logprobs) return ''
        return this.#chunk(`${TEXT}${JSON.stringify(event.text)}}`, writeLogprobs(event.logprobs))
      case 'thinking':
        return event.text === '' ? '' : this.#chunk(`${TEXT}${JSON.stringify(event.text)}${THOUGHT}}`)
      case 'proof':
        return this.#proof(event.proof)
      case 'tool-input': {
        const gathered = this.#gathered.get(event.index)
        if (gathered) gathered.input += event.text
        return ''
      }
      case 'part-end':
        return this.#end(event.index)
      case 'end': {
        const { others = [] } = event
        const ends = others.map((stop, i) => this.#encoder(i + 1).#endAs(stop))
        this.#ended = event
        return this.#endParts() + ends.join('')
      }
      case 'citation':
        this.#grounding.cite(event.index, event.citation)
        return ''
      case 'ping':
      case 'failure':
        return ''
    }
  }

  /** Ends a candidate other than the first. */
  #endAs(stop: Stop): string {
    return this.#endParts() + this.#out.frame(this.#lastChunk(stop, ''))
  }

  #endParts(): string {
    for (const gathered of this.#gathered.values()) gathered.isEnded = true
    return this.#writeEnded()
  }

  #name(id: string, model: string): void {
    this.#id = id
    this.#model = model
    const tail = { modelVersion: model, responseId: id || this.#identity.id }
    this.#tail = JSON.stringify(tail).slice(1)
    const head = `data: ${CANDIDATE}${TEXT}`
    const rest = `${PARTS_END}${this.#candidateEnd}${this.#tail}\r\n\r\n`
    this.#frames = { text: textFrameOf(head, `}${rest}`), thinking: textFrameOf(head, `${THOUGHT}}${rest}`) }
  }

  #proof(proof: ProviderSignature): string {
    const part = this.#writer.writeProof(proof)
    return part === undefined ? '' : this.#chunk(part)
  }

  #end(index: number): string {
    const gathered = this.#gathered.get(index)
    if (!gathered) return ''
    gathered.isEnded = true
    return this.#writeEnded()
  }

  /** Writes the parts that have ended, up to the first one that has not, so that calls keep their order. */
  #writeEnded(): string {
    let text = ''
    for (const [index, { part, input, isEnded }] of this.#gathered) {
      if (!isEnded) break
      this.#gathered.delete(index)
      const written = this.#writer.write(part.kind === 'tool-call' ? { ...part, input } : part)
      if (written !== undefined) text += this.#chunk(written)
    }
    return text
  }

  /**
   * Writes a chunk. `facts` contains members of the candidate besides its content, each followed by a comma.
   */
  #chunk(part: string, facts = ''): string {
    return this.#out.frame(`${CANDIDATE}${part}${PARTS_END}${facts}${this.#candidateEnd}${this.#tail}`)
  }
}

/** Frames for the chunks of a stream: events, or the elements of one JSON array. */
class ChunkFrames {
  readonly isArray: boolean
  #hasChunks = false

  constructor(isArray: boolean) {
    this.isArray = isArray
  }

  frame(chunk: string): string {
    if (!this.isArray) return `data: ${chunk}\r\n\r\n`
    const before = this.#hasChunks ? ',\r\n' : '['
    this.#hasChunks = true
    return before + chunk
  }

  /** Returns the frame that ends the stream. */
  last(chunk: string): string {
    return this.isArray ? `${this.frame(chunk)}]` : this.frame(chunk)
  }
}

/**
 * A comment that keeps a stream of events alive, because Gemini has no event without content. Clients skip
 * comments: the connection stays in use, but a client's timeout for the next event is not extended.
 */
export const KEEP_ALIVE_FRAME = ': keep-alive\r\n\r\n'
