import { asRecord } from '../json/record.ts'
import { eventOf, isErrorEvent } from '../sse/frame-splitter.ts'

/** An event's data. */
export type Event = Readonly<Record<string, unknown>>

/** Items of one response are told apart up to this many; no answer has more. */
export const MAX_ITEMS = 4_096

/** The events that end a response, with its status. */
export const TERMINAL: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
])

/**
 * Type of an event: `error` if the event is named so, else the type in the data (some servers write no event
 * lines), else the event's name; '' without any.
 */
export function eventType(event: Event, frame: string): string {
  if (isErrorEvent(frame)) return 'error'
  const type = event['type']
  return typeof type === 'string' ? type : (eventOf(frame) ?? '')
}

/** The item that an event is about: by its number, as some servers change ids between events. */
export function outputIndex(event: Event): number {
  return numberOf(event['output_index'])
}

/** Which text of the item it is about. */
export function textIndex(event: Event): number {
  return numberOf(event['content_index'] ?? event['summary_index'])
}

/** The events that bring more of a text, and what they add to. */
export const DELTAS = [
  { type: 'response.output_text.delta', kind: 'text' },
  { type: 'response.reasoning_summary_text.delta', kind: 'thinking' },
  { type: 'response.function_call_arguments.delta', kind: 'tool-call' },
  { type: 'response.custom_tool_call_input.delta', kind: 'custom' },
  { type: 'response.reasoning_text.delta', kind: 'thinking' },
  { type: 'response.refusal.delta', kind: 'refusal' },
  { type: 'response.audio.transcript.delta', kind: 'text' },
] as const

/** The response in an event that carries one. */
export function responseIn(event: Event): Event | undefined {
  return asRecord(event['response'])
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? Math.min(value, MAX_ITEMS)
    : 0
}
