import type { ReplyIdentity, StreamEncoder } from '../../codec.ts'
import type { Citation, ReplyEvent, StartedPart, Stop } from '../../reply.ts'
import { type CopyableText, textFrameOf, type FrameWriter, type TextFrame } from '../../frame-writer.ts'
import type { ProviderSignature, SearchPart } from '../../conversation.ts'
import { sealSignature, UNSIGNED_THOUGHT_ENVELOPE } from '../../signature-envelope.ts'
import type { Usage } from '../../usage.ts'
import { messageId, encodeForeignSearch } from '../encode/reply.ts'
import { messagesErrorText } from '../errors.ts'
import { DIRECT_CALLER, writeCitation } from '../blocks.ts'
import { NOT_STOPPED, writeStop } from '../stop-reasons.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { writeUsage } from '../usage.ts'

/**
 * A part that is kept in memory until an earlier part has ended, because blocks are written one after
 * another.
 */
interface Waiting {
  readonly index: number
  readonly part: StartedPart
  readonly texts: string[]
  readonly citations: Citation[]
  proof: ProviderSignature | undefined
  isEnded: boolean
}

const STOP_FRAME = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
/** An event without content. The protocol allows it anywhere in a stream. */
export const PING_FRAME = 'event: ping\ndata: {"type":"ping"}\n\n'

/** The `delta` of an event up to its text, by kind of part. */
const DELTAS = {
  text: '{"type":"text_delta","text":',
  thinking: '{"type":"thinking_delta","thinking":',
  'tool-call': '{"type":"input_json_delta","partial_json":',
} as const
const DELTA_TAIL = '}}\n\n'

/**
 * Encodes a messages stream; `docs/api.md: Events`. Blocks come one after another and are numbered without
 * gaps: one part is written as it arrives, and other parts are held back until it has ended. An empty text is
 * not written as a block.
 */
export class MessagesStreamEncoder implements StreamEncoder {
  readonly #identity: ReplyIdentity
  #isStarted = false
  /** How the message ended, and its usage. */
  #ended: { readonly stop: Stop; readonly usage: Usage | undefined } | undefined
  #calledTools = false
  #refused = false
  /** Index of the next block. */
  #next = 0
  /** The part whose block is open, or will open when its first text arrives. */
  #current:
    | {
        readonly index: number
        readonly part: StartedPart
        readonly citations: Citation[]
        isWritten: boolean
        isSigned?: true
        /** The bytes before and after the text in each further event of this part. */
        frame?: TextFrame | undefined
      }
    | undefined
  readonly #waiting = new Map<number, Waiting>()
  #out = ''

  constructor(identity: ReplyIdentity) {
    this.#identity = identity
  }

  push(events: readonly ReplyEvent[]): string {
    this.#out = ''
    for (const event of events) if (!this.#ended) this.#write(event)
    return this.#out
  }

  copy(event: CopyableText, out: FrameWriter): boolean {
    const current = this.#current
    if (current?.index !== event.index || !current.isWritten || this.#ended) return false
    const frame = (current.frame ??= this.#deltaFrame(current.part.kind))
    if (frame) out.copied(frame, event)
    return frame !== undefined
  }

  finalFrames(charged = this.#ended?.usage): string {
    if (!this.#ended) return ''
    const delta = writeStop(this.#ended.stop, { calledTools: this.#calledTools, refused: this.#refused })
    return eventText('message_delta', { delta, usage: writeUsage(charged) }) + STOP_FRAME
  }

  keepAliveFrame(): string {
    return this.#isStarted ? PING_FRAME : ''
  }

  failureFrame(error: ErrorContent): string {
    return messagesErrorText(error)
  }

  #write(event: ReplyEvent): void {
    switch (event.kind) {
      case 'start':
        return this.#start(event.id, event.model, event.usage)
      case 'part-start':
        return this.#begin(event.index, event.part)
      case 'text':
      case 'thinking':
      case 'tool-input':
        return this.#add(event.index, event.text)
      case 'citation':
        return this.#cite(event.index, event.citation)
      case 'proof':
        return this.#prove(event.index, event.proof)
      case 'part-end':
        return this.#end(event.index)
      case 'ping':
        if (this.#isStarted) this.#out += PING_FRAME
        return
      case 'end':
        return this.#finish(event.stop, event.usage)
      case 'failure':
    }
  }

  #start(id: string, model: string, usage: Usage | undefined): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#frame('message_start', {
      message: {
        id: messageId(id, this.#identity),
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        ...NOT_STOPPED,
        usage: writeUsage(usage),
      },
    })
  }

  #begin(index: number, part: StartedPart): void {
    if (part.kind === 'opaque' && part.protocol !== 'messages') return
    if (part.kind === 'tool-call') this.#calledTools = true
    if (part.kind === 'text' && part.refusal) this.#refused = true
    if (this.#current) {
      this.#waiting.set(index, { index, part, texts: [], citations: [], proof: undefined, isEnded: false })
      return
    }
    this.#current = { index, part, citations: [], isWritten: false }
    if (part.kind !== 'text' && part.kind !== 'search') this.#open()
  }

  #add(index: number, text: string): void {
    const current = this.#current
    if (current?.index !== index) {
      this.#waiting.get(index)?.texts.push(text)
      return
    }
    const { kind } = current.part
    if (text === '' || kind === 'opaque' || kind === 'search') return
    this.#open()
    this.#out += `${this.#deltaHead(kind)}${JSON.stringify(text)}${DELTA_TAIL}`
  }

  #deltaFrame(kind: StartedPart['kind']): TextFrame | undefined {
    return kind === 'opaque' || kind === 'search' ? undefined : textFrameOf(this.#deltaHead(kind), DELTA_TAIL)
  }

  /** The beginning of a delta event of the current block, up to its text. */
  #deltaHead(kind: keyof typeof DELTAS): string {
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#next},"delta":${DELTAS[kind]}`
  }

