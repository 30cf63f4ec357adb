import { asRecord } from '../json/record.ts'
import { eventOf, isErrorEvent } from '../sse/sse.ts'

/** An event's data. */
export type Event = Readonly<Record<string, unknown>>

/**
 * `error` where the event is named so, else the type in the data, else the event's name; '' where there is
 * none.
 */
export function eventType(event: Event, frame: string): string {
  if (isErrorEvent(frame)) return 'error'
  const type = event['type']
  return typeof type === 'string' ? type : (eventOf(frame) ?? '')
}

/** The block that an event is about; 0 where the number is none. */
export function blockIndex(event: Event): number {
  const index = event['index']
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : 0
}

/** Whether a message that begins is the one that began before: some upstreams send `message_start` twice. */
export function isSameMessage(before: unknown, id: unknown): boolean {
  return typeof id === 'string' && id !== '' && id === before
}

/** The usage that comes with an error, beside it or within. */
export function usageInError(event: Event | undefined): unknown {
  return event?.['usage'] ?? asRecord(event?.['error'])?.['usage']
}
