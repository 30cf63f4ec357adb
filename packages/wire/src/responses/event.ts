import { asRecord } from '../json/record.ts'
import { eventNameOfFrame, isErrorEvent } from '../sse/frame-splitter.ts'
import { unknownTexts } from '../unknown-members.ts'

/** The parsed JSON in the data of an event. */
export type Event = Readonly<Record<string, unknown>>

/** Maximum index of an item that is watched in one response. No response has more items. */
export const MAX_ITEMS = 4_096

/** Types of the events that end a response. Each contains the final status. */
export const TERMINAL_EVENTS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
])

/**
 * Type of an event: `error` if the event has this name; otherwise the type in its data, because some servers
 * write no event names; otherwise the event's name. Empty if it has neither.
 */
export function eventType(event: Event, frame: string): string {
  if (isErrorEvent(frame)) return 'error'
  const type = event['type']
  return typeof type === 'string' ? type : (eventNameOfFrame(frame) ?? '')
}

/** Index of the text within the item to which an event belongs. */
export function textIndex(event: Event): number {
  return numberOf(event['content_index'] ?? event['summary_index'])
}

/** Types of the events that add a piece of text, each with the kind of text. */
export const DELTA_EVENTS = [
  { type: 'response.output_text.delta', kind: 'text' },
  { type: 'response.reasoning_summary_text.delta', kind: 'thinking' },
  { type: 'response.function_call_arguments.delta', kind: 'tool-call' },
  { type: 'response.custom_tool_call_input.delta', kind: 'custom' },
  { type: 'response.reasoning_text.delta', kind: 'thinking' },
  { type: 'response.refusal.delta', kind: 'refusal' },
  { type: 'response.audio.transcript.delta', kind: 'text' },
] as const

/** The response in an event that contains one. */
export function responseInEvent(event: Event): Event | undefined {
  return asRecord(event['response'])
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? Math.min(value, MAX_ITEMS)
    : 0
}

/** Members of events with a delta that contain nothing that the model wrote. */
const BESIDE_DELTA: ReadonlySet<string> = new Set([
  'type',
  'item_id',
  'output_index',
  'content_index',
  'summary_index',
  'annotation_index',
  'sequence_number',
  'response_id',
  'logprobs',
  'obfuscation',
])

/** The delta of an event, and texts in members that are not known. */
export function textsOfDelta(event: Event): readonly string[] {
  return unknownTexts(event, BESIDE_DELTA)
}
