import { findToolCallsAndImages, type FoundToolCall } from '@sluice/wire/tool-calls-and-images'
import type { EventText, StreamedText } from '@sluice/wire/event-texts'
import { decodeStringAt } from '@sluice/wire/found-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { CheckCancelled } from '../../call/check-turns.ts'
import type { CallGuards } from './call-guards.ts'
import { GuardBlock } from './active-guard.ts'
import { HeldBackText, type HeldText, textSpot, wholeTextKey } from './held-back-text.ts'
import { checkedAnswer } from './services/checked-answer.ts'
import type { CheckedText, ServiceChecks } from './services/service-checks.ts'
import type { ReadEvent, StreamEvent } from './stream-event.ts'
import { MAX_STREAMED_TEXTS, StreamedTextMap } from './streamed-text-map.ts'

/** Maximum bytes of a stream's events that are held back. */
const MAX_HELD_BYTES = 64 * 1024 * 1024
/** Bytes of memory for each character of an event that is held back. */
const COPIES = 4
/** Additional memory in bytes: of an event that is held back, of a text in it, and of a tool call. */
export const EVENT_BYTES = 256
const TEXT_BYTES = 256
const CALL_BYTES = 512

/** An event that is held back, and its texts. */
interface HeldEvent {
  readonly event: StreamEvent
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
 * text go on at once.
 */
export class HeldEvents {
  /** Set while services check a part of the stream. Rejects only because of a bug. */
  checking: Promise<void> | undefined
  /** Whether a service has ended the stream. */
  isBlocked = false
  /** Whether the last texts of the stream were given to the services. */
  isFinished = false
  /** Number of events that have gone on. */
  passed = 0
  readonly #checks: ServiceChecks
  /** The guards that need no service. They check the texts that services let pass. */
  readonly #guards: CallGuards
  readonly #window: number
  readonly #stop = new AbortController()
  #held: HeldEvent[] = []
  /** Size of the events that are held back: their characters, plus `EVENT_BYTES` for each event. */
  #heldBytes = 0
  #heldTexts = 0
  /** Events that may go on, with the texts that services have left. */
  #released: StreamEvent[] = []
  #releasedAt = 0
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
  #last: HeldEvent[] = []
  /**
   * Whether the rest of the stream is sent unchecked, because too much was held back for a check, and the
   * guards allow unchecked text.
   */
  #passes = false

  constructor(checks: ServiceChecks, guards: CallGuards) {
    this.#checks = checks
    this.#guards = guards
    this.#window = checks.window
  }

  /** Whether no events can be examined now, because a check is running, or the stream is blocked or stopped. */
  get isIdle(): boolean {
    return this.checking !== undefined || this.isBlocked || this.#isStopped
  }

  get isEmpty(): boolean {
    return this.#held.length === 0
  }

  /** Whether texts that were not checked must not be sent. */
  get withholds(): boolean {
    return this.#checks.withholds
  }

  /** The memory that is held, in bytes. */
  get bytes(): number {
    return COPIES * this.#heldBytes + TEXT_BYTES * this.#heldTexts + this.#channelBytes
  }

