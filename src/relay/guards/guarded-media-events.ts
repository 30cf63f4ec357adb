import { mediaEventTexts, type TextSpan } from '@sluice/wire/guarded-media'
import { type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/guarded-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { frameData, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import { checkableFramePart, isTerminator, scanEventData, frameWithData } from './event-frames.ts'
import { GuardedStreamedText } from './guarded-streamed-text.ts'

const OUTPUT = { place: 'output', isSigned: false } as const
const PIECE = { ...OUTPUT, isJson: false } as const

/** Checks the texts in a stream of events of images or of a transcript. */
export class GuardedMediaEvents {
  readonly #guards: CallGuards
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

  constructor(guards: CallGuards) {
    this.#guards = guards
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

  /** Adds bytes of events; returns the events that may be sent now. */
  push(bytes: Buffer): string {
    const frames = this.#isBlocked ? undefined : this.#frames.take(bytes)
    if (!frames) return ''
    let sent = ''
    let at = 0
    for (;;) {
      const end = this.#frames.next(at)
      if (end < 0 || this.#isBlocked) break
      sent += this.#guardFrame(frames.subarray(at, end).toString())
      at = end
    }
    this.#frames.markRead(at)
    return sent
  }

  #guardFrame(given: string): string {
    const frame = this.#guards.withholds ? checkableFramePart(given) : given
    const data = frameData(frame)
    const scan = data === undefined ? undefined : scanEventData(data)
    if (!scan && this.#guards.withholds && !isTerminator(data)) return ''
    if (!scan) return frame
    const { texts, others, tokens, isLast } = mediaEventTexts(scan)
    const before = isLast ? this.endText() : ''
    if (this.#isBlocked) return before
    const changes: TextChange[] = []
    for (const { from, to, piece } of texts) {
      const given = decodeStringAt(scan.bytes, from, to)
      const next = piece ? this.#channel(piece).push(given) : this.#checkedWhole(given)
      if (piece === 'text') this.#sent += next ?? ''
      if (piece === 'segment') this.#segment = { frame, scan, from, to }
      this.#isBlocked ||= next === undefined || (piece !== undefined && this.#channel(piece).isBlocked)
      if (this.#isBlocked) return before + (piece === 'text' && next ? transcriptDeltaEvent(next) : '')
      if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
    }
    for (const { from, to } of others) {
      const given = decodeStringAt(scan.bytes, from, to)
      const next = this.#checkedOther(given)
      this.#isBlocked ||= next === undefined
      if (this.#isBlocked) return before
      if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
    }
    if (this.#guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
    if (changes.length === 0) return before + frame
    const sorted = changes.toSorted((a, b) => a.from - b.from)
    return before + frameWithData(frame, applyTextChanges(scan.bytes, sorted).toString())
  }

  /**
   * Checks a text that arrived in one piece: the repetition of a text that arrived in pieces, or the only
   * text. Returns undefined if it is blocked.
   */
  #checkedWhole(text: string): string | undefined {
    return this.#channels.has('text') ? this.#guards.repeat(text, PIECE) : this.#checkedOther(text)
  }

  /** Checks a text that stands by itself. Returns undefined if it is blocked. */
  #checkedOther(text: string): string | undefined {
    try {
      return this.#guards.checkAnswer(text, OUTPUT)
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
