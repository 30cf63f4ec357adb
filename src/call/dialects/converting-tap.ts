import { AnswerMetadata } from '@sluice/wire/answer-metadata'
import { FINISH_REASONS } from '@sluice/wire/chat'
import type { CacheDiagnosis } from '@sluice/wire/cache-diagnosis'
import { PROTOCOLS } from '@sluice/wire/protocols'
import { NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import type { StreamDecoder, StreamEncoder } from '@sluice/wire/codec'
import type { ReceivedMedia } from '@sluice/wire/received-media'
import { CopyableText, FrameWriter } from '@sluice/wire/frame-writer'
import { ToolInputCollector, CUT_OFF_STOP } from '@sluice/wire/tool-input'
import { TextBuffer } from '@sluice/wire/text-buffer'
import { asRecord } from '@sluice/wire/json/record'
import { providerToolTexts } from '@sluice/wire/executed-code'
import type { ReplyEvent } from '@sluice/wire/reply'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StreamError, TapEndResult, TapPushResult } from '@sluice/wire/sse/stream-tap'
import { NO_TOOL_USES, type ReportedToolUses } from '@sluice/wire/tool-use'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { StatedService } from '@sluice/wire/service-tier'
import type { CallNote } from '../../domain/call-outcome.ts'
import type { AnswerOrigin, LastingResponse, Tap } from './answer-reader.ts'
import type { StreamedParts } from './decoded-conversation.ts'
import type { AnswerKeeper } from './references.ts'

/** Writes the server-sent events that one chunk of the upstream's stream becomes. */
const WRITER = new FrameWriter()

/** Values sent to the client if the upstream does not provide them. */
export interface TapDefaults {
  /** The name of the model. */
  readonly model: string
  promptTokens(): number
}

/** Reads a stream in one dialect and writes it in another. Each event is forwarded immediately. */
export class ConvertingTap implements Tap {
  error: StreamError | undefined
  note: CallNote | undefined
  emittedBytes = 0
  contentFrames = 0
  /** The upstream's error frame is never forwarded, because errors are written in the client's dialect. */
  readonly errorFrame = undefined
  readonly endsWithError = true
  sentEvents = 0
  /** Events are always forwarded as a whole. */
  readonly isMidEvent = false
  /**
   * The id, model and finish reasons that the upstream has stated; the reasons are those of the chat
   * protocol.
   */
  readonly names = new AnswerMetadata()
  readonly #decoder: StreamDecoder
  readonly #encoder: StreamEncoder
  readonly #defaults: TapDefaults
  readonly #parts: StreamedParts | undefined
  readonly #keeper: AnswerKeeper | undefined
  readonly #text = new TextBuffer()
  readonly #calls = new ToolInputCollector()
  /** Frames (events) written at the end of the upstream's stream, to be sent with the last one. */
  #lastFrames = ''
  #finalBytes: Buffer | undefined
  #isComplete = false
  /** Bytes of thoughts that arrived as text since the last encrypted thoughts. */
  #thinkingBytes = 0

  constructor(
    decoder: StreamDecoder,
    encoder: StreamEncoder,
    defaults: TapDefaults,
    parts?: StreamedParts,
    keeper?: AnswerKeeper,
  ) {
    this.#decoder = decoder
    this.#decoder.copiesTexts = true
    this.#encoder = encoder
    this.#defaults = defaults
    this.#parts = parts
    this.#keeper = keeper
  }

  get tools(): ReportedToolUses {
    return this.#decoder.tools ?? NO_TOOL_USES
  }

  get sawEvent(): boolean {
    return this.#decoder.sawEvent
  }

  get usage(): ReportedUsage | undefined {
    return this.#decoder.usage
  }

  get served(): StatedService | undefined {
    return this.#decoder.served
  }

  get diagnosis(): CacheDiagnosis | undefined {
    return this.#decoder.diagnosis
  }

  get text(): string {
    return this.#text.toString()
  }

  get arrived(): ReceivedMedia {
    return this.#decoder.arrived
  }

