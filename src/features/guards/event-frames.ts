import { createHash, type Hash } from 'node:crypto'
import { frameData } from '@sluice/wire/sse/frame-splitter'
import { asRecord, parseRecord } from '@sluice/wire/json/record'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { Fields } from '@sluice/wire/field'
import type { EventText, StreamKind } from '@sluice/wire/event-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'

/** Whether later events of a dialect repeat texts that arrived in pieces. */
export const REPEATS: Readonly<Record<StreamKind, boolean>> = {
  chat: false,
  messages: false,
  responses: true,
  gemini: false,
  images: false,
  transcript: true,
}

/** Writes an element of a JSON array as an event. */
export function eventOfElement(element: Buffer): string {
  return `data: ${element.toString().replace(/\r\n|\n|\r/g, '\ndata: ')}\n\n`
}

/** The JSON object in the data of an event; undefined if the data is something else. */
export function scanEventData(data: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(data), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

const LINE_END = /\r\n|\n|\r/
const FIELD = /^(?:data(?::|$)|event: ?[\w.-]+$)/

/** Whether data are the terminator of a chat stream. */
export function isTerminator(data: string | undefined): boolean {
  return data?.trim() === '[DONE]'
}

/**
 * Returns a server-sent event without comments, and without lines other than `event` and `data`; empty if
 * nothing is left.
 */
export function checkableFramePart(frame: string): string {
  const isPlain = frame.startsWith('data: ') && frame.indexOf('\n') === frame.length - 2
  if (isPlain && !frame.includes('\r')) return frame
  const lines = frame.split(LINE_END)
  const fields = lines.filter((line) => FIELD.test(line))
  if (fields.length === lines.length - 2) return frame
  return fields.length === 0 ? '' : `${fields.join('\n')}\n\n`
}

/** Adds the blank line after the last event, which may be missing at the end of a stream. */
export function endedFrames(events: string): string {
  return events === '' || /(?:\n\n|\r\r|\r\n\r\n)$/.test(events) ? events : `${events}\n\n`
}

/** Returns a server-sent event with other data, in one line; the event's other lines stay. */
export function frameWithData(frame: string, data: string): string {
  const others = frame.split(LINE_END).filter((line) => line !== '' && !/^data(?::|$)/.test(line))
  return `${[...others, `data: ${data}`].join('\n')}\n\n`
}

/** Members of an event with an error, in all dialects, and of a response that has failed. */
const ERROR_MEMBERS = ['type', 'sequence_number', 'error', 'code', 'message', 'param', 'status', 'request_id']
const FAILED_RESPONSE_MEMBERS = [
  'id',
  'object',
  'created_at',
  'status',
  'error',
  'incomplete_details',
  'model',
  'usage',
]

/**
 * Returns an event that reports an error, without anything that a model generated. In a dialect that numbers events,
 * it gets this number.
 */
export function frameWithErrorAlone(frame: string, sequence: number): string {
  const event = parseRecord(frameData(frame) ?? '')
  if (!event) return checkableFramePart(frame)
  const { message, response } = event
  const failed = asRecord(response)
  const kept = {
    ...picked(event, ERROR_MEMBERS),
    ...(typeof message === 'object' && { message: undefined }),
    ...('sequence_number' in event && { sequence_number: sequence }),
    ...(failed && { response: { ...picked(failed, FAILED_RESPONSE_MEMBERS), output: [] } }),
  }
  return frameWithData(checkableFramePart(frame), JSON.stringify(kept))
}

function picked(record: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.flatMap((name) => (name in record ? [[name, record[name]]] : [])))
}

/** Begins a digest of a text that is checked as this one. */
export function digestOf({
  place,
  isSigned,
  isJson,
}: Pick<EventText, 'place' | 'isSigned' | 'isJson'>): Hash {
  return createHash('sha256').update(`${place} ${isSigned} ${isJson} `)
}
