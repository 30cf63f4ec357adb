import { JsonArraySplitter, EventsToJsonArray } from '@sluice/wire/gemini'
import { type EventMemory, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import type { TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { Usage } from '@sluice/wire/usage'
import type { StreamCheck, Tap } from '../../call/dialects/answer-reader.ts'
import { atOnce, inTurns } from './check-steps.ts'
import { endedFrames, eventOfElement, REPEATS } from './event-frames.ts'
import { EventScreen } from './event-screen.ts'
import { EVENT_BYTES, HeldEvents } from './held-events.ts'
import { StatedEnds } from './stated-ends.ts'
import { eventOf, type GuardedStream, splitEvents, type StreamEvent } from './stream-event.ts'
import { WrappedTap } from './wrapped-tap.ts'

/** Length of an event that is checked in turns, so that other calls run in between; smaller ones are checked at once. */
const LARGE_EVENT = 2_048

const NO_BYTES = Buffer.alloc(0)
/** Comment that keeps a stream alive while services check it. Clients ignore comments. */
const COMMENT = Buffer.from(': checking\n\n')

/**
 * Checks the events that another tap sends, and changes the texts in them. The events are in the client's dialect. Each is
 * read once, held back while services judge it (`HeldEvents`), searched by the guards of texts, and written once.
 */
export class GuardedTap extends WrappedTap implements StreamCheck {
  readonly #stream: GuardedStream
  readonly #frames: FrameSplitter
  readonly #screen: EventScreen
  /** Holds events back for services; undefined if there are none that check answers. */
  readonly #held: HeldEvents | undefined
  /** Events that were not read yet, because a check of earlier ones is running. */
  #waiting: StreamEvent[] = []
  #waitingLength = 0
  readonly #ends = new StatedEnds()
  readonly #memory: EventMemory
  #splitBytes = 0
  /** Whether the client has left, so that nothing is sent or kept of the rest. */
  #isUnread = false
  /** Events with checked texts that must be sent before the last bytes of the stream. */
  #rest = ''
  #final: Buffer | undefined
  #checking: Promise<void> | undefined
  /** Length of the event that is checked in turns. */
  #checkingLength = 0
  /** Checked events that the next call of `push` returns. */
  #checked = ''
  #isTerminal = false
  #isReleased = false
  #ended: ReturnType<Tap['end']> | undefined
  /**
   * The last bytes of the inner tap, and the result of checking them. They are needed twice: to be stored and
   * to be sent.
   */
  #last: { readonly given: Buffer; readonly sent: string } | undefined
  /** Reads the elements of a JSON array and writes the checked ones; set if the stream is one JSON array. */
  readonly #array: { readonly elements: JsonArraySplitter; readonly writer: EventsToJsonArray } | undefined

  constructor(inner: Tap, stream: GuardedStream, memory: EventMemory) {
    super(inner)
    const { guards, isArray } = stream
    this.#stream = stream
    this.#memory = memory
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, { resize: (bytes) => this.#account(bytes) })
    this.#screen = new EventScreen(stream)
    if (guards.services?.concerns('output', 'tool_arguments'))
      this.#held = new HeldEvents(guards.services, guards)
    if (isArray) this.#array = { elements: new JsonArraySplitter(), writer: new EventsToJsonArray() }
  }

  get check(): StreamCheck {
    return this
  }

  get isBlocked(): boolean {
    return this.#screen.isBlocked
  }

  get checking(): Promise<void> | undefined {
    return this.#checking ?? this.#held?.checking
  }

  get holdsText(): boolean {
    return (
      this.#held !== undefined && (!this.#held.isEmpty || this.#waiting.length > 0 || this.#ends.length > 0)
    )
  }

  override get sentEvents(): number {
    return this.#held?.passed ?? this.inner.sentEvents
  }

  push(chunk: Buffer): TapPushResult {
    if (!this.#isTerminal && chunk.length > 0) {
      const { forward, terminal } = this.inner.push(chunk)
      if (forward && !this.isBlocked && !this.#isUnread)
        this.#wait(this.#split(forward).flatMap((event) => this.#ends.add(event)))
      this.#isTerminal = terminal
      if (terminal) this.#wait(this.#ends.end())
    }
    let sent = this.#checked
    this.#checked = ''
    sent += this.#advance(true)
    const isOver = this.#isTerminal && !this.checking
    if (isOver && !this.inner.error && !this.isBlocked) sent += this.#screen.endAll()
    const bytes = this.#written(sent)
    return { forward: bytes.length > 0 ? bytes : undefined, terminal: isOver }
  }

  end(): ReturnType<Tap['end']> {
    this.#ended ??= this.inner.end()
    // Without services, the last texts of a complete stream are checked below, and may go on with what is held here.
    if (!this.#ended.complete || this.#held) this.#wait(this.#ends.end())
    const sent = this.#advance(false)
    if (sent !== '') {
      this.#checked += sent
      this.#checking ??= Promise.resolve().finally(() => (this.#checking = undefined))
    }
    if (this.#ended.complete && !this.checking && !this.isBlocked) {
      // A match may continue into the events that are sent after the charge.
      const last = this.#screenNow(this.#held ? this.#held.takeLast() : this.#takeLastEvents())
      this.#rest += endedFrames(last) + this.#screen.endAll()
    }
    return this.#ended
  }

  finalBytes(charged: Usage): Buffer {
    if (this.#final) return this.#final
    if (!this.isBlocked) this.#rest += this.#guardLast(this.inner.finalBytes(charged))
    return (this.#final = this.isBlocked ? this.refusalBytes(charged) : this.#lastWritten(this.#rest))
  }

  failureFrame(error: ErrorContent): Buffer {
    const unjudged = this.takeHeldEvents()
    const rest = this.#rest + this.#screen.endAll()
    const last = this.#lastWritten(
      rest +
        this.#screen.errorAlone(
          this.#framesOf(this.inner.failureFrame(error)),
          this.inner.errorFrame ? 1 : 0,
        ),
    )
    return unjudged.length > 0 ? Buffer.concat([unjudged, last]) : last
  }

  override keepAliveFrame(isNumbered?: boolean): Buffer | undefined {
    const frame = this.inner.keepAliveFrame(isNumbered)
    return frame || !this.#held || this.#array ? frame : COMMENT
  }

  /** The upstream's own event with its error; undefined if there is none. */
  override get errorFrame(): Buffer | undefined {
    const frame = this.inner.errorFrame
    return frame && Buffer.from(this.#screen.errorAlone(frame.toString(), 0))
  }

  /** When the stream breaks off: returns the events that were held back, as far as guards let them pass. */
  takeHeldEvents(): Buffer {
    this.#held?.stop()
    const last = this.#withLast(this.#split(this.inner.takeLastTexts?.(true) ?? NO_BYTES))
    const events = [...(this.#held?.takeHeld() ?? []), ...this.#takeWaiting(), ...last]
    // The end of a complete stream has been checked together with what was held back before it.
    const isLost = this.#last !== undefined || this.isBlocked || this.#held?.withholds === true
    const sent = this.#checked + (isLost ? '' : this.#screenNow(events))
    this.#checked = ''
    if (sent === '' && (isLost || events.length === 0)) return NO_BYTES
    return this.#written(this.isBlocked ? sent : sent + this.#screen.endAll())
  }

  /** Returns the text before the match at the end of a stream, and the events that end the stream as blocked. */
  refusalBytes(charged: Usage): Buffer {
    return this.#lastWritten(this.#rest + this.#screen.refusal(charged))
  }

  stopChecking(): void {
    this.#held?.stop()
    if (!this.#held?.withholds) return
    this.#held.drop()
    this.#takeWaiting()
    this.#account()
  }

  /** Checks no more texts, except those of responses: a response that is kept can be read later. */
  override clientLeft(): void {
    super.clientLeft()
    if (REPEATS[this.#stream.dialect]) return
    this.#isUnread = true
    this.#screen.drop()
    this.#drop()
  }

  override release(): void {
    this.#isReleased = true
    this.#held?.stop()
    this.#drop()
    super.release()
  }

  protected kept(bytes: Buffer): Buffer {
    return Buffer.from(this.#guardLast(bytes))
  }

  #drop(): void {
    this.#held?.drop()
    this.#takeWaiting()
    this.#frames.takeBuffered()
    this.#memory.resize(0)
  }

  #account(splitBytes = this.#splitBytes): void {
    this.#splitBytes = splitBytes
    const waiting = EVENT_BYTES * this.#waiting.length + 2 * (this.#waitingLength + this.#ends.length)
    const inTurns = 2 * (this.#checkingLength + this.#checked.length)
    this.#memory.resize(splitBytes + this.#screen.bytes + waiting + inTurns + (this.#held?.bytes ?? 0))
  }

  #guardLast(bytes: Buffer): string {
    if (this.#last?.given === bytes) return this.#last.sent
    const held = this.#held
    const events = this.#withLast([...this.#split(bytes), ...this.#takeBuffered()])
    const sent = this.#screenNow(held ? events.map((event) => held.decide(event)) : events)
    this.#last = { given: bytes, sent }
    return sent
  }

  /**
   * Returns events in the form in which the client receives them: as events or as elements of a JSON array.
   */
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

  #split(given: Buffer): StreamEvent[] {
    const bytes = this.#array ? Buffer.from(this.#framesOf(given)) : given
    return splitEvents(this.#frames, bytes, this.#stream)
  }

  /** The events that go on with the last ones of the stream. */
  #withLast(events: readonly StreamEvent[]): StreamEvent[] {
    return [...events.flatMap((event) => this.#ends.add(event)), ...this.#ends.end()]
  }

  /** Takes the last event of a stream, which may have ended only because the stream ended. */
  #takeBuffered(): StreamEvent[] {
    const event = eventOf(this.#frames.takeBuffered().toString(), this.#stream)
    return event ? [event] : []
  }

  #takeLastEvents(): StreamEvent[] {
    const events = this.#split(this.inner.takeLastTexts?.(false) ?? NO_BYTES)
    return this.#withLast([...events, ...this.#takeBuffered()])
  }

  #wait(events: readonly StreamEvent[]): void {
    for (const event of events) {
      this.#waiting.push(event)
      this.#waitingLength += event.frame.length
    }
  }

  #takeWaiting(): StreamEvent[] {
    const waiting = [...this.#waiting, ...this.#ends.end()]
    this.#waiting = []
    this.#waitingLength = 0
    return waiting
  }

  /**
   * Takes the events that wait through the checks, until one takes longer. Returns those that may be sent.
   * @param mayWait Whether a large event may be checked in turns. What follows it then waits.
   */
  #advance(mayWait: boolean): string {
    const held = this.#held
    let sent = ''
    let read = 0
    for (;;) {
      if (this.isBlocked || this.#isUnread || this.#screen.turns) break
      let event = held?.next()
      if (!event) {
        if (held?.isIdle || read === this.#waiting.length) break
        event = this.#waiting[read] as StreamEvent
        this.#waitingLength -= event.frame.length
        read += 1
        if (held) {
          held.hold(event)
          continue
        }
      }
      if (mayWait && event.frame.length > LARGE_EVENT) this.#checkInTurns(event)
      else sent += atOnce(this.#screen.screen(event))
    }
    this.#waiting.splice(0, read)
    if (this.#mayFinish) {
      held?.finish(this.#takeLastEvents())
      sent += this.#advance(mayWait)
    }
    if (held?.isBlocked && !this.isBlocked) this.#screen.block([...held.takeHeld(), ...this.#takeWaiting()])
    this.#account()
    return sent
  }

  /** Whether the stream has ended, and services have not yet been given its last texts. */
  get #mayFinish(): boolean {
    if (!this.#held || this.#held.isFinished || this.#held.isIdle || this.#waiting.length > 0) return false
    return (this.#isTerminal && !this.inner.error) || this.#ended?.complete === true
  }

  /** Checks events without a pause. */
  #screenNow(events: readonly StreamEvent[]): string {
    let sent = ''
    for (const event of events)
      if (!this.isBlocked && !this.#isUnread) sent += atOnce(this.#screen.screen(event))
    return sent
  }

  #checkInTurns(event: StreamEvent): void {
    const turns = this.#stream.guards.turnsUntil(() => this.#isUnread || this.#isReleased)
    this.#screen.turns = turns
    this.#checkingLength = event.frame.length
    this.#checking = inTurns(turns, this.#screen.screen(event)).then((sent) => {
      this.#checked = sent ?? ''
      this.#screen.turns = undefined
      this.#checking = undefined
      this.#checkingLength = 0
      if (!this.#isReleased) this.#account()
    })
  }
}