  /**
   * Examines an event. Events are examined one by one, so that the checked parts of a text do not depend on how the
   * stream is split into chunks.
   */
  hold(event: StreamEvent): void {
    const { read } = event
    const texts = read ? this.#textsOf(read) : []
    this.#held.push({ event, texts })
    this.#heldBytes += event.frame.length + EVENT_BYTES
    this.#heldTexts += texts.length
    this.#releaseDecided()
    if (this.#held.length > 0) event.forget()
    const isTooLarge = this.#heldBytes > MAX_HELD_BYTES
    if (isTooLarge || this.#channels.length + this.#knownCalls.size > MAX_STREAMED_TEXTS) this.#overflow()
    else this.#checkWindows()
  }

  /** Removes and returns the next event that may go on. */
  next(): StreamEvent | undefined {
    const event = this.#released[this.#releasedAt]
    if (event) this.#releasedAt += 1
    else this.#clearReleased()
    return event
  }

  /** Has the rest of a stream checked that has ended. Its last events are sent later, after the charge. */
  finish(last: readonly StreamEvent[]): void {
    this.isFinished = true
    for (const event of last) this.#last.push({ event, texts: event.read ? this.#textsOf(event.read) : [] })
    for (const [key] of this.#open.endedBy([''])) this.#endChannel(key)
    this.#check(this.#passes ? [] : this.#channels.filter((channel) => !channel.isDecided))
  }

  /** Removes and returns the last events of the stream, once they are checked. */
  takeLast(): StreamEvent[] {
    return this.#last.splice(0).map(({ event, texts }) => decided(event, texts))
  }

  /** Gives an event that was written after the end the texts of the stream. Each was checked, or repeats one that was. */
  decide(event: StreamEvent): StreamEvent {
    const { read } = event
    if (!read) return event
    event.texts = read.texts.map((text) => {
      const given = decodeStringAt(read.scan.bytes, text.from, text.to)
      if (this.#passes || given === '' || !this.#checks.concerns(text.place)) return given
      const judged = this.#known.get(wholeTextKey({ spot: textSpot(text), given }))
      return judged?.next ?? this.#decidedOf(given)
    })
    return event
  }

  /** Cancels running checks, because nothing more of the stream is sent. */
  stop(): void {
    this.#stop.abort()
  }

  /** Removes and returns all events that have not gone on, as they arrived. */
  takeHeld(): StreamEvent[] {
    const events = [...this.#held, ...this.#last].map(({ event }) => event)
    const released = this.#released.slice(this.#releasedAt)
    this.drop()
    return [...released, ...events]
  }

  drop(): void {
    this.#held = []
    this.#heldBytes = 0
    this.#heldTexts = 0
    this.#clearReleased()
    this.#last = []
  }

  #clearReleased(): void {
    this.#released = []
    this.#releasedAt = 0
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  // Called when too much is held back, so that the rest of the answer cannot be checked.
  #overflow(): void {
    if (this.#passes) return
    this.#whole = []
    this.#calls = []
    this.#images = []
    this.#passes = this.#checks.failed('the answer is too large to be held')
    if (!this.#passes) {
      this.isBlocked = true
      return
    }
    for (const { texts } of this.#held) for (const text of texts) text.next ??= text.given
    this.#releaseDecided()
  }

  /** Returns the texts of an event. Ends those texts in pieces that are complete with or before this event. */
  #textsOf({ scan, texts, ends, own, last }: ReadEvent): HeldText[] {
    for (const [key] of this.#open.endedBy(ends)) if (!own.has(key)) this.#endChannel(key)
    if (!this.#passes) this.#noteCalls(scan)
    return texts.map((text) => this.#heldText(scan, text, last.has(text)))
  }

  #heldText(scan: ScannedObject, text: EventText, isLast: boolean): HeldText {
    const given = decodeStringAt(scan.bytes, text.from, text.to)
    const held: HeldText = { spot: textSpot(text), given, next: undefined }
    if (this.#passes || given === '' || !this.#checks.concerns(text.place)) held.next = given
    else if (text.channel) this.#add(held, text.channel, isLast)
    else if (text.isRepeated)
      held.repeats = this.#channels.find((one) => one.spot.isJson === text.isJson && one.isText(given))
    if (held.next === undefined && !text.channel && !held.repeats) this.#addWhole(held)
    return held
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
    const answer = { texts, calls, images, side: 'response', signal: this.#stop.signal } as const
    this.checking = checkedAnswer(this.#checks, this.#guards, answer)
      .then((judged) => {
        if (this.#isStopped) return
        for (const [index, channel] of channels.entries()) {
          this.#channelBytes -= channel.bytes
          channel.decide(judged[index] ?? '', this.#window)
          this.#channelBytes += channel.bytes
        }
        for (const [index, one] of whole.entries()) one.next = judged[channels.length + index] ?? ''
        this.#releaseDecided()
      })
      .catch((error: unknown) => {
        if (error instanceof CheckCancelled || this.#isStopped) return
        // An answer that cannot be checked is not sent.
        this.isBlocked = true
        if (!(error instanceof GuardBlock)) throw error
      })
      .finally(() => {
        this.checking = undefined
      })
  }

  /** Removes and returns the tool calls that are checked together with these texts. */
  #callsFor(channels: readonly HeldBackText[]): FoundToolCall[] {
    const now = new Set(channels)
    const isDue = ({ call, channel }: HeldCall): boolean =>
      channel ? now.has(channel) : this.isFinished || !isBegun(call)
    const due = this.#calls.filter(isDue)
    this.#calls = this.#calls.filter((one) => !isDue(one))
    return due.map(({ call, channel }) => (channel ? { ...call, arguments: channel.text } : call))
  }

  #releaseDecided(): void {
    let count = 0
    for (const { event, texts } of this.#held) {
      for (const text of texts) text.next ??= text.repeats?.decidedText
      if (texts.some(({ next }) => next === undefined)) break
      this.#released.push(decided(event, texts))
      this.#heldBytes -= event.frame.length + EVENT_BYTES
      this.#heldTexts -= texts.length
      count += 1
    }
    if (count > 0) this.#held.splice(0, count)
    this.passed += count
  }

  // Returns the checked form of a text of the last events; '' for a text that was never checked.
  #decidedOf(given: string): string {
    if (!this.#checks.withholds) return given
    const repeated = this.#channels.find((channel) => channel.isDecided && channel.isText(given))
    if (repeated) return repeated.decidedText ?? ''
    return this.#channels.some((channel) => channel.decidedText?.includes(given)) ? given : ''
  }
}

/** An event with the texts as services have decided about them, and without those that are undecided. */
function decided(event: StreamEvent, texts: readonly HeldText[]): StreamEvent {
  for (const text of texts) text.next ??= text.repeats?.decidedText
  if (texts.some(({ next, given }) => next !== given)) event.texts = texts.map(({ next = '' }) => next)
  return event
}

/** Whether a tool call has only begun, so that its arguments are still to come. */
function isBegun({ arguments: given }: FoundToolCall): boolean {
  return given === '' || given === '{}'
}