  push(chunk: Buffer): TapPushResult {
    if (this.#isOver) return { forward: undefined, terminal: true }
    return this.#step(this.#decoder.push(chunk))
  }

  end(): Pick<TapEndResult, 'complete'> {
    // Events that the decoder returns at the end of the stream may still complete the response.
    if (!this.#isOver) this.#lastFrames = this.#step(this.#decoder.end()).forward?.toString() ?? ''
    return { complete: this.#isComplete && !this.error }
  }

  keepAliveFrame(isNumbered?: boolean): Buffer | undefined {
    const frame = this.#isOver ? '' : this.#encoder.keepAliveFrame(this.#defaults.model, isNumbered)
    return frame === '' ? undefined : Buffer.from(frame)
  }

  /** The frames are created once, because they are numbered. */
  finalBytes(charged: Usage): Buffer {
    return (this.#finalBytes ??= Buffer.from(this.#lastFrames + this.#encoder.finalFrames(charged)))
  }

  /** Takes the events that were written at the end of the upstream's stream. */
  takeLastTexts(): Buffer {
    const last = Buffer.from(this.#lastFrames)
    this.#lastFrames = ''
    return last
  }

  failureFrame(error: ErrorContent): Buffer {
    return Buffer.from(this.#lastFrames + this.#encoder.failureFrame(error))
  }

  /** A response without a keeper, whose parts are not kept either, does not last. */
  get lasting(): LastingResponse | undefined {
    if (!this.#parts && !this.#keeper) return undefined
    return { keep: (origin, charging, form) => this.#keep(origin, charging, form) }
  }

  async #keep(
    origin: AnswerOrigin,
    charging: Promise<Usage>,
    form?: (bytes: Buffer) => Buffer,
  ): Promise<void> {
    const keepingParts = this.#parts?.keep(origin)
    if (!this.#keeper) return keepingParts
    const charged = await charging
    await keepingParts
    const last = this.finalBytes(charged)
    await this.#keeper.keepStream(form?.(last) ?? last, charged, origin)
  }

  release(): void {
    this.#decoder.release()
  }

  get #isOver(): boolean {
    return this.#isComplete || this.error !== undefined
  }

  #step(events: readonly ReplyEvent[]): TapPushResult {
    WRITER.clear()
    for (const event of events) {
      if (event.kind === 'failure') {
        this.#fail(event)
        break
      }
      if (event instanceof CopyableText) this.#copy(event)
      else this.#write(event)
    }
    const bytes = WRITER.take()
    if (bytes.length > 0) this.sentEvents++
    return { forward: bytes.length === 0 ? undefined : bytes, terminal: this.#isOver }
  }

  #write(event: ReplyEvent): void {
    const completed = this.#completed(event)
    this.#note(completed)
    this.#parts?.add(completed)
    WRITER.text(this.#encoder.push([completed]))
  }

  /** Lets the encoder copy the bytes of a text. Frames that it cannot copy are encoded one by one. */
  #copy(event: CopyableText): void {
    this.emittedBytes += this.#text.addCopied(event)
    this.contentFrames += event.frames
    if (event.kind === 'tool-input') this.#calls.add(event.index, event.text)
    if (event.kind === 'thinking') this.#thinkingBytes += event.size
    this.#parts?.add(event)
    while (event.frames > 0 && !this.#encoder.copy(event, WRITER))
      WRITER.text(this.#encoder.push([event.takeFirst()]))
  }

  #fail({ type, message, code, status, culprit }: ReplyEvent & { readonly kind: 'failure' }): void {
    const data = JSON.stringify({ error: { type, message, code, status } })
    this.error = { data, culprit, afterContent: this.emittedBytes > 0 }
  }

  #completed(event: ReplyEvent): ReplyEvent {
    if (event.kind === 'end') return this.#cut(event)
    if (event.kind !== 'start') return event
    this.names.note(event.id, event.model)
    const isReported = event.usage && promptTokens(event.usage) > 0
    const usage = isReported ? event.usage : { ...NO_USAGE, input: this.#defaults.promptTokens() }
    return { ...event, model: event.model || this.#defaults.model, usage }
  }

  #cut(end: ReplyEvent & { readonly kind: 'end' }): ReplyEvent {
    const stops = [end.stop, ...(end.others ?? [])]
    this.names.hasUnknownEnd = stops.some(({ isUnknown }) => isUnknown)
    for (const [choice, { reason }] of stops.entries()) this.names.finish(choice, FINISH_REASONS[reason])
    const [stop = end.stop, ...others] = stops.map((said, choice) => {
      if (said.reason === CUT_OFF_STOP.reason || !this.#calls.areCutIn(choice)) return said
      this.note = 'cut_arguments'
      return CUT_OFF_STOP
    })
    return { ...end, stop, ...(end.others && { others }) }
  }

  #note(event: ReplyEvent): void {
    switch (event.kind) {
      case 'tool-input':
        this.#calls.add(event.index, event.text)
        return this.#emitted(event.text)
      case 'text':
        if (event.isMedia) this.contentFrames += 1
        else this.#emitted(event.text)
        return
      case 'thinking':
        this.#thinkingBytes += Buffer.byteLength(event.text)
        return this.#emitted(event.text)
      case 'part-start':
        if (event.part.kind === 'tool-call') this.#emitted(event.part.name)
        else if (event.part.kind === 'opaque') this.#noteOpaque(event.part.value)
        return
      case 'proof':
        if (!PROTOCOLS[event.proof.protocol].reportsThoughts) this.#noteHidden(event.proof.value)
        return
      case 'end':
        this.#isComplete = true
        return
      case 'start':
      case 'citation':
      case 'part-end':
      case 'ping':
      case 'failure':
    }
  }

  /** Counts what the provider's own tools were given, what code printed, and encrypted thoughts. */
  #noteOpaque(value: unknown): void {
    for (const text of providerToolTexts(value)) this.#emitted(text)
    this.#noteHidden(redactedIn(value))
  }

  /** Counts the bytes of encrypted thoughts, minus those that also arrived as text. */
  #noteHidden(encrypted: string): void {
    this.arrived.addHidden(encrypted.length, this.#thinkingBytes)
    this.#thinkingBytes = 0
  }

  #emitted(text: string): void {
    if (text === '') return
    this.emittedBytes += this.#text.add(text)
    this.contentFrames += 1
  }
}

/** The encrypted thoughts of a block that contains only these; otherwise ''. */
function redactedIn(block: unknown): string {
  const { data, redactedContent, reasoningContent } = asRecord(block) ?? {}
  const found = [data, redactedContent, asRecord(reasoningContent)?.['redactedContent']]
  return found.find((one): one is string => typeof one === 'string') ?? ''
}
