import { JsonArraySplitter, EventsToJsonArray } from '@sluice/wire/gemini'
import {
  eventTexts,
  type StreamContext,
  type StreamedText,
  type EventText,
} from '@sluice/wire/guarded-events'
import { type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/guarded-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { type RefusableStream, refusableStream } from '@sluice/wire/refused-answer'
import { frameData, type EventMemory, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import type { TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { Usage } from '@sluice/wire/usage'
import type { Tap } from '../../call/dialects/dialect.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import { StreamedTextMap, MAX_STREAMED_TEXTS } from './streamed-text-map.ts'
import {
  streamedTextsOf,
  checkableFramePart,
  digestOf,
  endedFrames,
  eventOfElement,
  isTerminator,
  REPEATS,
  scanEventData,
  frameWithData,
  frameWithErrorAlone,
} from './event-frames.ts'
import { atOnce, inTurns } from './check-steps.ts'
import type { CheckTurns } from '../../call/check-turns.ts'
import { GuardedStreamedText, type OpenChannel } from './guarded-streamed-text.ts'
import { WrappedTap } from './wrapped-tap.ts'

/** Maximum number of texts that are remembered because later events may repeat them, as at the end of a part. */
const MAX_REPEATED = 1024
/** Maximum number of characters of all remembered texts that guards have changed. */
const MAX_REPEATED_LENGTH = 1024 * 1024
/** Bytes of memory for a text that is arriving in pieces; below it, those for a remembered text. */
const CHANNEL_BYTES = 8192
const REPEATED_BYTES = 256
/** Bytes of memory for a character that is held back, as it stands and with its escapes resolved. */
const RETAINED_BYTES = 4

/** Bytes of an event that is checked in turns, so that other calls run in between; smaller ones are checked at once. */
const LARGE_EVENT_BYTES = 2_048

const NO_BYTES = Buffer.alloc(0)
/** The byte order mark with which a stream may begin. */
const BYTE_ORDER_MARK = '\ufeff'

/** Stands for a text that guards have not changed. */
const SAME = Symbol('same')

/** The guards that check a call's stream, and facts about the stream. */
export interface GuardedStream extends StreamContext {
  readonly guards: CallGuards
  /** Whether the client reads its stream as one JSON array. */
  readonly isArray: boolean
}

/**
 * Checks the events that another tap sends, and changes the texts in them. The events are in the client's
 * dialect.
 */
export class GuardedTap extends WrappedTap {
  readonly #stream: GuardedStream
  readonly #frames: FrameSplitter
  readonly #begun: RefusableStream
  /** The sequence number of the next event, in a dialect that numbers events. */
  #sequence = 0
  readonly #open = new StreamedTextMap<OpenChannel>()
  /**
   * Results of checking texts that later events may repeat, by digest: a changed text, `SAME`, or undefined
   * if the text is blocked.
   */
  readonly #repeated = new Map<string, string | typeof SAME | undefined>()
  #repeatedLength = 0
  /** Digests of texts that arrived in pieces and were checked. */
  readonly #seen = new Set<string>()
  readonly #memory: EventMemory
  #splitBytes = 0
  /** Number of characters of all texts that are held back. */
  #retained = 0
  /**
   * Number of events that were added to the stream. The sequence numbers of later events are increased by it.
   */
  #added = 0
  #isBlocked = false
  /** Whether the client has left, so that nothing is sent or kept of the rest. */
  #isUnread = false
  /** Events with checked texts that must be sent before the last bytes of the stream. */
  #rest = ''
  #final: Buffer | undefined
  /** Set while a large event is checked in turns. */
  #turns: CheckTurns | undefined
  #checking: Promise<void> | undefined
  /** Size of that event in bytes. */
  #checkingBytes = 0
  /** What is sent of the large event that was checked last, and the bytes after it, which were not checked yet. */
  #checked = ''
  #waiting: Buffer = NO_BYTES
  #isTerminal = false
  #isReleased = false
  /**
   * The last bytes of the inner tap, and the result of checking them. They are needed twice: to be stored and
   * to be sent.
   */
  #last: { readonly given: Buffer; readonly sent: string } | undefined
  /** Reads the elements of a JSON array and writes the checked ones; set if the stream is one JSON array. */
  readonly #array:
    | { readonly elements: JsonArraySplitter | undefined; readonly writer: EventsToJsonArray }
    | undefined

  constructor(inner: Tap, stream: GuardedStream, memory: EventMemory) {
    super(inner)
    this.#stream = stream
    this.#memory = memory
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, { resize: (bytes) => this.#account(bytes) })
    this.#begun = refusableStream(stream.dialect)
    if (stream.isArray)
      this.#array = {
        elements: inner.check?.heldFrames ? undefined : new JsonArraySplitter(),
        writer: new EventsToJsonArray(),
      }
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  override get checking(): Promise<void> | undefined {
    return this.#checking ?? this.inner.check?.checking
  }

  push(chunk: Buffer): TapPushResult {
    const { forward, terminal } = this.#isTerminal
      ? { forward: undefined, terminal: true }
      : this.inner.push(chunk)
    let sent = this.#checked
    this.#checked = ''
    if (forward || this.#waiting.length > 0) sent += this.#guard(forward ?? NO_BYTES, true)
    if (this.inner.check?.isBlocked) this.#blockHeld()
    this.#isTerminal = terminal
    const isOver = terminal && !this.#checking
    const rest = isOver && !this.inner.error && !this.#isBlocked ? this.#endAll() : ''
    const bytes = this.#written(sent + rest)
    return { forward: bytes.length > 0 ? bytes : undefined, terminal: isOver }
  }

  end(): ReturnType<Tap['end']> {
    const end = this.inner.end()
    if (this.inner.check?.isBlocked) this.#blockHeld()
    if (end.complete && !this.checking && !this.#isBlocked) {
      // A match may continue into the events that are sent after the charge.
      const last = this.#guardEnd(this.inner.takeLastTexts?.() ?? NO_BYTES)
      this.#rest += endedFrames(last) + this.#endAll()
    }
    return end
  }

  finalBytes(charged: Usage): Buffer {
    if (this.#final) return this.#final
    if (!this.#isBlocked) this.#rest += this.#guardLast(this.inner.finalBytes(charged))
    return (this.#final = this.#isBlocked ? this.refusalBytes(charged) : this.#lastWritten(this.#rest))
  }

  failureFrame(error: ErrorContent): Buffer {
    const unjudged = this.takeUncheckedEvents()
    const rest = this.#rest + this.#endAll()
    const last = this.#lastWritten(
      rest + this.#errorAlone(this.#framesOf(this.inner.failureFrame(error)), this.inner.errorFrame ? 1 : 0),
    )
    return unjudged.length > 0 ? Buffer.concat([unjudged, last]) : last
  }

  override get errorFrame(): Buffer | undefined {
    const frame = this.inner.errorFrame
    return frame && Buffer.from(this.#errorAlone(frame.toString(), 0))
  }

  // What errors say is checked where they are redacted. An event with one may repeat what was generated beside it.
  #errorAlone(frame: string, before: number): string {
    const { changesAnswer, withholds } = this.#stream.guards
    return changesAnswer || withholds
      ? frameWithErrorAlone(frame, this.#sequence + this.#added + before)
      : frame
  }

  /** When the stream breaks off: returns the events that were held back, as far as guards let them pass. */
  takeUncheckedEvents(): Buffer {
    const held = this.inner.takeUncheckedEvents?.()
    // The end of a complete stream has been checked together with what was held back before it.
    if (!held || held.length === 0 || this.#last) return NO_BYTES
    const sent = this.#guard(held)
    return this.#written(this.#isBlocked ? sent : sent + this.#endAll())
  }

  // Called when a guard's service has blocked events that were held back. The choices that these events would
  // have begun must be ended as well.
  #blockHeld(): void {
    if (this.#isBlocked) return
    this.#isBlocked = true
    for (const frame of this.inner.check?.heldFrames?.() ?? []) {
      const scan = scanEventData(frameData(frame) ?? '')
      if (scan) this.#begun.noteBlocked?.(scan)
    }
  }

  /** Returns the text before the match at the end of a stream, and the events that end the stream as blocked. */
  refusalBytes(charged: Usage): Buffer {
    return this.#lastWritten(this.#rest + this.#begun.refusal(charged, this.#sequence + this.#added))
  }

  /** Checks no more texts, except those of responses: a response that is kept can be read later. */
  override clientLeft(): void {
    super.clientLeft()
    if (REPEATS[this.#stream.dialect]) return
    this.#isUnread = true
    for (const [key] of this.#open.endedBy([''])) this.#open.delete(key)
    this.#retained = 0
    this.#waiting = NO_BYTES
    this.#frames.takeBuffered()
    this.#memory.resize(0)
  }

  override release(): void {
    this.#isReleased = true
    this.#frames.takeBuffered()
    this.#memory.resize(0)
    super.release()
  }

  protected kept(bytes: Buffer): Buffer {
    return Buffer.from(this.#guardLast(bytes))
  }

  #account(splitBytes = this.#splitBytes): void {
    this.#splitBytes = splitBytes
    const repeated = REPEATED_BYTES * (this.#repeated.size + this.#seen.size) + 2 * this.#repeatedLength
    const texts = CHANNEL_BYTES * this.#open.size + RETAINED_BYTES * this.#retained
    const inTurns = this.#checkingBytes + this.#waiting.length + 2 * this.#checked.length
    this.#memory.resize(splitBytes + texts + repeated + inTurns)
  }

  #guardLast(bytes: Buffer): string {
    if (this.#last?.given === bytes) return this.#last.sent
    const sent = this.#guardEnd(bytes)
    this.#last = { given: bytes, sent }
    return sent
  }

  // The last event may have ended only because the stream ended.
  #guardEnd(bytes: Buffer): string {
    const sent = this.#guard(bytes)
    const rest = this.#frames.takeBuffered()
    return rest.length === 0 || this.#isBlocked ? sent : sent + atOnce(this.#guardFrame(rest))
  }

  /** Returns events in the form in which the client receives them: as events or as elements of a JSON array. */
  #written(events: string): Buffer {
    const bytes = Buffer.from(events)
    return this.#array ? this.#array.writer.push(bytes) : bytes
  }

  #lastWritten(events: string): Buffer {
    const bytes = this.#written(events)
    return this.#array ? Buffer.concat([bytes, this.#array.writer.end()]) : bytes
  }

  /** Converts the bytes that the inner tap sends to events. */
  #framesOf(bytes: Buffer): string {
    const elements = this.#array?.elements
    return elements ? elements.push(bytes).map(eventOfElement).join('') : bytes.toString()
  }

  /** @param mayWait Whether a large event may be checked in turns. What follows it then waits. */
  #guard(bytes: Buffer, mayWait = false): string {
    if (this.#isBlocked || this.#isUnread) return ''
    let given = this.#array?.elements ? Buffer.from(this.#framesOf(bytes)) : bytes
    if (this.#waiting.length > 0) given = Buffer.concat([this.#waiting, given])
    this.#waiting = NO_BYTES
    if (this.#checking && mayWait) {
      this.#waiting = given
      return ''
    }
    const frames = this.#frames.take(given)
    if (!frames) return ''
    let sent = ''
    let at = 0
    for (;;) {
      const end = this.#frames.next(at)
      if (end < 0 || this.#isBlocked) break
      const frame = frames.subarray(at, end)
      at = end
      if (mayWait && frame.length > LARGE_EVENT_BYTES) {
        this.#waiting = Buffer.from(frames.subarray(at))
        at = frames.length
        this.#checkInTurns(frame)
        break
      }
      sent += atOnce(this.#guardFrame(frame))
    }
    this.#frames.markRead(at)
    this.#account()
    return sent
  }

  #checkInTurns(frame: Buffer): void {
    const turns = this.#stream.guards.turnsUntil(() => this.#isUnread || this.#isReleased)
    this.#turns = turns
    this.#checkingBytes = frame.length
    this.#checking = inTurns(turns, this.#guardFrame(frame)).then((sent) => {
      this.#checked = sent ?? ''
      this.#turns = undefined
      this.#checking = undefined
      this.#checkingBytes = 0
      if (!this.#isReleased) this.#account()
    })
  }

  // The steps end where other calls may run if the event is large.
  *#guardFrame(bytes: Buffer): Generator<void, string> {
    const given = bytes.toString()
    const whole = given.startsWith(BYTE_ORDER_MARK) ? given.slice(1) : given
    const data = frameData(whole)
    const scan = data === undefined ? undefined : scanEventData(data)
    const { withholds } = this.#stream.guards
    const frame = withholds ? checkableFramePart(whole) : whole
    if (scan) return yield* this.#guardEvent(frame, scan)
    if (isTerminator(data)) return this.#endAll() + (this.#isBlocked ? '' : frame)
    return withholds ? '' : frame
  }

  *#guardEvent(frame: string, scan: ScannedObject): Generator<void, string> {
    const { texts, ends, repeating, sequence } = eventTexts(scan, this.#stream)
    const { own, last } = streamedTextsOf({ texts, ends })
    let before = ''
    for (const [key, open] of this.#open.endedBy(ends)) if (!own.has(key)) before += this.#endOf(key, open)
    if (this.#isBlocked) return before
    const changes: TextChange[] = []
    for (const text of texts) {
      const given = decodeStringAt(scan.bytes, text.from, text.to)
      const next = yield* this.#checkedText(given, text, last.has(text))
      if (this.#isBlocked) {
        this.#begun.noteBlocked?.(scan)
        return next === '' || !text.channel ? before : before + this.#addedFrame(text.channel, next)
      }
      if (next !== given) changes.push({ from: text.from, to: text.to, text: JSON.stringify(next) })
    }
    this.#begun.note(scan)
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
        const piece = this.#turns ? given.slice(at, at + this.#turns.length) : given
        at += piece.length
        this.#retained -= open.guarded.retained
        sent += open.guarded.push(piece)
        this.#retained += open.guarded.retained
        open.digest?.update(piece)
      } while (at < given.length && !open.guarded.isBlocked)
      if (!open.guarded.isBlocked && isLast) return sent + this.#ended(channel.key, open)
      if (open.guarded.isBlocked) this.#isBlocked = true
      return sent
    }
    // The text arrived in one piece. Some providers repeat such texts in each event, for example citations,
    // so the result of an earlier check is used.
    const known = yield* this.#repeatedOf(given, text)
    if (known === undefined) this.#isBlocked = true
    return known ?? ''
  }

  /** Checks a text that arrived in one piece; `isSeen` if it had arrived in pieces. Returns undefined if it is blocked. */
  *#checkedWhole(given: string, text: EventText, isSeen: boolean): Generator<void, string | undefined> {
    const { guards } = this.#stream
    try {
      if (!this.#turns) return isSeen ? guards.repeat(given, text) : guards.checkAnswerText(given, text)
      const step = guards.answerSteps(given, text, isSeen)
      if (!step) return guards.restored(given, text)
      let checked = ''
      for (let at = 0; at < given.length; yield) {
        at = Math.min(at + this.#turns.length, given.length)
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
    if (guarded.isBlocked) this.#isBlocked = true
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
    this.#isBlocked = true
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
          guarded: new GuardedStreamedText(this.#stream.guards, channel),
          channel,
          digest: REPEATS[this.#stream.dialect] ? digestOf(channel) : undefined,
        }),
      )
    open.channel = channel
    return open
  }

  /** Ends all texts that arrived in pieces; returns events with the parts of them that were held back. */
  #endAll(): string {
    if (this.#isUnread) return ''
    let sent = ''
    for (const [key, open] of this.#open.endedBy([''])) sent += this.#endOf(key, open)
    return sent
  }

  #endOf(key: string, open: OpenChannel): string {
    if (this.#isBlocked) return ''
    const rest = this.#ended(key, open)
    return rest === '' ? '' : this.#addedFrame(open.channel, rest)
  }

  /**
   * Returns an event that continues a text with these characters. The sequence numbers of later events
   * increase.
   */
  #addedFrame(channel: StreamedText, text: string): string {
    const frame = channel.frame(text)
    const scan = scanEventData(frameData(frame) ?? '')
    const number = scan?.span('sequence_number')
    if (!scan || !number) return frame
    // The added event takes the number of the event before which it is inserted.
    this.#added += 1
    const next = this.#sequence + this.#added - 1
    const changed = applyTextChanges(scan.bytes, [{ from: number.start, to: number.end, text: String(next) }])
    return frameWithData(frame, changed.toString())
  }
}
