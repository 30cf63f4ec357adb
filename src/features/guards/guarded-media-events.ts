import { type EventText, TRANSCRIPT_TEXT, transcriptDelta } from '@sluice/wire/event-texts'
import { decodeStringAt } from '@sluice/wire/found-texts'
import { FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import { NO_USAGE } from '@sluice/wire/usage'
import type { CheckTurns } from '../../call/check-turns.ts'
import { type AnswerCheck, outputText, servedTexts, unlessBlocked } from './answer-check.ts'
import type { CallGuards } from './call-guards.ts'
import { endedFrames } from './event-frames.ts'
import { EventScreen } from './event-screen.ts'
import { eventOf, type GuardedStream, splitEvents, StreamEvent } from './stream-event.ts'

/** Checks the texts in a stream of events of images or of a transcript, step by step. */
export class GuardedMediaEvents {
  readonly #stream: GuardedStream
  readonly #screen: EventScreen
  readonly #frames: FrameSplitter
  #splitBytes = 0

  /** @param turns Tells how many characters are checked in a step. */
  constructor(guards: CallGuards, dialect: 'images' | 'transcript', turns: CheckTurns) {
    this.#stream = { guards, dialect, signsReasoning: false, isArray: false }
    this.#screen = new EventScreen(this.#stream)
    this.#screen.turns = turns
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, { resize: (bytes) => (this.#splitBytes = bytes) })
  }

  /** Bytes of the stream that are held in memory. */
  get held(): number {
    return this.#splitBytes + this.#screen.bytes
  }

  get isBlocked(): boolean {
    return this.#screen.isBlocked
  }

  /** The event that ends a blocked stream: an error for images, the last event for a transcript. */
  get refusal(): string {
    return this.#screen.refusal(NO_USAGE)
  }

  /** Adds bytes of events, and checks them step by step. Returns the events that may be sent now. */
  *push(bytes: Buffer): Generator<void, string> {
    return this.isBlocked ? '' : yield* this.#screened(splitEvents(this.#frames, bytes, this.#stream))
  }

  /** Adds the last bytes of events. Returns all events that may still be sent, with what was held back of texts. */
  *finish(bytes: Buffer): Generator<void, string> {
    return this.isBlocked ? '' : yield* this.#finished(this.#lastEvents(bytes))
  }

  *#finished(events: readonly StreamEvent[]): Generator<void, string> {
    return endedFrames(yield* this.#screened(events)) + this.#screen.endAll()
  }

  /** The last events of the stream. The very last one may have ended only because the stream ended. */
  #lastEvents(bytes: Buffer): StreamEvent[] {
    const events = splitEvents(this.#frames, bytes, this.#stream)
    const rest = eventOf(this.#frames.takeBuffered().toString(), this.#stream)
    return rest ? [...events, rest] : events
  }

  /** Checks a whole stream, first by services. Resolves to the stream to send. */
  async whole(bytes: Buffer, check: AnswerCheck): Promise<Buffer> {
    const events = this.#lastEvents(bytes)
    const served = await unlessBlocked(this.#served(events, check))
    if (!served) this.#screen.block(events)
    const sent = await check.turns.run(this.#finished(served ?? []))
    return Buffer.from(this.isBlocked ? sent + this.refusal : sent)
  }

  *#screened(events: readonly StreamEvent[]): Generator<void, string> {
    let sent = ''
    for (const [index, event] of events.entries()) {
      if (this.isBlocked) break
      if (index > 0) yield
      sent += yield* this.#screen.screen(event)
    }
    return sent
  }

  /**
   * Has services check a whole stream. Where they have changed the text of a transcript, or have not seen a text that
   * arrived in pieces, it is sent in a single event.
   */
  async #served(events: readonly StreamEvent[], check: AnswerCheck): Promise<readonly StreamEvent[]> {
    const read = events.map((event) => ({ event, texts: textsIn(event) }))
    const all = read.flatMap(({ texts }) => texts)
    const pieces = all.filter(({ channel }) => channel?.key === TRANSCRIPT_TEXT)
    const said = pieces.map(({ text }) => text).join('')
    const given = all.find(({ isRepeated }) => isRepeated)?.text ?? said
    const others = all.filter(
      ({ channel, isRepeated, text }) => !isRepeated && (!channel || !given.includes(text.trim())),
    )
    const [served = '', ...rest] = await servedTexts(check, [outputText(given), ...others])
    const next = new Map(others.map((one, index) => [one, rest[index] ?? '']))
    for (const { event, texts } of read)
      event.texts = texts.map((one) => (one.isRepeated ? served : (next.get(one) ?? one.text)))
    if (served === given && (said === '' || said === given)) return events
    const done = read.find(({ texts }) => texts.some(({ isRepeated }) => isRepeated))?.event
    return [
      ...(served === '' ? [] : [this.#event(transcriptDelta(served))]),
      done ?? this.#event(`data: ${JSON.stringify({ type: 'transcript.text.done', text: served })}\n\n`),
    ]
  }

  #event(frame: string): StreamEvent {
    return new StreamEvent(frame, this.#stream)
  }
}

/** A text of an event as it arrived. */
interface ArrivedText extends EventText {
  readonly text: string
}

function textsIn({ read }: StreamEvent): ArrivedText[] {
  if (!read) return []
  const { bytes } = read.scan
  return read.texts.map((found) => ({ ...found, text: decodeStringAt(bytes, found.from, found.to) }))
}
