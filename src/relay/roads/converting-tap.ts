import type { Usage } from '../../domain/usage.ts'
import type { StreamDecoder, StreamEncoder } from '../../protocols/codec.ts'
import { EmittedText } from '../../protocols/emitted-text.ts'
import type { ReplyEvent } from '../../protocols/reply.ts'
import type { StreamError, TapEnd, TapStep } from '../../protocols/stream-tap.ts'
import { utf8Of } from '../../protocols/utf8-pieces.ts'
import type { Tap } from './road.ts'

/** A stream that is read in one protocol and written in another: what the network brings at once goes on at once. */
export class ConvertingTap implements Tap {
  usage: Usage | undefined
  error: StreamError | undefined
  emittedBytes = 0
  contentFrames = 0
  readonly #decoder: StreamDecoder
  readonly #encoder: StreamEncoder
  readonly #text = new EmittedText()
  #isComplete = false

  readonly #model: string

  /** `model` stands in for a name that the upstream does not give. */
  constructor(decoder: StreamDecoder, encoder: StreamEncoder, model = '') {
    this.#decoder = decoder
    this.#encoder = encoder
    this.#model = model
  }

  get text(): string {
    return this.#text.toString()
  }

  push(chunk: Buffer): TapStep {
    if (this.#isOver) return { forward: undefined, terminal: true }
    return this.#step(this.#decoder.push(chunk))
  }

  end(): Pick<TapEnd, 'ending' | 'complete'> {
    // What the upstream leaves unsaid may still end the answer well; what it adds to the text is part of the ending then.
    const rest = this.#isOver ? '' : (this.#step(this.#decoder.end()).forward?.toString() ?? '')
    return { ending: Buffer.from(rest + this.#encoder.last()), complete: this.#isComplete && !this.error }
  }

  get #isOver(): boolean {
    return this.#isComplete || this.error !== undefined
  }

  #step(events: readonly ReplyEvent[]): TapStep {
    const failure = events.findIndex((event) => event.kind === 'failure')
    const told = (failure === -1 ? events : events.slice(0, failure)).map((event) => this.#named(event))
    for (const event of told) this.#note(event)
    const failed = events[failure]
    if (failed?.kind === 'failure') {
      const { type, message } = failed
      this.error = { data: JSON.stringify({ error: { type, message } }), afterContent: this.emittedBytes > 0 }
    }
    const bytes = utf8Of(told.map((event) => this.#encoder.push([event])))
    return { forward: bytes.length === 0 ? undefined : bytes, terminal: this.#isOver }
  }

  #named(event: ReplyEvent): ReplyEvent {
    return event.kind === 'start' && event.model === '' ? { ...event, model: this.#model } : event
  }

  #note(event: ReplyEvent): void {
    switch (event.kind) {
      case 'text':
      case 'thinking':
      case 'tool-input':
        return this.#emitted(event.text)
      case 'start':
        this.usage = event.usage ?? this.usage
        return
      case 'end':
        this.usage = event.usage
        this.#isComplete = true
        return
      case 'part-start':
        if (event.part.kind === 'tool-call') this.#emitted(event.part.name)
        return
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
