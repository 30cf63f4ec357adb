import type { Usage } from '../../domain/usage.ts'
import type { ReplyIdentity, StreamEncoder, StreamOptions } from '../codec.ts'
import type { Proof } from '../conversation.ts'
import { type CopiedText, frameOf } from '../copied-text.ts'
import type { FrameWriter } from '../frame-writer.ts'
import type { ReplyEvent, StartedPart, Stop } from '../reply.ts'
import type { ErrorParts } from '../upstream-error.ts'
import { geminiErrorText, statusOf } from './errors.ts'
import { KEEP_ALIVE_FRAME } from './keep-alive-frame.ts'
import { FINISH_REASONS } from './stop-reasons.ts'
import { usageOut } from './usage-out.ts'
import { WrittenGrounding } from './written-grounding.ts'
import { EMPTY_PART, PartWriter } from './written-part.ts'

/** A part that is written once it is whole. */
interface Gathered {
  readonly part: Exclude<StartedPart, { kind: 'text' | 'thinking' | 'search' }>
  input: string
  isEnded: boolean
}

const CANDIDATE = '{"candidates":[{"content":{"role":"model","parts":['
const TEXT = '{"text":'
const THOUGHT = ',"thought":true'
const CHUNK_END = ']},"index":0}],'

const NO_FRAMES = { text: frameOf('', ''), thinking: frameOf('', '') }

/**
 * Encodes a stream: texts and thoughts as they come, calls whole, each in a chunk of its own; a last chunk
 * with the finish reason and the usage. Every chunk has a part, since clients discard an answer otherwise.
 * Chunks are events, or the elements of one array.
 */
export class GeminiStreamEncoder implements StreamEncoder {
  readonly #identity: ReplyIdentity
  readonly #isArray: boolean
  readonly #writer = new PartWriter()
  readonly #grounding = new WrittenGrounding()
  readonly #gathered = new Map<number, Gathered>()
  /** End of every chunk. */
  #tail = ''
  /** Frames of texts and thoughts in a stream of events. */
  #frames = NO_FRAMES
  #hasChunks = false
  #ended: { readonly stop: Stop; readonly usage: Usage | undefined } | undefined

  constructor(identity: ReplyIdentity, { jsonArray = false }: Pick<StreamOptions, 'jsonArray'> = {}) {
    this.#identity = identity
    this.#isArray = jsonArray
    this.#name('', '')
  }

  push(events: readonly ReplyEvent[]): string {
    let text = ''
    for (const event of events) if (!this.#ended) text += this.#write(event)
    return text
  }

  copy(event: CopiedText, out: FrameWriter): boolean {
    if (this.#isArray || this.#ended || event.kind === 'tool-input') return false
    if (event.kind === 'text') this.#grounding.grow(event.index, event.text)
    out.copied(this.#frames[event.kind], event)
    return true
  }

  finalFrames(charged = this.#ended?.usage): string {
    if (!this.#ended) return ''
    const usage = charged ? `"usageMetadata":${JSON.stringify(usageOut(charged))},` : ''
    const reason = FINISH_REASONS[this.#ended.stop.reason]
    return this.#last(
      `${CANDIDATE}${EMPTY_PART}]},"finishReason":"${reason}",${this.#grounding.write()}"index":0}],${usage}${this.#tail}`,
    )
  }

  /** Elements of an array bring a part each, and some readers of arrays take no space between them. */
  keepAliveFrame(): string {
    return this.#isArray ? '' : KEEP_ALIVE_FRAME
  }

  failureFrame(error: ErrorParts): string {
    return this.#last(geminiErrorText({ ...error, status: statusOf(error) }))
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
        return event.text === '' ? '' : this.#chunk(`${TEXT}${JSON.stringify(event.text)}}`)
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
        for (const gathered of this.#gathered.values()) gathered.isEnded = true
        this.#ended = event
        return this.#writeEnded()
      }
      case 'citation':
        this.#grounding.cite(event.index, event.citation)
        return ''
      case 'ping':
      case 'failure':
        return ''
    }
  }

  #name(id: string, model: string): void {
    const tail = { modelVersion: model, responseId: id || this.#identity.id }
    this.#tail = JSON.stringify(tail).slice(1)
    const head = `data: ${CANDIDATE}${TEXT}`
    const rest = `${CHUNK_END}${this.#tail}\r\n\r\n`
    this.#frames = { text: frameOf(head, `}${rest}`), thinking: frameOf(head, `${THOUGHT}}${rest}`) }
  }

  #proof(proof: Proof): string {
    const part = this.#writer.writeProof(proof)
    return part === undefined ? '' : this.#chunk(part)
  }

  #end(index: number): string {
    const gathered = this.#gathered.get(index)
    if (!gathered) return ''
    gathered.isEnded = true
    return this.#writeEnded()
  }

  /** Writes what has ended, up to the first part that is still growing: calls keep their order. */
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

  #chunk(part: string): string {
    const chunk = `${CANDIDATE}${part}${CHUNK_END}${this.#tail}`
    if (!this.#isArray) return `data: ${chunk}\r\n\r\n`
    const before = this.#hasChunks ? ',\r\n' : '['
    this.#hasChunks = true
    return before + chunk
  }

  #last(chunk: string): string {
    if (!this.#isArray) return `data: ${chunk}\r\n\r\n`
    return `${this.#hasChunks ? ',\r\n' : '['}${chunk}]`
  }
}
