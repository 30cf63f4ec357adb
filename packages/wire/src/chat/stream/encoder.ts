import type { Usage } from '../../usage.ts'
import type { ReplyIdentity, StreamEncoder, StreamOptions } from '../../codec.ts'
import type { ReplyContext, OpaquePart, ProviderSignature } from '../../conversation.ts'
import { CustomInputDecoder } from '../../openai-tools.ts'
import {
  choiceOfPart,
  type Citation,
  codePointsIn,
  type ReplyEvent,
  type StartedPart,
  type Stop,
} from '../../reply.ts'
import { type CopyableText, textFrameOf, type FrameWriter, type TextFrame } from '../../frame-writer.ts'
import { customToolNames, SIGNATURE_PLACEHOLDER, writeAnnotation, writeLogprobs } from '../encode/reply.ts'
import { chatErrorFrame } from '../errors.ts'
import {
  callSignature,
  googleSignatureMembers,
  isReplacedByPlaceholder,
  writeReasoningDetail,
} from '../reasoning-details.ts'
import { FINISH_REASONS } from '../stop-reasons.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { tierMember, writeUsage } from '../usage.ts'

/** The index of a tool call in the reply, and whether any of its arguments were written. */
interface WrittenCall {
  readonly number: number
  hasInput: boolean
  /** Extracts the text of a custom tool's input from the arguments. */
  readonly custom?: CustomInputDecoder
  /** The bytes before and after the arguments in each further chunk of this tool call. */
  frame?: TextFrame
}

/** A text with citations. The citations are written after the text, because its length must be known. */
interface CitedText {
  /** The offset of the text in the content, in code points. */
  readonly base: number
  readonly citations: Citation[]
}

const DONE = 'data: [DONE]\n\n'
const NO_REASON = ',"finish_reason":null}]}\n\n'
const NO_FINISH = `},"logprobs":null${NO_REASON}`
const INPUT_TAIL = `}}]${NO_FINISH}`

/**
 * Encodes a stream for a chat client; the table in `docs/api.md: Events`. The text that all chunks have in
 * common is created only once.
 */
export class ChatStreamEncoder implements StreamEncoder {
  readonly #identity: ReplyIdentity
  readonly #includeUsage: boolean
  /**
   * Beginnings of chunks: `#chunk` ends before the choices, `#delta` before the members of the delta,
   * `#content` and `#reasoning` before the text.
   */
  #chunk = ''
  #delta = ''
  #content = ''
  #reasoning = ''
  #textFrame: TextFrame | undefined
  #thinkingFrame: TextFrame | undefined
  readonly #calls = new Map<number, WrittenCall>()
  readonly #texts = new Map<number, CitedText>()
  readonly #refusals = new Set<number>()
  /** The number of code points of the content so far. */
  #length = 0
  /** The number of code points of the reasoning so far. */
  #thinkingLength = 0
  /** Offset in the reasoning at which the current thought begins, in code points. */
  #thinkingFrom = 0
  #details = 0
  /** Signature that will be written with the next tool call. */
  #signature: string | undefined
  #isComplete = false
  #usage: Usage | undefined
  /** The end of chunks from the end of the reply on: `}`, after the tier if the upstream has stated it. */
  #tail = '}'
  readonly #choice: number
  readonly #replyContext: ReplyContext | undefined
  readonly #custom: ReadonlySet<string>
  /** The encoders of all choices except the first, by the index of the choice. */
  readonly #others = new Map<number, ChatStreamEncoder>()
  #start: Extract<ReplyEvent, { kind: 'start' }> | undefined

  constructor(
    identity: ReplyIdentity,
    options: Pick<StreamOptions, 'replyContext' | 'includeUsage'>,
    choice = 0,
  ) {
    this.#identity = identity
    this.#replyContext = options.replyContext
    this.#custom = customToolNames(options.replyContext)
    this.#includeUsage = options.includeUsage
    this.#choice = choice
    this.#begin('', '')
  }

  push(events: readonly ReplyEvent[]): string {
    let text = ''
    for (const event of events) {
      const choice = 'index' in event ? choiceOfPart(event.index) : 0
      text += choice === 0 ? this.#write(event) : this.#beginOther(choice) + this.#other(choice).#write(event)
    }
    return text
  }

