import { NO_USAGE, promptTokens, type Usage } from '../../domain/usage.ts'
import type { StreamDecoder, StreamEncoder } from '../../protocols/codec.ts'
import { EmittedText } from '../../protocols/emitted-text.ts'
import type { ReplyEvent } from '../../protocols/reply.ts'
import type { ReportedUsage } from '../../protocols/reported-usage.ts'
import type { StreamError, TapEnd, TapStep } from '../../protocols/sse/stream-tap.ts'
import { encodeUtf8 } from '../../protocols/utf8-encode.ts'
import type { Tap } from './dialect.ts'

/** Values for what the upstream of a converted stream does not say. */
export interface TapDefaults {
  /** The name of the model. */
  readonly model: string
  /** The tokens of the prompt. */
  promptTokens(): number
}

/**
 * A stream that is read in one protocol and written in another: what the network brings at once goes on at
 * once.
 */
export class ConvertingTap implements Tap {
  error: StreamError | undefined
  emittedBytes = 0
  contentFrames = 0
  /** An error is put into the words of the caller's protocol, and events go on whole. */
  readonly errorFrame = undefined
  readonly isMidEvent = false
  /** Nothing but events is written. */
  readonly sawEvent = true
  readonly #decoder: StreamDecoder
  readonly #encoder: StreamEncoder
  readonly #unsaid: TapDefaults
  readonly #text = new EmittedText()
  /** The rest that the upstream left for its end. */
  #rest = ''
  #isComplete = false

  constructor(decoder: StreamDecoder, encoder: StreamEncoder, unsaid: TapDefaults) {
    this.#decoder = decoder
    this.#encoder = encoder
    this.#unsaid = unsaid
  }

  get usage(): ReportedUsage | undefined {
    return this.#decoder.usage
  }

  get text(): string {
    return this.#text.toString()
  }

  push(chunk: Buffer): TapStep {
    if (this.#isOver) return { forward: undefined, terminal: true }
    return this.#step(this.#decoder.push(chunk))
  }

  end(): Pick<TapEnd, 'complete'> {
    // What the upstream leaves unsaid may still end the answer well; what it adds to the text is part of the
    // ending then.
    if (!this.#isOver) this.#rest = this.#step(this.#decoder.end()).forward?.toString() ?? ''
    return { complete: this.#isComplete && !this.error }
  }

  finalBytes(charged: Usage): Buffer {
    return Buffer.from(this.#rest + this.#encoder.finalFrames(charged))
  }

  release(): void {
    this.#decoder.release()
  }

  get #isOver(): boolean {
    return this.#isComplete || this.error !== undefined
  }

  #step(events: readonly ReplyEvent[]): TapStep {
    const failure = events.findIndex((event) => event.kind === 'failure')
    const told = (failure === -1 ? events : events.slice(0, failure)).map((event) => this.#completed(event))
    for (const event of told) this.#note(event)
    const failed = events[failure]
    if (failed?.kind === 'failure') {
      const { type, message, code } = failed
      const data = JSON.stringify({ error: { type, message, code } })
      this.error = { data, afterContent: this.emittedBytes > 0 }
    }
    const bytes = encodeUtf8(told.map((event) => this.#encoder.push([event])))
    return { forward: bytes.length === 0 ? undefined : bytes, terminal: this.#isOver }
  }

  #completed(event: ReplyEvent): ReplyEvent {
    if (event.kind !== 'start') return event
    const isTold = event.usage && promptTokens(event.usage) > 0
    const usage = isTold ? event.usage : { ...NO_USAGE, input: this.#unsaid.promptTokens() }
    return { ...event, model: event.model || this.#unsaid.model, usage }
  }

  #note(event: ReplyEvent): void {
    switch (event.kind) {
      case 'text':
      case 'thinking':
      case 'tool-input':
        return this.#emitted(event.text)
      case 'part-start':
        if (event.part.kind === 'tool-call') this.#emitted(event.part.name)
        return
      case 'end':
        this.#isComplete = true
        return
      case 'start':
      case 'proof':
      case 'part-end':
      case 'ping':
      case 'failure':
    }
  }

  #emitted(text: string): void {
    if (text === '') return
    this.emittedBytes += this.#text.add(text)
    this.contentFrames += 1
  }
}
