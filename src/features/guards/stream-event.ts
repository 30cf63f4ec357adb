import { type EventText, type EventTexts, eventTexts, type StreamContext } from '@sluice/wire/event-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { frameData } from '@sluice/wire/sse/frame-splitter'
import type { CallGuards } from './call-guards.ts'
import { scanEventData } from './event-frames.ts'
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

  #readNow(): ReadEvent | undefined {
    const { data } = this
    const scan = data === undefined ? undefined : scanEventData(data)
    if (!scan) return undefined
    const found = eventTexts(scan, this.#stream)
    const own = new Set<string>()
    const last = new Set<EventText>()
    const ended = new Set(found.ends)
    for (const text of found.texts.toReversed()) {
      if (!text.channel) continue
      const { key } = text.channel
      if (text.isLast === true || (!own.has(key) && isStreamedTextEnded(ended, key))) last.add(text)
      own.add(key)
    }
    return { ...found, scan, own, last }
  }
}
