import { type StreamedText, type EventText, eventTexts } from '@sluice/wire/event-texts'
import { type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/found-texts'
import { refusableStream } from '@sluice/wire/refused-answer'
import { frameData } from '@sluice/wire/sse/frame-splitter'
import type { Usage } from '@sluice/wire/usage'
import type { CheckTurns } from '../../call/check-turns.ts'
import { GuardBlock } from './active-guard.ts'
import {
  digestOf,
  frameWithData,
  frameWithErrorAlone,
  isTerminator,
  REPEATS,
  scanEventData,
} from './event-frames.ts'
import { GuardedStreamedText, type OpenChannel } from './guarded-streamed-text.ts'
import type { GuardedStream, ReadEvent, StreamEvent } from './stream-event.ts'
import { StreamedTextMap, MAX_STREAMED_TEXTS } from './streamed-text-map.ts'

/** Maximum number of texts that are remembered because later events may repeat them, as at the end of a part. */
const MAX_REPEATED = 1024
/** Maximum number of characters of all remembered texts that guards have changed. */
const MAX_REPEATED_LENGTH = 1024 * 1024
/** Bytes of memory for a text that is arriving in pieces; below it, those for a remembered text. */
const CHANNEL_BYTES = 8192
const REPEATED_BYTES = 256
/** Bytes of memory for a character that is held back, as it stands and with its escapes resolved. */
const RETAINED_BYTES = 4

/** Stands for a text that guards have not changed. */
const SAME = Symbol('same')

/** Has the guards of texts search the events of a stream, and writes the events as these guards leave them. */
export class EventScreen {
  /** Whether a guard has ended the stream. */
  isBlocked = false
  /** Set while a large event is checked in turns. */
  turns: CheckTurns | undefined
  readonly #stream: GuardedStream
  readonly #begun: ReturnType<typeof refusableStream>
  /** The sequence number of the next event, in a dialect that numbers events. */
  #sequence = 0
  /** Number of events that were added to the stream. The sequence numbers of later events are increased by it. */
  #added = 0
  readonly #open = new StreamedTextMap<OpenChannel>()
  /**
   * Results of checking texts that later events may repeat, by digest: a changed text, `SAME`, or undefined
   * if the text is blocked.
   */
  readonly #repeated = new Map<string, string | typeof SAME | undefined>()
  #repeatedLength = 0
  /** Digests of texts that arrived in pieces and were checked. */
  readonly #seen = new Set<string>()
  /** What services have put in the place of texts that arrived in one piece, for events that repeat them. */
  readonly #served = new Map<string, string>()
  #servedLength = 0
  /** Number of characters of all texts that are held back. */
  #retained = 0

  constructor(stream: GuardedStream) {
    this.#stream = stream
    this.#begun = refusableStream(stream.dialect)
  }

  /** The memory that is held, in bytes. */
  get bytes(): number {
    const entries = this.#repeated.size + this.#seen.size + this.#served.size
    const repeated = REPEATED_BYTES * entries + 2 * (this.#repeatedLength + this.#servedLength)
    const texts = RETAINED_BYTES * this.#retained + 2 * (this.#begun.textLength ?? 0)
    return repeated + CHANNEL_BYTES * this.#open.size + texts
  }

  /** Ends the stream. The choices that these events would have begun must be ended as well. */
  block(events: readonly StreamEvent[]): void {
    this.isBlocked = true
    for (const { read } of events) if (read) this.#begun.noteBlocked?.(read.scan)
  }

  /** The events that end a stream which a guard has ended. */
  refusal(charged: Usage): string {
    const events = this.#begun.refusal(charged, this.#sequence + this.#added)
    const { dialect } = this.#stream
    if (dialect === 'images' || dialect === 'transcript') return events
    // They repeat members of the provider's events. What is no word of the protocol may be what was blocked.
    const frames = events.split(/(?<=\n\n)/)
    return frames.map((frame) => this.#rewritten(frame, () => '')).join('')
  }

  /**
   * An event that reports an error. What errors say is checked where they are redacted, but the event may repeat what was
   * generated beside it. `before`: number of events that are sent before it.
   */
  errorAlone(frame: string, before: number): string {
    const { changesAnswer, withholds } = this.#stream.guards
    return changesAnswer || withholds
      ? frameWithErrorAlone(frame, this.#sequence + this.#added + before)
      : frame
  }

  /** Forgets the texts that are arriving, because the client has left. */
  drop(): void {
    for (const [key] of this.#open.endedBy([''])) this.#open.delete(key)
    this.#retained = 0
  }

  /** Checks an event; returns what may be sent. The steps end where other calls may run if the event is large. */
  *screen(event: StreamEvent): Generator<void, string> {
    const { frame, read } = event
    if (read) return yield* this.#screenTexts(event, read)
    if (isTerminator(event.data)) return this.endAll() + (this.isBlocked ? '' : frame)
    return this.#stream.guards.withholds ? '' : frame
  }

  *#screenTexts({ frame, texts: served }: StreamEvent, read: ReadEvent): Generator<void, string> {
    const { scan, texts, ends, repeating, sequence, own, last } = read
    let before = ''
    for (const [key, open] of this.#open.endedBy(ends)) if (!own.has(key)) before += this.#endOf(key, open)
    if (this.isBlocked) return before
    const changes: TextChange[] = []
    const sent: (readonly [key: string, text: string])[] = []
    for (const [index, text] of texts.entries()) {
      const given = decodeStringAt(scan.bytes, text.from, text.to)
      const left = served?.[index] ?? given
      if (left !== given && !text.channel) this.#noteServed(given, left)
      const next = yield* this.#checkedText(left, text, last.has(text))
      if (this.isBlocked) {
        this.#begun.noteBlocked?.(scan)
        return next === '' || !text.channel ? before : before + this.#addedFrame(text.channel, next)
      }
      if (text.channel) sent.push([text.channel.key, next])
      if (next !== given) changes.push({ from: text.from, to: text.to, text: JSON.stringify(next) })
    }
    this.#begun.note(scan)
    for (const [key, text] of sent) this.#begun.noteText?.(key, text)
    if (this.#stream.guards.changesAnswer)
      for (const [from, to, text] of repeating)
        if (scan.bytes.toString('utf8', from, to) !== text) changes.push({ from, to, text })
    if (sequence) {
      const [from, to] = sequence
      const number = Number(scan.bytes.toString('utf8', from, to))
      this.#sequence = number + 1
      if (this.#added > 0) changes.push({ from, to, text: String(number + this.#added) })
    }
    if (changes.length === 0) return before + frame
    const data = applyTextChanges(
      scan.bytes,
      changes.toSorted((a, b) => a.from - b.from),
    ).toString()
    return before + frameWithData(frame, data)
  }

  *#checkedText(given: string, text: EventText, isLast: boolean): Generator<void, string> {
    const { channel } = text
    if (channel) {
      const open = this.#channelOf(channel)
      if (!open) return this.#unchecked(given, text)
      let sent = ''
      let at = 0
      do {
        if (at > 0) yield
        const piece = this.turns ? given.slice(at, at + this.turns.length) : given
        at += piece.length
        this.#retained -= open.guarded.retained
        sent += open.guarded.push(piece)
        this.#retained += open.guarded.retained
        open.digest?.update(piece)
      } while (at < given.length && !open.guarded.isBlocked)
      if (!open.guarded.isBlocked && isLast) return sent + this.#ended(channel.key, open)
      if (open.guarded.isBlocked) this.isBlocked = true
      return sent
    }
    // The text arrived in one piece. Some providers repeat such texts in each event, for example citations,
    // so the result of an earlier check is used.
    const known = yield* this.#repeatedOf(given, text)
    if (known === undefined) this.isBlocked = true
    return known ?? ''
  }

  /** Checks a text that arrived in one piece; `isSeen` if it had arrived in pieces. Returns undefined if it is blocked. */
  *#checkedWhole(given: string, text: EventText, isSeen: boolean): Generator<void, string | undefined> {
    const { guards } = this.#stream
    try {
      if (!this.turns) return isSeen ? guards.repeat(given, text) : guards.checkAnswer(given, text)
      const step = guards.answerSteps(given, text, isSeen)
      if (!step) return guards.restored(given, text)
      let checked = ''
      for (let at = 0; at < given.length; yield) {
        at = Math.min(at + this.turns.length, given.length)
        checked += step(at)
      }
      return guards.restored(checked, text)
    } catch (error) {
      if (!(error instanceof GuardBlock)) throw error
      return undefined
    }
  }

  /** Ends a text that arrived in pieces; returns the part of it that was held back. */
  #ended(key: string, { guarded, digest }: OpenChannel): string {
    this.#open.delete(key)
    this.#retained -= guarded.retained
    if (digest && this.#seen.size < MAX_REPEATED) this.#seen.add(digest.digest('base64'))
    const rest = guarded.end()
    if (guarded.isBlocked) this.isBlocked = true
    return rest
  }

  *#repeatedOf(given: string, text: EventText): Generator<void, string | undefined> {
    const key = digestOf(text).update(given).digest('base64')
    if (this.#repeated.has(key)) {
      const known = this.#repeated.get(key)
      return known === SAME ? given : known
    }
    const next = yield* this.#checkedWhole(given, text, this.#seen.has(key))
    const length = next === undefined || next === given ? 0 : next.length
    if (this.#repeated.size >= MAX_REPEATED || this.#repeatedLength + length > MAX_REPEATED_LENGTH) {
      this.#repeated.clear()
      this.#repeatedLength = 0
    }
    this.#repeatedLength += length
    this.#repeated.set(key, next === given ? SAME : next)
    return next
  }

  // Handles a text that is not checked, because too many texts are arriving at the same time.
  #unchecked(given: string, spot: EventText): string {
    if (this.#stream.guards.failed(spot)) return given
    this.isBlocked = true
    return ''
  }

  /**
   * Returns the entry of a text that arrives in pieces, creating it if necessary; undefined if there are
   * already `MAX_STREAMED_TEXTS`.
   */
  #channelOf(channel: StreamedText): OpenChannel | undefined {
    let open = this.#open.get(channel.key)
    if (!open && this.#open.size >= MAX_STREAMED_TEXTS) return undefined
    if (!open)
      this.#open.set(
        channel.key,
        (open = {
          guarded: new GuardedStreamedText(this.#stream.guards, channel, this.#hasBegun(channel.repeats)),
          channel,
          digest: REPEATS[this.#stream.dialect] ? digestOf(channel) : undefined,
        }),
      )
    open.channel = channel
    return open
  }

  #noteServed(given: string, left: string): void {
    const length = given.length + left.length
    if (this.#served.has(given) || this.#servedLength + length > MAX_REPEATED_LENGTH) return
    this.#served.set(given, left)
    this.#servedLength += length
  }

  #hasBegun(key: string | undefined): boolean {
    return key !== undefined && this.#open.get(key) !== undefined
  }

  /** Ends all texts that arrived in pieces; returns events with the parts of them that were held back. */
  endAll(): string {
    let sent = ''
    for (const [key, open] of this.#open.endedBy([''])) sent += this.#endOf(key, open)
    return sent
  }

  #endOf(key: string, open: OpenChannel): string {
    if (this.isBlocked) return ''
    const rest = this.#ended(key, open)
    return rest === '' ? '' : this.#addedFrame(open.channel, rest)
  }

  /**
   * Returns an event that continues a text with these characters. The sequence numbers of later events
   * increase.
   */
  #addedFrame(channel: StreamedText, text: string): string {
    this.#begun.noteText?.(channel.key, text)
    // The event repeats names of an event of the provider, in which guards may have changed them.
    return this.#rewritten(
      channel.frame(text),
      (given, found) => {
        if (found.channel?.key === channel.key) return given
        return this.#served.get(given) ?? this.#stream.guards.repeat(given, found) ?? ''
      },
      true,
    )
  }

  /** Writes an event of the gateway with other texts. `isAdded`: it is inserted between events of the provider. */
  #rewritten(frame: string, next: (given: string, text: EventText) => string, isAdded = false): string {
    const scan = scanEventData(frameData(frame) ?? '')
    if (!scan) return frame
    const { texts, sequence } = eventTexts(scan, this.#stream)
    const changes: TextChange[] = texts.flatMap((text) => {
      const { from, to } = text
      const given = decodeStringAt(scan.bytes, from, to)
      const written = next(given, text)
      return written === given ? [] : [{ from, to, text: JSON.stringify(written) }]
    })
    if (sequence && isAdded) {
      // The added event takes the number of the event before which it is inserted.
      this.#added += 1
      const [from, to] = sequence
      changes.push({ from, to, text: String(this.#sequence + this.#added - 1) })
    }
    if (changes.length === 0) return frame
    const sorted = changes.toSorted((a, b) => a.from - b.from)
    return frameWithData(frame, applyTextChanges(scan.bytes, sorted).toString())
  }
}