  /**
   * Records a citation. It is written at the end of its block, because the block opens only when its first
   * text arrives.
   */
  #cite(index: number, citation: Citation): void {
    const part = this.#current?.index === index ? this.#current : this.#waiting.get(index)
    part?.citations.push(citation)
  }

  #prove(index: number, proof: ProviderSignature): void {
    const waiting = this.#waiting.get(index)
    if (waiting) waiting.proof = proof
    if (this.#current?.index !== index) return
    this.#current.isSigned = true
    this.#sign(sealSignature(proof, 'messages'))
  }

  #sign(signature: string): void {
    this.#frame('content_block_delta', { index: this.#next, delta: { type: 'signature_delta', signature } })
  }

  #end(index: number): void {
    const waiting = this.#waiting.get(index)
    if (waiting) waiting.isEnded = true
    if (this.#current?.index !== index) return
    this.#close()
    this.#takeUp()
  }

  /** Writes the parts that were held back, in order, up to the first one that has not ended. */
  #takeUp(): void {
    for (const { index, part, texts, citations, proof, isEnded } of this.#waiting.values()) {
      this.#waiting.delete(index)
      this.#begin(index, part)
      this.#add(index, texts.join(''))
      for (const citation of citations) this.#cite(index, citation)
      if (proof) this.#prove(index, proof)
      if (!isEnded) return
      this.#close()
    }
  }

  /** Writes the start of the current part's block, if that was not done yet. */
  #open(): void {
    const current = this.#current
    if (!current || current.isWritten || current.part.kind === 'search') return
    current.isWritten = true
    this.#startBlock(startOf(current.part))
  }

  #startBlock(block: unknown): void {
    if (!this.#isStarted) this.#start('', '', undefined)
    this.#frame('content_block_start', { index: this.#next, content_block: block })
  }

  #close(): void {
    const current = this.#current
    this.#current = undefined
    if (current?.part.kind === 'search') return this.#writeSearch(current.part)
    if (!current?.isWritten) return
    if (current.part.kind === 'thinking' && !current.isSigned) this.#sign(UNSIGNED_THOUGHT_ENVELOPE)
    for (const citation of current.citations) {
      const delta = { type: 'citations_delta', citation: writeCitation(citation) }
      this.#frame('content_block_delta', { index: this.#next, delta })
    }
    this.#frame('content_block_stop', { index: this.#next++ })
  }

  /** Writes the blocks of a search. Its query is written as the input of a tool, in a delta. */
  #writeSearch(search: SearchPart): void {
    for (const block of encodeForeignSearch(search, `${this.#identity.id}${this.#next}`)) {
      const { input, ...rest } = block as { readonly input?: unknown }
      this.#startBlock(input === undefined ? rest : { ...rest, input: {} })
      if (input !== undefined) {
        const delta = { type: 'input_json_delta', partial_json: JSON.stringify(input) }
        this.#frame('content_block_delta', { index: this.#next, delta })
      }
      this.#frame('content_block_stop', { index: this.#next++ })
    }
  }

  #finish(stop: Stop, usage: Usage | undefined): void {
    this.#start('', '', undefined)
    if (this.#current) this.#close()
    for (const waiting of this.#waiting.values()) waiting.isEnded = true
    this.#takeUp()
    this.#ended = { stop, usage }
  }

  #frame(type: string, fields: object): void {
    this.#out += eventText(type, fields)
  }
}

function eventText(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** The block of a part in its start event. The text of the part follows in deltas. */
function startOf(part: Exclude<StartedPart, SearchPart>): unknown {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: '', citations: null }
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'tool-call':
      return { type: 'tool_use', id: part.id, name: part.name, input: {}, caller: DIRECT_CALLER }
    case 'opaque':
      return part.value
  }
}
