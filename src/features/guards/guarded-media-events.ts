import { mediaEventTexts, type TextSpan } from '@sluice/wire/media-texts'
import { type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/found-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { frameData, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import { checkableFramePart, isTerminator, scanEventData, frameWithData } from './event-frames.ts'
import type { CheckTurns } from '../../call/check-turns.ts'
import { GuardedStreamedText } from './guarded-streamed-text.ts'

const PIECE = { place: 'output', isSigned: false, isJson: false } as const

/** Checks the texts in a stream of events of images or of a transcript. */
export class GuardedMediaEvents {
  readonly #guards: CallGuards
  readonly #turns: CheckTurns
  readonly #frames: FrameSplitter
  readonly #channels = new Map<string, GuardedStreamedText>()
  /** The text that was sent so far. The last event of a blocked transcript repeats it. */
  #sent = ''
  /**
   * The last event with a segment of the transcript. The event with the rest of the segment that was held
   * back is made from it.
   */
  #segment: (TextSpan & { readonly frame: string; readonly scan: ScannedObject }) | undefined
  #heldEvent = 0
  #isBlocked = false

  /** @param turns Tells how many characters are checked in a step. */
  constructor(guards: CallGuards, turns: CheckTurns) {
    this.#guards = guards
    this.#turns = turns
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, { resize: (bytes) => (this.#heldEvent = bytes) })
  }

  /** Bytes of the stream that are held in memory. */
  get held(): number {
    return this.#heldEvent + 2 * this.#sent.length
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  /** The event that ends a blocked transcript. */
  get lastEvent(): string {
    return `data: ${JSON.stringify({ type: 'transcript.text.done', text: this.#sent })}\n\n`
  }

  /** Adds bytes of events, and checks them step by step. Returns the events that may be sent now. */
  *push(bytes: Buffer): Generator<undefined, string> {
    const frames = this.#isBlocked ? undefined : this.#frames.take(bytes)
    if (!frames) return ''
    let sent = ''
    let at = 0
    for (;;) {
      const end = this.#frames.next(at)
      if (end < 0 || this.#isBlocked) break
      if (at > 0) yield undefined
      sent += yield* this.#guardFrame(frames.subarray(at, end).toString())
      at = end
    }
    this.#frames.markRead(at)
    return sent
  }

  *#guardFrame(given: string): Generator<undefined, string> {
    const frame = this.#guards.withholds ? checkableFramePart(given) : given
    const data = frameData(frame)
    const scan = data === undefined ? undefined : scanEventData(data)
    if (!scan && this.#guards.withholds && !isTerminator(data)) return ''
    if (!scan) return frame
    const { texts, others, tokens, isLast } = mediaEventTexts(scan)
    const before = isLast ? this.endText() : ''
    if (this.#isBlocked) return before
    const changes: TextChange[] = []
    // The others first: if one is blocked, the text of its event is not sent.
    for (const { from, to } of others) {
      const given = decodeStringAt(scan.bytes, from, to)
      const next = yield* this.#checkedOther(given)
      this.#isBlocked ||= next === undefined
      if (this.#isBlocked) return before
      if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
    }
    for (const { from, to, piece } of texts) {
      const given = decodeStringAt(scan.bytes, from, to)
      const next = yield* piece ? this.#checkedPiece(given, this.#channel(piece)) : this.#checkedWhole(given)
      if (piece === 'text') this.#sent += next ?? ''
      if (piece === 'segment') this.#segment = { frame, scan, from, to }
      this.#isBlocked ||= next === undefined || (piece !== undefined && this.#channel(piece).isBlocked)
      if (this.#isBlocked) return before + (piece === 'text' && next ? transcriptDeltaEvent(next) : '')
      if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
    }
    if (this.#guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
    if (changes.length === 0) return before + frame
    const sorted = changes.toSorted((a, b) => a.from - b.from)
    return before + frameWithData(frame, applyTextChanges(scan.bytes, sorted).toString())
  }

  /** Checks a piece of a text, up to where it is blocked. */
  *#checkedPiece(text: string, channel: GuardedStreamedText): Generator<undefined, string> {
    let sent = ''
    for (let at = 0; ; yield undefined) {
      const to = at + this.#turns.length
      sent += channel.push(text.slice(at, to))
      if (to >= text.length || channel.isBlocked) return sent
      at = to
    }
  }

  /**
   * Checks a text that arrived in one piece: the repetition of a text that arrived in pieces, or the only
   * text. Returns undefined if it is blocked.
   */
  #checkedWhole(text: string): Generator<undefined, string | undefined> {
    return this.#checkedOther(text, this.#channels.has('text'))
  }

  /** Checks a text that stands by itself. Returns undefined if it is blocked. */
  *#checkedOther(text: string, isRepeated = false): Generator<undefined, string | undefined> {
    const step = this.#guards.answerSteps(text, PIECE, isRepeated)
    if (!step) return this.#guards.restored(text, PIECE)
    try {
      let checked = ''
      for (let at = 0; ; yield undefined) {
        at = Math.min(at + this.#turns.length, text.length)
        checked += step(at)
        if (at === text.length) return this.#guards.restored(checked, PIECE)
      }
    } catch (error) {
      if (error instanceof GuardBlock) return undefined
      throw error
    }
  }

  #channel(piece: 'text' | 'segment'): GuardedStreamedText {
    let channel = this.#channels.get(piece)
    if (!channel) {
      const isRepeated = piece === 'segment' && this.#channels.has('text')
      this.#channels.set(piece, (channel = new GuardedStreamedText(this.#guards, PIECE, isRepeated)))
    }
    return channel
  }

  /** Ends all texts; returns events with the parts of them that were held back. */
  endText(): string {
    if (this.#isBlocked) return ''
    const rest = this.#endOf('text')
    this.#sent += rest
    const ofSegments = this.#isBlocked ? '' : this.#endOf('segment')
    const sent = rest === '' ? '' : transcriptDeltaEvent(rest)
    if (!this.#segment || ofSegments === '' || this.#isBlocked) return sent
    const { frame, scan, from, to } = this.#segment
    const data = applyTextChanges(scan.bytes, [{ from, to, text: JSON.stringify(ofSegments) }])
    return sent + frameWithData(frame, data.toString())
  }

  #endOf(piece: 'text' | 'segment'): string {
    const channel = this.#channels.get(piece)
    const rest = channel?.end() ?? ''
    if (channel?.isBlocked) this.#isBlocked = true
    return rest
  }
}

/** Writes an event with a piece of a transcript. */
export function transcriptDeltaEvent(text: string): string {
  return `data: ${JSON.stringify({ type: 'transcript.text.delta', delta: text })}\n\n`
}
