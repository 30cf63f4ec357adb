import { dataOf, eventOf } from '../sse/frame-splitter.ts'
import { parseRecord } from '../json/record.ts'

/** A JSON object of an answer. */
export type Json = Record<string, unknown>

/** An event of a complete stream. */
export interface StreamEvent {
  /** Name of the event; undefined for a plain message. */
  readonly name: string | undefined
  readonly data: Json
}

/** The two forms of an answer in a client's dialect: as a whole and as a stream of events. */
export interface AnswerForm {
  /** Puts the events of a complete stream together; undefined if they are not an answer of this dialect. */
  whole(events: readonly StreamEvent[]): Json | undefined
  /** Writes the frames of a stream that says the same as a whole answer. */
  frames(whole: Json, options: FrameOptions): string
  /** Whether a whole answer came to its own end: not cut off, not refused, and without an error. */
  isComplete(whole: Json): boolean
}

/** What a stream's client asked for. */
export interface FrameOptions {
  /** Whether a stream of chat or completions ends with its usage. */
  readonly includeUsage: boolean
}

/** The events of a stream, without comments and terminators. */
export function eventsIn(stream: string): StreamEvent[] {
  return stream.split(/\r\n\r\n|\n\n|\r\r/).flatMap((frame): StreamEvent[] => {
    const data = parseRecord(dataOf(frame) ?? '')
    return data ? [{ name: eventOf(frame), data }] : []
  })
}

/** A frame of a plain message. */
export function messageFrame(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** A frame of an event that is named like the type of its data. */
export function namedFrame(data: { readonly type: string }): string {
  return `event: ${data.type}\n${messageFrame(data)}`
}

/** The objects of a list; none if it is not one. */
export function recordsIn(value: unknown): Json[] {
  return Array.isArray(value)
    ? value.filter((one): one is Json => typeof one === 'object' && one !== null && !Array.isArray(one))
    : []
}

/** Whether an answer is an error. */
export function isErrorBody(whole: Json): boolean {
  return (whole['error'] !== undefined && whole['error'] !== null) || whole['type'] === 'error'
}
