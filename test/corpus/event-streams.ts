import { createParser } from 'eventsource-parser'
import { frameData, eventNameOfFrame, FrameSplitter } from '@sluice/wire/sse/frame-splitter'

/** A server-sent event as its reader gets it. */
export interface StreamEvent {
  readonly event: string
  readonly data: string
}

const MARK = Buffer.from('\ufeff')

/**
 * The events that the gateway reads, in chunks as given. A byte order mark at the start is removed, as the
 * parser's users do.
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
    splitter.markRead(at)
  }
  const { bytes, isWhole } = splitter.end()
  if (isWhole) frames.push(bytes.toString())
  return frames.flatMap((frame) => {
    const data = frameData(frame)
    return data === undefined ? [] : [{ event: eventNameOfFrame(frame) ?? '', data }]
  })
}

/** The events that `eventsource-parser` reads. */
export function theirEvents(bytes: Buffer): StreamEvent[] {
  const events: StreamEvent[] = []
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ event: event ?? '', data }) })
  parser.feed(bytes.toString())
  // A CR at the end is kept until the next byte, which could be its LF.
  parser.feed(':\n')
  return events
}

/** Removes the byte order mark at the start of a stream. */
export function unmarked(bytes: Buffer): Buffer {
  return bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes
}
