import { createParser } from 'eventsource-parser'
import { dataOf, eventOf, FrameSplitter } from '../../src/protocols/sse/sse.ts'

/** An event as its reader gets it. */
export interface StreamEvent {
  readonly event: string
  readonly data: string
}

const MARK = Buffer.from('\ufeff')

/**
 * The events that we read, in chunks as they come. A mark at the start is taken off, as callers of the parser
 * do.
 */
export function ourEvents(chunks: readonly Buffer[]): StreamEvent[] {
  const splitter = new FrameSplitter(Number.POSITIVE_INFINITY)
  const frames: string[] = []
  for (const chunk of chunks) {
    const bytes = splitter.take(chunk)
    if (!bytes) continue
    let at = 0
    for (let end = splitter.next(0); end > 0; end = splitter.next(at)) {
      frames.push(bytes.toString('utf8', at, end))
      at = end
    }
    splitter.keep(at)
  }
  const { bytes, isWhole } = splitter.end()
  if (isWhole) frames.push(bytes.toString())
  return frames.flatMap((frame) => {
    const data = dataOf(frame)
    return data === undefined ? [] : [{ event: eventOf(frame) ?? '', data }]
  })
}

/** The events that `eventsource-parser` reads. */
export function theirEvents(bytes: Buffer): StreamEvent[] {
  const events: StreamEvent[] = []
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ event: event ?? '', data }) })
  parser.feed(bytes.toString())
  // A last CR waits for the LF that could belong to it.
  parser.feed(':\n')
  return events
}

/** Without the mark that a stream may begin with. */
export function unmarked(bytes: Buffer): Buffer {
  return bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes
}
