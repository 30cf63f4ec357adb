import { type EarlyHead, Response, type ResponseHeaders } from '@sluice/http1'
import { FrameSplitter, frameData, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import { WireError } from '@sluice/wire/wire-error'
import type { ResponseMemory } from '../../limits/request-memory.ts'
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
  /** Passes a keep-alive on to who waits for the response. Returns whether a head was sent early. */
  waits?(keepAlive: Buffer, head: EarlyHead): boolean
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

/**
 * A response whose server-sent events are given to an output one by one. The relay writes to it as to any other response. Breaks off
 * at an event that is too large.
 */
export class EventResponse extends Response {
  /** Memory for an unfinished event, and for the events that the client has not read. */
  readonly #memory: ResponseMemory
  readonly #output: EventOutput
  readonly #events = new FrameSplitter(MAX_EVENT_BYTES)
  readonly #body: Buffer[] = []
  #makeHeaders: (() => ResponseHeaders | undefined) | undefined
  #headers: ResponseHeaders = {}
  #isStream = false
  /** Bytes of events that were sent while the client was behind. */
  #unread = 0
  #isWaiting = false
  #isBroken = false
  #isComplete = false

  constructor(memory: ResponseMemory, output: EventOutput) {
    super(DISCARDING_CONNECTION, NO_TRAITS)
    this.#memory = memory
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
    super.writeHead(status, headers)
    this.status = status
    return this
  }

  override write(piece: Buffer): boolean {
    if (!this.#isOver) this.#add(piece)
    if (!this.#isOver) this.#count()
    return this.#unread === 0 && !this.#memory.isShort
  }

  override end(rest?: Buffer | string, before?: Buffer): void {
    if (this.#isOver) return
    if (before) this.#add(before)
    if (rest !== undefined) this.#add(typeof rest === 'string' ? Buffer.from(rest) : rest)
    if (this.#isBroken) return
    this.#isComplete = true
    if (!this.#isStream) this.#output.whole(this.status, this.#headers, Buffer.concat(this.#body))
    this.#output.ended(() => this.onConnectionEnd('finished'))
  }

  override keepAlive(bytes: Buffer, head: EarlyHead): void {
    if (this.#isOver) return
    // Only events count: a comment would tell who reads them nothing.
    if (this.#isStream) this.#addEvents(bytes)
    if (this.#output.waits?.(bytes, head)) this.early ??= head
  }

  override needsUpstream(): void {}

  override onDrain(): void {
    this.#unread = 0
    this.#count()
    if (!this.#memory.isShort) super.onDrain()
  }

  override destroy(): void {
    if (this.#isComplete || this.isAborted) return
    this.#output.broke()
    this.onConnectionEnd('aborted')
  }

  override destroyUnread(): void {
    // The client cannot read what waits for memory.
    if (!this.#memory.isShort) this.destroy()
  }

  override onConnectionEnd(how: 'finished' | 'aborted'): void {
    super.onConnectionEnd(how)
    this.#events.takeBuffered()
    this.#memory.resize(0)
  }

  #add(piece: Buffer): void {
    this.observer?.onPiece(piece)
    if (this.#isStream) this.#addEvents(piece)
    else this.#body.push(piece)
  }

  #addEvents(piece: Buffer): void {
    try {
      for (const json of eventsWithin(this.#events, piece))
        if (!this.#output.event(json)) this.#unread += Buffer.byteLength(json)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#isBroken = true
      // Whoever writes expects no end before it has returned.
      queueMicrotask(() => this.destroy())
    }
  }

  /** Counts what is held. Until there is memory for it, nothing more is written. */
  #count(): void {
    this.#memory.resize(this.#events.heldBytes + this.#unread)
    if (!this.#memory.isShort || this.#isWaiting) return
    this.#isWaiting = true
    void this.#memory.whenEnough().then(() => {
      this.#isWaiting = false
      if (this.#unread === 0) super.onDrain()
    })
  }

  get #isOver(): boolean {
    return this.#isComplete || this.#isBroken || this.isAborted
  }
}
