import type { Codec, ReplyIdentity, StreamDecoder, StreamEncoder } from '../codec.ts'
import type { Fields } from '../field.ts'
import type { ProtocolName } from '../protocols.ts'
import { parseExactRecord } from '../json/exact-json.ts'
import { asRecord } from '../json/record.ts'
import type { ReplyEvent } from '../reply.ts'
import {
  eventNameOfFrame,
  type EventMemory,
  frameData,
  FrameSplitter,
  MAX_EVENT_BYTES,
} from '../sse/frame-splitter.ts'
import { ChatChunks } from './chat-chunks.ts'
import { eventOrderOf } from './event-order.ts'
import { RewrittenEvents } from './rewritten-events.ts'
import { withRightTypes } from './value-types.ts'
import { withoutEnvelopes } from './without-envelopes.ts'

/** What the repair of a stream needs to know. */
export interface StreamRepairOptions {
  /** A codec of the stream's protocol. */
  readonly codec: Codec
  readonly protocol: ProtocolName
  /** The number of choices requested. */
  readonly choices: number
  /** The id and time to be stated if the stream states none. */
  readonly identity: ReplyIdentity
  readonly memory?: EventMemory
}

/**
 * Lets a stream go through the codec of its protocol, event by event. Chunks of chat are written anew, with the members
 * that the codec does not know. Events of other protocols stay as they are while they are sound, because each describes
 * itself: they get the name that they lack, and values the right type. From the first event on that may not follow those
 * before it, the codec writes the events. A stream that lacks its end gets the one that the codec writes. Errors, and
 * what follows them, stay as they are.
 */
export class StreamRepair {
  readonly #options: StreamRepairOptions
  readonly #frames: FrameSplitter
  readonly #decoder: StreamDecoder
  #encoder: StreamEncoder | undefined
  readonly #chunks = new ChatChunks()
  /** Absent for protocols whose events have no order. */
  readonly #ordered: RewrittenEvents | undefined
  #isOver = false

  constructor(options: StreamRepairOptions) {
    this.#options = options
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, options.memory)
    this.#decoder = options.codec.streamDecoder(undefined, options.choices)
    const order = eventOrderOf(options.protocol)
    this.#ordered = order && new RewrittenEvents(order)
  }

  /** Returns the bytes in place of these. */
  push(chunk: Buffer): Buffer {
    const complete = this.#frames.take(chunk)
    if (!complete) return EMPTY
    let repaired = ''
    let from = 0
    for (let to = this.#frames.next(0); to >= 0; to = this.#frames.next(from)) {
      repaired += this.#repair(complete.toString('utf8', from, to))
      from = to
    }
    this.#frames.markRead(from)
    return Buffer.from(repaired)
  }

  /** Returns the bytes after the end of the stream: what was incomplete, and the end that the stream lacks. */
  end(): Buffer {
    const rest = this.#frames.takeBuffered().toString()
    const last = rest === '' ? '' : this.#repair(rest)
    // Gemini's streams have no event that ends them.
    if (this.#isOver || this.#options.protocol === 'gemini') return Buffer.from(last)
    const events = this.#decoder.end()
    if (events.at(-1)?.kind !== 'end') return Buffer.from(last)
    const written = this.#write(events)
    const missing = this.#ordered?.missingEnd(written) ?? this.#chunks.frames(undefined, written)
    return Buffer.from(last + missing)
  }

  release(): void {
    this.#decoder.release()
  }

  #repair(received: string): string {
    const data = frameData(received)
    if (this.#isOver || data === undefined) return received
    const said = parseExactRecord(data)
    const given = said && withRightTypes(this.#options.protocol, said)
    const frame = given === said ? received : withData(received, given)
    const events = this.#decoder.push(Buffer.from(frame))
    this.#isOver = events.some(({ kind }) => kind === 'failure')
    if (this.#isOver) return received
    this.#begin(given)
    const written = this.#write(events)
    if (events.at(-1)?.kind === 'end') this.#isOver = true
    if (this.#options.protocol === 'chat') return this.#chunks.frames(given, written)
    return (given && this.#ordered?.framesFor(given, written)) ?? named(frame, given)
  }

  /** Creates the encoder with the id and time of the stream, when its first event is known. */
  #begin(given: Fields | undefined): void {
    if (this.#encoder) return
    const { codec, identity } = this.#options
    const { id, created } = asRecord(given?.['response']) ?? asRecord(given?.['message']) ?? given ?? {}
    this.#encoder = codec.streamEncoder(
      {
        ...identity,
        ...(typeof id === 'string' && id !== '' && { id }),
        ...(typeof created === 'number' && { created }),
      },
      { includeUsage: true },
    )
  }

  #write(events: readonly ReplyEvent[]): string {
    this.#begin(undefined)
    const encoder = this.#encoder as StreamEncoder
    // Pictures stay where the provider put them.
    const written = encoder.push(events.filter((event) => event.kind !== 'text' || !event.isMedia))
    return withoutEnvelopes(events.at(-1)?.kind === 'end' ? written + encoder.finalFrames() : written)
  }
}

const EMPTY = Buffer.alloc(0)
const NAME = /^[\w.]+$/

/** Names an event by the type in its data, if it has no name. */
function named(frame: string, given: Fields | undefined): string {
  const type = given?.['type']
  const isNameless = typeof type === 'string' && eventNameOfFrame(frame) === undefined && NAME.test(type)
  return isNameless ? `event: ${type}\n${frame}` : frame
}

/** A frame with other data. */
function withData(frame: string, data: object | undefined): string {
  const others = frame.split(/\r\n|\n|\r/).filter((line) => line !== '' && !/^data(?::|$)/.test(line))
  return [...others, `data: ${JSON.stringify(data)}`, '', ''].join('\n')
}
