import { Response, type ResponseHeaders } from '@sluice/http1'
import { FrameSplitter, frameData } from '@sluice/wire/sse/frame-splitter'
import { DISCARDING_CONNECTION, NO_TRAITS } from './answer-recorder.ts'

/** Receives a response whose events are read while it arrives. */
export interface EventOutput {
  /** Called with the headers of a stream, before its first event. */
  begun?(headers: ResponseHeaders): void
  /** Sends an event of the stream, given as JSON. Returns false if the client is behind. */
  event(json: string): boolean
  /** Handles a response that is not a stream. */
  whole(status: number, headers: ResponseHeaders, body: Buffer): void
  /** Called after the last event. `sent` must be called once the client's connection has taken it. */
  ended(sent: () => void): void
  /** Called if the response broke off. */
  broke(): void
}

const DONE = '[DONE]'

/** The events that are complete with a further piece of a stream, given as JSON. */
export function* eventsWithin(stream: FrameSplitter, piece: Buffer): Generator<string> {
  const bytes = stream.take(piece)
  if (!bytes) return
  let at = 0
  for (;;) {
    const end = stream.next(at)
    if (end < 0) break
    const data = frameData(bytes.toString('utf8', at, end))
    at = end
    if (data !== undefined && data !== DONE) yield data
  }
  stream.markRead(at)
}

/** A response whose server-sent events are given to an output one by one. The relay writes to it as to any other response. */
export class EventResponse extends Response {
  readonly #output: EventOutput
  readonly #events = new FrameSplitter()
  readonly #body: Buffer[] = []
  #makeHeaders: (() => ResponseHeaders | undefined) | undefined
  #headers: ResponseHeaders = {}
  #isStream = false
  #isBehind = false
  #isComplete = false

  constructor(output: EventOutput) {
    super(DISCARDING_CONNECTION, NO_TRAITS)
    this.#output = output
  }

  override get hasEnded(): boolean {
    return this.#isComplete
  }

  override set headersAtHead(make: () => ResponseHeaders | undefined) {
    this.#makeHeaders = make
  }

  override writeHead(status: number, headers: ResponseHeaders): this {
    this.#headers = { ...this.#makeHeaders?.(), ...this.presetHeaders, ...headers }
    this.#isStream = status === 200 && headers['content-type']?.includes('event-stream') === true
    if (this.#isStream) this.#output.begun?.(this.#headers)
    return super.writeHead(status, headers)
  }

  override write(piece: Buffer): boolean {
    if (!this.#isOver) this.#add(piece)
    return !this.#isBehind
  }

  override end(rest?: Buffer | string, before?: Buffer): void {
    if (this.#isOver) return
    if (before) this.#add(before)
    if (rest !== undefined) this.#add(typeof rest === 'string' ? Buffer.from(rest) : rest)
    this.#isComplete = true
    if (!this.#isStream) this.#output.whole(this.status, this.#headers, Buffer.concat(this.#body))
    this.#output.ended(() => this.onConnectionEnd('finished'))
  }

  // Who reads the events keeps the client's connection alive, and sends nothing before the status is known.
  override keepAlive(): void {}

  override needsUpstream(): void {}

  override onDrain(): void {
    this.#isBehind = false
    super.onDrain()
  }

  override destroy(): void {
    if (this.#isOver) return
    this.#output.broke()
    this.onConnectionEnd('aborted')
  }

  #add(piece: Buffer): void {
    this.observer?.onPiece(piece)
    if (this.#isStream) this.#addEvents(piece)
    else this.#body.push(piece)
  }

  #addEvents(piece: Buffer): void {
    for (const json of eventsWithin(this.#events, piece)) if (!this.#output.event(json)) this.#isBehind = true
  }

  get #isOver(): boolean {
    return this.#isComplete || this.isAborted
  }
}
