import { findToolCallsAndImages, type FoundToolCall } from '@sluice/wire/tool-calls-and-images'
import { type StreamContext, type StreamedText, eventTexts } from '@sluice/wire/guarded-events'
import { decodeStringAt } from '@sluice/wire/guarded-texts'
import { JsonArraySplitter } from '@sluice/wire/gemini'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { frameData, type EventMemory, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import type { TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { Usage } from '@sluice/wire/usage'
import type { Tap } from '../../call/dialects/dialect.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import { StreamedTextMap, MAX_STREAMED_TEXTS } from './streamed-text-map.ts'
import { streamedTextsOf, eventOfElement, scanEventData } from './event-frames.ts'
import { HeldBackText, type HeldText, textPosition, wholeTextKey, writeHeldEvent } from './held-back-text.ts'
import { checkedAnswer } from './services/checked-answer.ts'
import { CheckCancelled } from '../../call/check-turns.ts'
import type { CheckedText, ServiceChecks } from './services/service-checks.ts'
import { WrappedTap } from './wrapped-tap.ts'

/** Maximum bytes of a stream's events that are held back. */
const MAX_HELD_BYTES = 64 * 1024 * 1024
/** Bytes of memory for each character of an event that is held back. */
const COPIES = 4
/** Additional memory in bytes: of an event that is held back, of a text in it, and of a tool call. */
const EVENT_BYTES = 256
const TEXT_BYTES = 256
const CALL_BYTES = 512
/** Comment that keeps a stream alive while a check is running. Clients ignore comments. */
const COMMENT = ': checking\n\n'

/** The checks for a stream that is held back until services have checked it, and facts about the stream. */
export interface StreamToCheck extends StreamContext {
  readonly checks: ServiceChecks
  /** The guards that need no service. They check the texts that services let pass. */
  readonly guards: CallGuards
  /** Whether the inner tap writes one JSON array. This tap converts its elements to events. */
  readonly isArray: boolean
}

/** An event that is held back, and its texts. */
interface HeldFrame {
  readonly frame: string
  readonly texts: readonly HeldText[]
}

/** A tool call, and the text in which its arguments arrive in pieces. */
interface HeldCall {
  readonly call: FoundToolCall
  channel?: HeldBackText
}

/**
 * Holds back the events of a stream until guards' services have checked their texts: either the texts of the
 * whole stream at once, or parts of a certain length (windows), one after the other. Events before the first
 * text are sent at once.
 */
export class CheckingTap extends WrappedTap {
  readonly #stream: StreamToCheck
  readonly #memory: EventMemory
  readonly #frames: FrameSplitter
  readonly #elements: JsonArraySplitter | undefined
  readonly #window: number
  readonly #stop = new AbortController()
  /** Events that were not examined yet, because a check of earlier ones is running. */
  readonly #waiting: string[] = []
  #waitingLength = 0
  #held: HeldFrame[] = []
  /** Size of the events that are held back: their characters, plus `EVENT_BYTES` for each event. */
  #heldBytes = 0
  #heldTexts = 0
  #splitBytes = 0
  #released = ''
  #releasedFrames = 0
  /** Texts that arrive in pieces and may still grow, by their keys. */
  readonly #open = new StreamedTextMap<HeldBackText>()
  readonly #channels: HeldBackText[] = []
  /** Memory of all texts that arrive in pieces, and of all tool calls, in bytes. */
  #channelBytes = 0
  /** Texts that have grown or ended since it was last examined whether enough of them has arrived for a check. */
  readonly #touched = new Set<HeldBackText>()
  /** Texts that arrived in one piece and were not checked yet. */
  #whole: HeldText[] = []
  /** Texts that arrived in one piece, by their place and content. */
  readonly #known = new Map<string, HeldText>()
  /** Tool calls that were not checked yet; `#begun` has those whose arguments have not arrived yet. */
  #calls: HeldCall[] = []
  readonly #begun: HeldCall[] = []
  readonly #knownCalls = new Set<string>()
  /** Addresses of images that services have not checked yet. */
  #images: string[] = []
  /** The last events of the stream with new texts. They are sent after the charge. */
  #last: HeldFrame[] = []
  #checking: Promise<void> | undefined
  #isBlocked = false
  #isTerminal = false
  /** Whether the last texts of the stream were given to the services. */
  #isFinished = false
  #ended: ReturnType<Tap['end']> | undefined
  /**
   * Whether the rest of the stream is sent unchecked, because too much was held back for a check, and the
   * guards allow unchecked text.
   */
  #passes = false
  #final: { readonly given: Buffer; readonly sent: Buffer } | undefined

  constructor(inner: Tap, stream: StreamToCheck, memory: EventMemory) {
    super(inner)
    this.#stream = stream
    this.#memory = memory
    this.#window = stream.checks.window
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, { resize: (bytes) => this.#account(bytes) })
    if (stream.isArray) this.#elements = new JsonArraySplitter()
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  override get checking(): Promise<void> | undefined {
    return this.#checking
  }

  override get holdsText(): boolean {
    return this.#held.length + this.#waiting.length > 0
  }

  override get sentEvents(): number {
    return this.#releasedFrames
  }

  /** Returns the events that were held back and not sent. */
  heldFrames(): readonly string[] {
    return [...this.#held.map(({ frame }) => frame), ...this.#waiting]
  }

  push(chunk: Buffer): TapPushResult {
    if (!this.#isTerminal && chunk.length > 0) {
      const { forward, terminal } = this.inner.push(chunk)
      for (const frame of forward ? this.#split(forward) : []) {
        this.#waiting.push(frame)
        this.#waitingLength += frame.length
      }
      this.#isTerminal = terminal
    }
    this.#advance()
    return { forward: this.#taken(), terminal: this.#isTerminal && !this.#checking }
  }

  end(): ReturnType<Tap['end']> {
    if (this.#ended) return this.#ended
    this.#ended = this.inner.end()
    this.#advance()
    // Events that were released just now are returned by the next `push`.
    if (this.#released !== '')
      this.#checking ??= Promise.resolve().finally(() => (this.#checking = undefined))
    return this.#ended
  }

  override keepAliveFrame(): Buffer | undefined {
    const frame = this.inner.keepAliveFrame()
    return frame || this.#elements ? frame : Buffer.from(COMMENT)
  }

  takeLastTexts(): Buffer {
    const events = this.#last.splice(0).map(({ frame, texts }) => writeHeldEvent(frame, texts))
    return Buffer.from(events.join(''))
  }

  finalBytes(charged: Usage): Buffer {
    return this.#rewritten(this.inner.finalBytes(charged))
  }

  failureFrame(error: ErrorContent): Buffer {
    return Buffer.from(this.#framesOf(this.inner.failureFrame(error)))
  }

  override stopChecking(): void {
    this.#stop.abort()
    if (this.#stream.checks.withholds) this.#drop()
  }

  /** When the stream breaks off: the events held back, if services cannot change the answer. */
  takeUncheckedEvents(): Buffer {
    this.#stop.abort()
    const last = this.#framesOf(this.inner.takeUncheckedEvents?.() ?? Buffer.alloc(0))
    const frames = [this.#released, ...this.heldFrames(), ...this.#last.map(({ frame }) => frame), last]
    this.#drop()
    return Buffer.from(this.#stream.checks.withholds || this.#isBlocked ? '' : frames.join(''))
  }

  override release(): void {
    this.#stop.abort()
    this.#drop()
    this.#frames.takeBuffered()
    super.release()
  }

  protected kept(bytes: Buffer): Buffer {
    return this.#rewritten(bytes)
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  #drop(): void {
    this.#held = []
    this.#waiting.length = 0
    this.#waitingLength = 0
    this.#heldBytes = 0
    this.#heldTexts = 0
    this.#released = ''
    this.#account(0)
  }

  #account(splitBytes = this.#splitBytes): void {
    this.#splitBytes = splitBytes
    const held = COPIES * this.#heldBytes + TEXT_BYTES * this.#heldTexts
    const waiting = EVENT_BYTES * this.#waiting.length + 2 * this.#waitingLength
    this.#memory.resize(splitBytes + held + waiting + this.#channelBytes)
  }

  #taken(): Buffer | undefined {
    if (this.#released === '') return undefined
    const bytes = Buffer.from(this.#released)
    this.#released = ''
    return bytes
  }

  #framesOf(bytes: Buffer): string {
    return this.#elements ? this.#elements.push(bytes).map(eventOfElement).join('') : bytes.toString()
  }

  #split(given: Buffer): string[] {
    const bytes = this.#frames.take(this.#elements ? Buffer.from(this.#framesOf(given)) : given)
    if (!bytes) return []
    const frames: string[] = []
    let at = 0
    for (let end = this.#frames.next(at); end >= 0; end = this.#frames.next(at)) {
      frames.push(bytes.toString('utf8', at, end))
      at = end
    }
    this.#frames.markRead(at)
    return frames
  }

  /**
   * Examines waiting events until a check must run. Events are examined one by one, so that the checked parts
   * of a text do not depend on how the stream is split into chunks.
   */
  #advance(): void {
    let read = 0
    while (!this.#isIdle && read < this.#waiting.length) {
      const frame = this.#waiting[read] ?? ''
      this.#waitingLength -= frame.length
      this.#hold(frame)
      read += 1
      const isTooLarge = this.#heldBytes > MAX_HELD_BYTES
      if (isTooLarge || this.#channels.length + this.#knownCalls.size > MAX_STREAMED_TEXTS) this.#overflow()
      else this.#checkWindows()
    }
    this.#waiting.splice(0, read)
    const hasEnded = (this.#isTerminal && !this.inner.error) || this.#ended?.complete === true
    if (!this.#isIdle && hasEnded && !this.#isFinished) this.#finish()
    this.#account()
  }

  /** Whether no events are examined now, because a check is running, or the stream is blocked or stopped. */
  get #isIdle(): boolean {
    return this.#checking !== undefined || this.#isBlocked || this.#isStopped
  }

  #hold(frame: string): void {
    const scan = scanEventData(frameData(frame) ?? '')
    const texts = scan ? this.#textsOf(scan) : []
    this.#held.push({ frame, texts })
    this.#heldBytes += frame.length + EVENT_BYTES
    this.#heldTexts += texts.length
    this.#releaseDecided()
  }

  // Called when too much is held back, so that the rest of the answer cannot be checked.
  #overflow(): void {
    if (this.#passes) return
    this.#whole = []
    this.#calls = []
    this.#images = []
    this.#passes = this.#stream.checks.failed('the answer is too large to be held')
    if (!this.#passes) {
      this.#isBlocked = true
      return
    }
    for (const { texts } of this.#held) for (const text of texts) text.next ??= text.given
    this.#releaseDecided()
  }

  /** Returns the texts of an event. Ends those texts in pieces that are complete with or before this event. */
  #textsOf(scan: ScannedObject): HeldText[] {
    const { checks } = this.#stream
    const { texts, ends } = eventTexts(scan, this.#stream)
    const { own, last } = streamedTextsOf({ texts, ends })
    for (const [key] of this.#open.endedBy(ends)) if (!own.has(key)) this.#endChannel(key)
    if (!this.#passes) this.#noteCalls(scan)
    return texts.map((text): HeldText => {
      const given = decodeStringAt(scan.bytes, text.from, text.to)
      const held: HeldText = { spot: textPosition(text), given, next: undefined }
      if (this.#passes || given === '' || !checks.concerns(text.place)) held.next = given
      else if (text.channel) this.#add(held, text.channel, last.has(text))
      else if (text.isRepeated)
        held.repeats = this.#channels.find((one) => one.spot.isJson === text.isJson && one.isText(given))
      if (held.next === undefined && !text.channel && !held.repeats) this.#addWhole(held)
      return held
    })
  }

  // Services are asked only once about a text that several events contain, such as a citation.
  #addWhole(held: HeldText): void {
    const key = wholeTextKey(held)
    const same = this.#known.get(key)
    if (same) {
      held.repeats = {
        get decidedText() {
          return same.next
        },
      }
      return
    }
    this.#whole.push(held)
    if (this.#known.size >= MAX_STREAMED_TEXTS) return
    this.#known.set(key, held)
    this.#channelBytes += TEXT_BYTES + 2 * (key.length + held.given.length)
  }

  #add(held: HeldText, channel: StreamedText, isLast: boolean): void {
    const open = this.#channelOf(channel)
    this.#channelBytes -= open.bytes
    open.add(held)
    this.#channelBytes += open.bytes
    this.#touched.add(open)
    if (isLast) this.#endChannel(channel.key)
  }

  #channelOf(channel: StreamedText): HeldBackText {
    let open = this.#open.get(channel.key)
    if (open) return open
    open = new HeldBackText(channel)
    this.#open.set(channel.key, open)
    this.#channels.push(open)
    this.#channelBytes += open.bytes
    const call = channel.place === 'tool_arguments' ? this.#begun.shift() : undefined
    if (call) call.channel = open
    return open
  }

  #endChannel(key: string): void {
    const channel = this.#open.get(key)
    this.#open.delete(key)
    if (!channel) return
    channel.isEnded = true
    this.#touched.add(channel)
  }

  #noteCalls(scan: ScannedObject): void {
    const { calls, images } = findToolCallsAndImages(scan)
    for (const image of images) {
      const key = JSON.stringify(['', image])
      if (this.#knownCalls.has(key)) continue
      this.#knownCalls.add(key)
      this.#channelBytes += CALL_BYTES + 2 * (key.length + image.length)
      this.#images.push(image)
    }
    for (const call of calls) {
      const key = JSON.stringify(call.id === '' ? [this.#knownCalls.size] : [call.id, call.name])
      if (this.#knownCalls.has(key)) continue
      this.#knownCalls.add(key)
      this.#channelBytes += CALL_BYTES + 2 * (key.length + call.arguments.length)
      const held: HeldCall = { call }
      this.#calls.push(held)
      if (isBegun(call)) this.#begun.push(held)
    }
  }

  // Called when the stream has ended. Its last events are sent later, after the charge.
  #finish(): void {
    this.#isFinished = true
    const last = this.inner.takeLastTexts?.() ?? Buffer.alloc(0)
    for (const frame of [...this.#split(last), this.#frames.takeBuffered().toString()]) {
      const scan = scanEventData(frameData(frame) ?? '')
      this.#last.push({ frame, texts: scan ? this.#textsOf(scan) : [] })
    }
    for (const [key] of this.#open.endedBy([''])) this.#endChannel(key)
    this.#check(this.#passes ? [] : this.#channels.filter((channel) => !channel.isDecided))
  }

  #checkWindows(): void {
    if (this.#window === 0 || this.#passes) return
    const due = [...this.#touched].filter((channel) => channel.isDue(this.#window))
    this.#touched.clear()
    if (due.length > 0) this.#check(due)
  }

  #check(channels: readonly HeldBackText[]): void {
    const whole = this.#whole
    this.#whole = []
    const calls = this.#callsFor(channels)
    const images = this.#images
    this.#images = []
    if (channels.length + whole.length + calls.length + images.length === 0) return this.#releaseDecided()
    const texts = [
      ...channels.map((channel): CheckedText => ({ ...channel.spot, text: channel.undecided })),
      ...whole.map(({ spot, given }): CheckedText => ({ ...spot, text: given })),
    ]
    const { checks, guards } = this.#stream
    const answer = { texts, calls, images, side: 'response', signal: this.#stop.signal } as const
    this.#checking = checkedAnswer(checks, guards, answer)
      .then((decided) => {
        if (this.#isStopped) return
        for (const [index, channel] of channels.entries()) {
          this.#channelBytes -= channel.bytes
          channel.decide(decided[index] ?? '', this.#window)
          this.#channelBytes += channel.bytes
        }
        for (const [index, one] of whole.entries()) one.next = decided[channels.length + index] ?? ''
        this.#releaseDecided()
      })
      .catch((error: unknown) => {
        if (error instanceof CheckCancelled || this.#isStopped) return
        // An answer that cannot be checked is not sent.
        this.#isBlocked = true
        if (!(error instanceof GuardBlock)) throw error
      })
      .finally(() => {
        this.#checking = undefined
      })
  }

  /** Removes and returns the tool calls that are checked together with these texts. */
  #callsFor(channels: readonly HeldBackText[]): FoundToolCall[] {
    const now = new Set(channels)
    const isDue = ({ call, channel }: HeldCall): boolean =>
      channel ? now.has(channel) : this.#isFinished || !isBegun(call)
    const due = this.#calls.filter(isDue)
    this.#calls = this.#calls.filter((one) => !isDue(one))
    return due.map(({ call, channel }) => (channel ? { ...call, arguments: channel.text } : call))
  }

  #releaseDecided(): void {
    let count = 0
    for (const { frame, texts } of this.#held) {
      for (const text of texts) text.next ??= text.repeats?.decidedText
      if (texts.some(({ next }) => next === undefined)) break
      this.#released += writeHeldEvent(frame, texts)
      this.#heldBytes -= frame.length + EVENT_BYTES
      this.#heldTexts -= texts.length
      count += 1
    }
    if (count > 0) this.#held.splice(0, count)
    this.#releasedFrames += count
  }

  /**
   * Writes the last events of the stream with the checked texts. Each text was checked before, or repeats one
   * that was.
   */
  #rewritten(given: Buffer): Buffer {
    if (this.#final?.given === given) return this.#final.sent
    let sent = ''
    for (const frame of [...this.#split(given), this.#frames.takeBuffered().toString()]) {
      const scan = scanEventData(frameData(frame) ?? '')
      sent += scan ? writeHeldEvent(frame, this.#lastTextsOf(scan)) : frame
    }
    this.#final = { given, sent: Buffer.from(sent) }
    return this.#final.sent
  }

  #lastTextsOf(scan: ScannedObject): HeldText[] {
    const { checks } = this.#stream
    return eventTexts(scan, this.#stream).texts.map((text): HeldText => {
      const given = decodeStringAt(scan.bytes, text.from, text.to)
      const spot = textPosition(text)
      if (this.#passes || given === '' || !checks.concerns(text.place)) return { spot, given, next: given }
      const judged = this.#known.get(wholeTextKey({ spot, given }))
      return { spot, given, next: judged?.next ?? this.#decidedOf(given) }
    })
  }

  // Returns the checked form of a text of the last events; '' for a text that was never checked.
  #decidedOf(given: string): string {
    if (!this.#stream.checks.withholds) return given
    const repeated = this.#channels.find((channel) => channel.isDecided && channel.isText(given))
    if (repeated) return repeated.decidedText ?? ''
    return this.#channels.some((channel) => channel.decidedText?.includes(given)) ? given : ''
  }
}

/** Whether a tool call has only begun, so that its arguments are still to come. */
function isBegun({ arguments: given }: FoundToolCall): boolean {
  return given === '' || given === '{}'
}
