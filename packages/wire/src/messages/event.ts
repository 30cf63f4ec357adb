import { asRecord } from '../json/record.ts'
import { eventNameOfFrame, isErrorEvent } from '../sse/frame-splitter.ts'
import { unknownTexts } from '../unknown-members.ts'

/** The parsed JSON in the data of an event. */
export type Event = Readonly<Record<string, unknown>>

/**
 * Type of an event: `error` if the event has this name; otherwise the type in its data; otherwise the event's
 * name. Empty if it has neither.
 */
export function eventType(event: Event, frame: string): string {
  if (isErrorEvent(frame)) return 'error'
  const type = event['type']
  return typeof type === 'string' ? type : (eventNameOfFrame(frame) ?? '')
}

/** Returns the index of an event's block; 0 if it is missing or invalid. */
export function blockIndex(event: Event): number {
  const index = event['index']
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : 0
}

/** Whether a second `message_start` repeats the first one, as some upstreams send it. */
export function isRepeatedMessageStart(before: unknown, id: unknown): boolean {
  return typeof id === 'string' && id !== '' && id === before
}

/** Finds the usage in the data of an error event, either in its `error` object or at the top level. */
export function usageInError(event: Event | undefined): unknown {
  return event?.['usage'] ?? asRecord(event?.['error'])?.['usage']
}

/** Texts of a delta in members that the gateway does not know. */
export function textsOfUnknownMembers(delta: Event | undefined): readonly string[] {
  return delta ? unknownTexts(delta, KNOWN_IN_DELTA) : []
}

/** Members of deltas that the gateway reads, or that contain nothing that the model wrote. */
const KNOWN_IN_DELTA: ReadonlySet<string> = new Set([
  'type',
  'text',
  'thinking',
  'partial_json',
  'content',
  'signature',
  'citation',
  'citations',
  'encrypted_content',
  'estimated_tokens',
])