  copy(event: CopyableText, out: FrameWriter): boolean {
    // Texts of choices other than the first are written by `push`.
    if (choiceOfPart(event.index) > 0) return false
    const frame = this.#frameFor(event)
    if (frame) out.copied(frame, event)
    return frame !== undefined
  }

  finalFrames(charged = this.#usage): string {
    if (!this.#isComplete) return ''
    if (!this.#includeUsage || !charged) return DONE
    return `${this.#chunk}],"usage":${JSON.stringify(writeUsage(charged, this.#identity))}${this.#tail}\n\n${DONE}`
  }

  /** Returns '', because chat has no chunk without content that can keep a connection alive. */
  keepAliveFrame(): string {
    return ''
  }

  failureFrame(error: ErrorContent): string {
    return chatErrorFrame(error).toString()
  }

  /** The encoder of a choice other than the first. */
  #other(choice: number): ChatStreamEncoder {
    const known = this.#others.get(choice)
    if (known) return known
    const other = new ChatStreamEncoder(
      this.#identity,
      { includeUsage: false, ...(this.#replyContext && { replyContext: this.#replyContext }) },
      choice,
    )
    this.#others.set(choice, other)
    return other
  }

  /** The first chunk of a choice other than the first. '' if that choice has already begun. */
  #beginOther(choice: number): string {
    return this.#start && !this.#others.has(choice) ? this.#other(choice).#write(this.#start) : ''
  }

  #write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'start':
        this.#start = event
        this.#begin(event.id, event.model)
        return `${this.#delta}"role":"assistant","content":""${NO_FINISH}`
      case 'part-start':
        return this.#startPart(event.index, event.part)
      case 'text':
        if (this.#refusals.has(event.index)) return this.#refusal(event.text)
        this.#length += codePointsIn(event.text)
        if (event.logprobs)
          return `${this.#content}${JSON.stringify(event.text)}},"logprobs":${JSON.stringify(writeLogprobs(event.logprobs))}${NO_REASON}`
        return this.#content + JSON.stringify(event.text) + NO_FINISH
      case 'citation':
        this.#texts.get(event.index)?.citations.push(event.citation)
        return ''
      case 'thinking':
        this.#thinkingLength += codePointsIn(event.text)
        return this.#reasoning + JSON.stringify(event.text) + NO_FINISH
      case 'proof':
        this.#signature = callSignature(event.proof)
        if (!isReplacedByPlaceholder(event.proof)) return this.#addDetail(event.proof)
        return this.#reasoning + JSON.stringify(SIGNATURE_PLACEHOLDER) + NO_FINISH
      case 'tool-input':
        return this.#addInput(event.index, event.text)
      case 'part-end':
        return this.#endPart(event.index)
      case 'end':
        return this.#end(event)
      case 'ping':
      case 'failure':
        return ''
    }
  }

  #begin(id: string, model: string): void {
    const { created } = this.#identity
    const common = JSON.stringify({
      id: id || this.#identity.id,
      object: 'chat.completion.chunk',
      created,
      model,
    })
    this.#chunk = `data: ${common.slice(0, -1)},"choices":[`
    this.#delta = `${this.#chunk}{"index":${this.#choice},"delta":{`
    this.#textFrame = undefined
    this.#thinkingFrame = undefined
    this.#content = `${this.#delta}"content":`
    this.#reasoning = `${this.#delta}"reasoning_content":`
  }

