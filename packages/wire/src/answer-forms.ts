import { frameData, eventNameOfFrame } from './sse/frame-splitter.ts'
import { parseRecord } from './json/record.ts'

/** A JSON object in a response. */
export type Json = Record<string, unknown>

/** An event of a complete stream. */
export interface StreamEvent {
  /** The name of the event; undefined if it has none. */
  readonly name: string | undefined
  readonly data: Json
}

/** The two forms of a response in a protocol: as one JSON object, and as a stream of events. */
export interface AnswerForms {
  /**
   * Joins the events of a complete stream to one object; undefined if they are not a response of this
   * protocol.
   */
  whole(events: readonly StreamEvent[]): Json | undefined
  /** Writes the events of a stream with the same content as a whole response. */
  frames(whole: Json, options: StreamFrameOptions): string
  /** Whether a response is complete: not cut off, not refused, and without an error. */
  isComplete(whole: Json): boolean
}

/** What the client of a stream requested. */
export interface StreamFrameOptions {
  /** Whether a stream of chat or completions ends with a usage chunk. */
  readonly includeUsage: boolean
}

/** The events in a stream, without comments and end markers. */
export function parseEvents(stream: string): StreamEvent[] {
  return stream.split(/\r\n\r\n|\n\n|\r\r/).flatMap((frame): StreamEvent[] => {
    const data = parseRecord(frameData(frame) ?? '')
    return data ? [{ name: eventNameOfFrame(frame), data }] : []
  })
}

/** Writes an event without a name. */
export function dataFrame(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** Writes an event whose name is the type of its data. */
export function namedFrame(data: { readonly type: string }): string {
  return `event: ${data.type}\n${dataFrame(data)}`
}

/** The objects in a list; empty if the value is not a list. */
export function recordsInList(value: unknown): Json[] {
  return Array.isArray(value)
    ? value.filter((one): one is Json => typeof one === 'object' && one !== null && !Array.isArray(one))
    : []
}

export function isErrorBody(whole: Json): boolean {
  return (whole['error'] !== undefined && whole['error'] !== null) || whole['type'] === 'error'
}
