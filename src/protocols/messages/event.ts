import { asRecord } from '../json/record.ts'
import { eventOf, isErrorEvent } from '../sse/frame-splitter.ts'

/** Data of an event. */
export type Event = Readonly<Record<string, unknown>>

/**
 * Returns `error` for an event of that name, else the type in the data, else the event's name; '' without
 * any.
 */
export function eventType(event: Event, frame: string): string {
  if (isErrorEvent(frame)) return 'error'
  const type = event['type']
  return typeof type === 'string' ? type : (eventOf(frame) ?? '')
}

/** Returns the index of an event's block; 0 if it is invalid. */
export function blockIndex(event: Event): number {
  const index = event['index']
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : 0
}

/** Whether a message that begins is the earlier one: some upstreams send `message_start` twice. */
export function isSameMessage(before: unknown, id: unknown): boolean {
  return typeof id === 'string' && id !== '' && id === before
}

/** Finds the usage of an error, beside it or within. */
export function usageInError(event: Event | undefined): unknown {
  return event?.['usage'] ?? asRecord(event?.['error'])?.['usage']
}
