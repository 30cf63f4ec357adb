import { type EventText, type EventTexts, eventTexts, type StreamContext } from '@sluice/wire/event-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { frameData, type FrameSplitter } from '@sluice/wire/sse/frame-splitter'
import type { CallGuards } from './call-guards.ts'
import { checkableFramePart, scanEventData } from './event-frames.ts'
import { isStreamedTextEnded } from './streamed-text-map.ts'

/** The guards that check a call's stream, and facts about the stream. */
export interface GuardedStream extends StreamContext {
  readonly guards: CallGuards
  /** Whether the client reads its stream as one JSON array. */
  readonly isArray: boolean
}

/** What an event says. */
export interface ReadEvent extends EventTexts {
  readonly scan: ScannedObject
  /** The keys of the texts of which this event contains a piece. */
  readonly own: ReadonlySet<string>
  /** Those pieces that are the last of their text. */
  readonly last: ReadonlySet<EventText>
}

/** An event of a stream on its way through the guards. */
export class StreamEvent {
  readonly frame: string
  /** What takes the place of its texts, in their order; undefined if they are as they arrived. */
  texts: readonly string[] | undefined
  readonly #stream: StreamContext
  #read: ReadEvent | undefined
  #areEndsStated = true

  constructor(frame: string, stream: StreamContext) {
    this.frame = frame
    this.#stream = stream
  }

  /** The data of the event, which is no JSON in the last event of a chat stream. */
  get data(): string | undefined {
    return frameData(this.frame)
  }

  /** What the event says; undefined if its data are not a JSON object. */
  get read(): ReadEvent | undefined {
    return (this.#read ??= this.#readNow())
  }

  /** Frees what was read, which takes several times the memory of the event. It is read again when it is needed. */
  forget(): void {
    this.#read = undefined
  }

  /** The answer goes on although the event states its end. */
  ignoreStatedEnds(): void {
    this.#areEndsStated = false
    this.#read = undefined
  }

  #readNow(): ReadEvent | undefined {
    const { data } = this
    const scan = data === undefined ? undefined : scanEventData(data)
    if (!scan) return undefined
    const found = eventTexts(scan, this.#stream)
    const own = new Set<string>()
    const last = new Set<EventText>()
    const ends = this.#areEndsStated ? [...found.ends, ...(found.statedEnds ?? [])] : found.ends
    const ended = new Set(ends)
    for (const text of found.texts.toReversed()) {
      if (!text.channel) continue
      const { key } = text.channel
      if (text.isLast === true || (!own.has(key) && isStreamedTextEnded(ended, key))) last.add(text)
      own.add(key)
    }
    return { ...found, ends, scan, own, last }
  }
}

/** The byte order mark with which a stream may begin. */
const BYTE_ORDER_MARK = '\ufeff'

/** An event of a stream, without what cannot be checked; undefined if nothing is left. */
export function eventOf(given: string, stream: GuardedStream): StreamEvent | undefined {
  const whole = given.startsWith(BYTE_ORDER_MARK) ? given.slice(1) : given
  const frame = stream.guards.withholds ? checkableFramePart(whole) : whole
  return frame === '' ? undefined : new StreamEvent(frame, stream)
}

/** The events that are complete with these bytes. */
export function splitEvents(frames: FrameSplitter, given: Buffer, stream: GuardedStream): StreamEvent[] {
  const bytes = frames.take(given)
  const events: StreamEvent[] = []
  if (!bytes) return events
  let at = 0
  for (let end = frames.next(at); end >= 0; end = frames.next(at)) {
    const event = eventOf(bytes.toString('utf8', at, end), stream)
    if (event) events.push(event)
    at = end
  }
  frames.markRead(at)
  return events
}
