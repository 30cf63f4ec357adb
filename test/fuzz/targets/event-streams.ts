import { parseEvents } from '@sluice/wire/answer-forms'
import { ANSWER_FORMS } from '@sluice/wire/answer-forms-by-name'
import { WireError } from '@sluice/wire/wire-error'
import { LargeEvent } from '@sluice/wire/sse/stream-tap'
import { FrameSplitter } from '@sluice/wire/sse/frame-splitter'
import { ourEvents, theirEvents, unmarked } from '../../corpus/event-streams.ts'
import { chopped, choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'
import { REPEATED_STREAMS, STREAMS } from './streams.ts'
import { SSE_TOKENS } from './tokens.ts'

/** A maximum event size that short inputs exceed. */
const SMALL_EVENT_BYTES = 48
/** Size up to which an outline is the text itself. */
const MAX_VERBATIM_BYTES = 1_000

/** Splits frames until one exceeds SMALL_EVENT_BYTES. */
function readSmallEvents(chunks: readonly Buffer[]): {
  readonly frames: string[]
  readonly isTooLarge: boolean
} {
  let held = 0
  const splitter = new FrameSplitter(SMALL_EVENT_BYTES, { resize: (bytes) => (held = bytes) })
  const frames: string[] = []
  let isTooLarge = false
  try {
    for (const chunk of chunks) {
      const bytes = splitter.take(chunk)
      let at = 0
      if (bytes) {
        for (let end = splitter.next(0); end > 0; end = splitter.next(at)) {
          invariant(end > at, 'a frame has bytes')
          frames.push(bytes.toString('latin1', at, end))
          at = end
        }
        splitter.markRead(at)
      }
      invariant(splitter.heldBytes <= SMALL_EVENT_BYTES, 'no more is held than an event may have')
      invariant(splitter.heldBytes === held, 'the memory is told of all that is held')
    }
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    invariant(error.code === 'upstream_error', 'an event that is too large is the upstream’s mistake')
    isTooLarge = true
  }
  splitter.takeBuffered()
  invariant(held === 0, 'all that was held is given back')
  return { frames, isTooLarge }
}

/** Data of all events, each read as a `LargeEvent`. */
function largeEventData(chunks: readonly Buffer[]): string[] {
  const all: string[] = []
  let event = new LargeEvent()
  const note = (): void => {
    const data = withoutWhitespace(event.data ?? '')
    if (data !== '') all.push(data)
    event = new LargeEvent()
  }
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const end = event.push(chunk.subarray(at))
      if (end < 0) break
      invariant(end > 0, 'an event that ends has bytes')
      note()
      at += end
    }
  }
  note()
  return all
}

/** Removes white space, which an outline may have where an event's data have none. */
function withoutWhitespace(text: string): string {
  return text.replaceAll(/\s/g, '')
}

/** Readers of server-sent events, compared with those of another library. */
export const EVENT_STREAMS: Target = {
  seeds: [
    ...STREAMS.chat,
    ...STREAMS.messages,
    'data: {"choices":[{"delta":{"content":"a","__proto__":{"x":1}},"logprobs":{"__proto__":{"x":1}}}]}\n\n',
    'data: a\r\ndata:b\r\revent: e\ndata\n\n: c\n\nid: 1\ndata: x\n\r\ndata: last\r\r',
  ],
  tokens: [...SSE_TOKENS, '\r\n', '\r', '\n', 'data', 'event', 'data:', 'id: 1\n', 'retry: 1\n'],
  repeated: [...REPEATED_STREAMS.chat, ['data: ', 'x', '\n\n'], ['data: ', '\ndata: x', '\n\n']],
  run(input, random) {
    const bytes = unmarked(input)
    const whole = ourEvents([bytes])
    const told = JSON.stringify(whole)
    // The other library takes quadratic time for carriage returns.
    if (bytes.length < 100_000)
      invariant(told === JSON.stringify(theirEvents(bytes)), 'another reader reads the same events')
    const inPieces = [choppedAtRandom(bytes, 20, random)]
    if (bytes.length <= 300) inPieces.push(chopped(bytes, 1))
    for (const pieces of inPieces)
      invariant(JSON.stringify(ourEvents(pieces)) === told, 'a cut changes no event')

    const few = readSmallEvents(chopped(bytes, SMALL_EVENT_BYTES))
    for (const frame of few.frames)
      invariant(frame.length <= SMALL_EVENT_BYTES, 'no event is larger than it may be')
    const [pieces = []] = inPieces
    invariant(readSmallEvents(pieces).isTooLarge === few.isTooLarge, 'a cut makes no event too large')

    if (bytes.length <= MAX_VERBATIM_BYTES) {
      // An event without its blank line is read as far as the input goes.
      const ended = ourEvents([Buffer.concat([bytes, Buffer.from('\n\n')])])
      const meant = JSON.stringify(
        ended.map(({ data }) => withoutWhitespace(data)).filter((data) => data !== ''),
      )
      for (const each of [[bytes], pieces])
        invariant(JSON.stringify(largeEventData(each)) === meant, 'an event that passes by has its data')
    }
    const events = parseEvents(bytes.toString())
    for (const forms of Object.values(ANSWER_FORMS)) forms.whole(events)
    return `${Math.min(4, whole.length)} ${few.isTooLarge}`
  },
}
