import type { Codec, ReplyIdentity, StreamDecoder, StreamEncoder } from '../codec.ts'
import type { Fields } from '../field.ts'
import type { ProtocolName } from '../protocols.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import type { ReplyEvent } from '../reply.ts'
import {
  eventNameOfFrame,
  type EventMemory,
  frameData,
  FrameSplitter,
  MAX_EVENT_BYTES,
} from '../sse/frame-splitter.ts'
import { ChatChunks } from './chat-chunks.ts'

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
 * that the codec does not know. Events of other protocols stay as they are, because each describes itself: they get the
 * name that they lack. A stream that lacks its end gets the one that the codec writes. Errors, and what follows them,
 * stay as they are.
 */
export class StreamRepair {
  readonly #options: StreamRepairOptions
  readonly #frames: FrameSplitter
  readonly #decoder: StreamDecoder
  #encoder: StreamEncoder | undefined
  readonly #chunks = new ChatChunks()
  /** Types of the events so far. */
  readonly #types = new Set<string>()
  #isOver = false

  constructor(options: StreamRepairOptions) {
    this.#options = options
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, options.memory)
    this.#decoder = options.codec.streamDecoder(undefined, options.choices)
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
    const missing = this.#isChat ? this.#chunks.frames(undefined, written) : this.#withoutSent(written)
    return Buffer.from(last + missing)
  }

  release(): void {
    this.#decoder.release()
  }

  #repair(frame: string): string {
    const data = frameData(frame)
    if (this.#isOver || data === undefined) return frame
    const given = parseRecord(data)
    const events = this.#decoder.push(Buffer.from(frame))
    this.#isOver = events.some(({ kind }) => kind === 'failure')
    if (this.#isOver) return frame
    this.#begin(given)
    const written = this.#write(events)
    if (events.at(-1)?.kind === 'end') this.#isOver = true
    if (!this.#isChat) return this.#named(frame, given)
    return this.#chunks.frames(given, written)
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
    const written = encoder.push(events)
    return events.at(-1)?.kind === 'end' ? written + encoder.finalFrames() : written
  }

  get #isChat(): boolean {
    return this.#options.protocol === 'chat'
  }

  /** Names an event by the type in its data, if it has no name. */
  #named(frame: string, given: Fields | undefined): string {
    const type = given?.['type']
    if (typeof type !== 'string') return frame
    this.#types.add(type)
    if (eventNameOfFrame(frame) !== undefined || !NAME.test(type)) return frame
    return `event: ${type}\n${frame}`
  }

  /** The end of a stream without the events that it already had. */
  #withoutSent(frames: string): string {
    return frames
      .split(/(?<=\n\n)/)
      .filter((frame) => !this.#types.has(eventNameOfFrame(frame) ?? '') || IN_EACH_PART.test(frame))
      .join('')
  }
}

const EMPTY = Buffer.alloc(0)
const NAME = /^[\w.]+$/
/** Events of which a stream has one for each of its parts. */
const IN_EACH_PART =
  /^event: (?:content_block_|response\.(?:output|content|function|reasoning|refusal|custom))/