  #startPart(index: number, part: StartedPart): string {
    if (part.kind === 'text' && part.refusal) {
      this.#refusals.add(index)
      return ''
    }
    if (part.kind === 'text') {
      this.#texts.set(index, { base: this.#length, citations: [] })
      return `${this.#content}""${NO_FINISH}`
    }
    if (part.kind === 'thinking') this.#thinkingFrom = this.#thinkingLength
    if (part.kind === 'opaque') {
      this.#thinkingFrom = this.#thinkingLength
      return this.#addDetail(part)
    }
    if (part.kind !== 'tool-call') return ''
    const number = this.#calls.size
    const isCustom = this.#custom.has(part.name)
    this.#calls.set(index, {
      number,
      hasInput: isCustom,
      ...(isCustom && { custom: new CustomInputDecoder() }),
    })
    const call = {
      index: number,
      id: part.id,
      ...(isCustom
        ? { type: 'custom', custom: { name: part.name, input: '' } }
        : { type: 'function', function: { name: part.name, arguments: '' } }),
      ...googleSignatureMembers(this.#signature),
    }
    this.#signature = undefined
    return `${this.#delta}"tool_calls":[${JSON.stringify(call)}]${NO_FINISH}`
  }

  /** Writes the encrypted reasoning of the current thought. */
  #addDetail(signed: ProviderSignature | OpaquePart): string {
    const from = this.#thinkingFrom
    const place = { from, length: this.#thinkingLength - from, calls: this.#calls.size }
    const detail = writeReasoningDetail(signed, place, this.#details)
    if (!detail) return ''
    this.#details++
    return `${this.#delta}"reasoning_details":[${JSON.stringify(detail)}]${NO_FINISH}`
  }

  #endPart(index: number): string {
    const call = this.#calls.get(index)
    if (call?.custom) return this.#addText(call, call.custom.end())
    if (call?.hasInput === false) return this.#addInput(index, '{}')
    const text = this.#texts.get(index)
    if (!text || text.citations.length === 0) return ''
    const length = this.#length - text.base
    const annotations = text.citations.map((citation) => writeAnnotation(citation, length, text.base))
    return `${this.#delta}"annotations":${JSON.stringify(annotations)}${NO_FINISH}`
  }

  #addInput(index: number, text: string): string {
    const call = this.#calls.get(index)
    if (!call || text === '') return ''
    if (call.custom) return this.#addText(call, call.custom.push(text))
    call.hasInput = true
    return `${this.#inputHead(call)}${JSON.stringify(text)}${INPUT_TAIL}`
  }

  /** Writes a further piece of the input of a custom tool. `text` is plain text. */
  #addText({ number }: WrittenCall, text: string): string {
    if (text === '') return ''
    const call = JSON.stringify({ index: number, custom: { input: text } })
    return `${this.#delta}"tool_calls":[${call}]${NO_FINISH}`
  }

  #frameFor({ kind, index, codePoints }: CopyableText): TextFrame | undefined {
    if (kind === 'tool-input') return this.#frameOfCall(this.#calls.get(index))
    if (kind === 'thinking') this.#thinkingLength += codePoints
    if (kind === 'thinking') return (this.#thinkingFrame ??= textFrameOf(this.#reasoning, NO_FINISH))
    this.#length += codePoints
    return (this.#textFrame ??= textFrameOf(this.#content, NO_FINISH))
  }

  #frameOfCall(call: WrittenCall | undefined): TextFrame | undefined {
    if (!call || call.custom) return undefined
    call.hasInput = true
    return (call.frame ??= textFrameOf(this.#inputHead(call), INPUT_TAIL))
  }

  /** The beginning of a chunk, up to the arguments of a tool call. */
  #inputHead({ number }: WrittenCall): string {
    return `${this.#delta}"tool_calls":[{"index":${number},"function":{"arguments":`
  }

  #end({ stop, others = [], usage, served }: Extract<ReplyEvent, { kind: 'end' }>): string {
    this.#isComplete = true
    this.#usage = usage
    const { service_tier: tier } = tierMember(served ?? usage?.served, this.#identity)
    if (tier !== undefined) this.#tail = `,"service_tier":${JSON.stringify(tier)}}`
    const ends = others.map(
      (other, i) => this.#beginOther(i + 1) + this.#other(i + 1).#finish(other, this.#tail),
    )
    return this.#finish(stop, this.#tail) + ends.join('')
  }

  #refusal(text: string): string {
    return `${this.#delta}"refusal":${JSON.stringify(text)}${NO_FINISH}`
  }

  #finish({ reason, words }: Stop, tail: string): string {
    const said = words === undefined ? '' : this.#refusal(words)
    return `${said}${this.#delta}},"logprobs":null,"finish_reason":"${FINISH_REASONS[reason]}"}]${tail}\n\n`
  }
}
