import {
  type MediaAnswer,
  mediaEventTexts,
  mediaTexts,
  refusedMedia,
  subtitleLines,
  type TextSpan,
} from '@sluice/wire/guarded-media'
import { type TextChange, textAt, withTexts } from '@sluice/wire/guarded-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import { dataOf, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import type { Call } from '../call.ts'
import type { Tap } from '../dialects/dialect.ts'
import type { PassedBytes, PassedResponses, Passthrough } from '../dialects/passthrough.ts'
import type { ResponseEnding } from '../price-usage.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import { GuardedChannel } from './guarded-channel.ts'
import { scanned, withData } from './event-frames.ts'

const OUTPUT = { place: 'output', isSigned: false } as const
const PIECE = { ...OUTPUT, isJson: false } as const
const NOTHING = Buffer.alloc(0)

/** Answers about pictures and transcripts with their texts checked. Other answers that pass have no texts. */
export function guardedPassed(passed: PassedResponses, guards: CallGuards): PassedResponses {
  const { about } = passed
  if (about === undefined) return passed
  return {
    ...passed,
    begin(contentType) {
      const inner = passed.begin(contentType)
      if (!inner) return undefined
      if (inner.tap) return new GuardedEvents(inner, inner.tap, guards)
      const isJson = about === 'images' || /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
      return new GuardedWhole(inner, (bytes) =>
        isJson ? checkedJson(bytes, about, guards) : checkedText(bytes, guards),
      )
    },
  }
}

/** A whole answer: held until it has been checked, so that nothing of a blocked one is sent. */
class GuardedWhole implements Passthrough {
  readonly error: undefined
  readonly hasContent = false
  readonly #inner: Passthrough
  readonly #check: (bytes: Buffer) => Buffer | undefined
  readonly #chunks = new ChunkList()
  #checked: Buffer = NOTHING

  constructor(inner: Passthrough, check: (bytes: Buffer) => Buffer | undefined) {
    this.#inner = inner
    this.#check = check
  }

  get hasBegun(): boolean {
    return this.#inner.hasBegun
  }

  get held(): number {
    return this.#chunks.length
  }

  push(chunk: Buffer): PassedBytes {
    this.#chunks.add(chunk)
    return { forward: undefined, isOver: this.#inner.push(chunk).isOver }
  }

  end(): boolean {
    if (!this.#inner.end()) return false
    const checked = this.#check(this.#chunks.take())
    this.#checked = checked ?? NOTHING
    return checked !== undefined
  }

  rest(): Buffer {
    return this.#checked
  }

  measure(call: Call, isComplete: boolean, ending: ResponseEnding): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(call, isComplete, ending)
  }
}

/** Undefined if the texts of an answer cannot be found. */
function checkedJson(bytes: Buffer, about: MediaAnswer, guards: CallGuards): Buffer | undefined {
  let scan: ScannedObject
  try {
    scan = scanObject(bytes, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
  const { texts, lists, tokens } = mediaTexts(scan, about)
  const changes: TextChange[] = []
  const change = ({ from, to }: TextSpan, given: string, next: string): void => {
    if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
  }
  try {
    for (const span of texts) {
      const given = textAt(bytes, span.from, span.to)
      change(span, given, guards.checkAnswer(given, OUTPUT))
    }
  } catch (error) {
    if (error instanceof GuardBlock) return refusedMedia(scan, about)
    throw error
  }
  for (const list of lists) {
    const given = list.map(({ from, to }) => textAt(bytes, from, to))
    const next = guards.repeatParts(given, OUTPUT) ?? checkedParts(given, guards)
    if (!next) return refusedMedia(scan, about)
    for (const [index, span] of list.entries()) change(span, given[index] ?? '', next[index] ?? '')
  }
  if (guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
  return withTexts(
    bytes,
    changes.toSorted((a, b) => a.from - b.from),
  )
}

/** The parts of a text; undefined if a guard blocks. */
function checkedParts(parts: readonly string[], guards: CallGuards): readonly string[] | undefined {
  try {
    return guards.checkAnswerParts(parts, OUTPUT)
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

/** A transcript as text: plain, or the texts of subtitles, in which a sentence goes on from cue to cue. */
function checkedText(bytes: Buffer, guards: CallGuards): Buffer {
  const { lines, texts } = subtitleLines(bytes.toString())
  const parts = texts.map((index) => (lines[index] ?? '').replace(/\r?\n$/, ''))
  const checked = checkedParts(parts, guards)
  if (!checked) return NOTHING
  if (checked.every((part, at) => part === parts[at])) return bytes
  const result = [...lines]
  for (const [at, index] of texts.entries())
    result[index] = (checked[at] ?? '') + (lines[index] ?? '').slice(parts[at]?.length)
  return Buffer.from(result.join(''))
}

/** A stream of events of pictures or of a transcript. */
class GuardedEvents implements Passthrough {
  readonly tap: Tap
  readonly #inner: Passthrough
  readonly #guards: CallGuards
  readonly #frames: FrameSplitter
  readonly #channels = new Map<string, GuardedChannel>()
  /** The text that was sent, which the last event of a blocked transcript repeats. */
  #sent = ''
  /** The last event with a segment, from which one with the rest is made. */
  #segment: (TextSpan & { readonly frame: string; readonly scan: ScannedObject }) | undefined
  #heldEvent = 0
  #isBlocked = false
  #rest: Buffer = NOTHING

  constructor(inner: Passthrough, tap: Tap, guards: CallGuards) {
    this.#inner = inner
    this.tap = tap
    this.#guards = guards
    this.#frames = new FrameSplitter(MAX_EVENT_BYTES, { resize: (bytes) => (this.#heldEvent = bytes) })
  }

  get hasBegun(): boolean {
    return this.#inner.hasBegun
  }

  get hasContent(): boolean {
    return this.#inner.hasContent
  }

  get error(): Passthrough['error'] {
    return this.#inner.error
  }

  get held(): number {
    return this.#heldEvent + 2 * this.#sent.length
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  push(chunk: Buffer): PassedBytes {
    const { forward, isOver } = this.#inner.push(chunk)
    const sent = forward && !this.#isBlocked ? this.#guard(forward) : ''
    return { forward: sent === '' ? undefined : Buffer.from(sent), isOver }
  }

  end(): boolean {
    const isComplete = this.#inner.end()
    // What the last event repeats is checked before the call is charged.
    if (isComplete && !this.#isBlocked) {
      const sent = this.#guard(this.#inner.rest())
      const rest = this.#isBlocked ? '' : this.#endText()
      this.#rest = Buffer.from(sent + rest)
    }
    return isComplete
  }

  rest(): Buffer {
    if (!this.#isBlocked) return this.#rest
    const done = { type: 'transcript.text.done', text: this.#sent }
    return Buffer.concat([this.#rest, Buffer.from(`data: ${JSON.stringify(done)}\n\n`)])
  }

  measure(call: Call, isComplete: boolean, ending: ResponseEnding): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(call, isComplete, ending)
  }

  #guard(bytes: Buffer): string {
    const frames = this.#frames.take(bytes)
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

  #guardFrame(frame: string): string {
    const data = dataOf(frame)
    const scan = data === undefined ? undefined : scanned(data)
    if (!scan) return frame
    const { texts, tokens, isLast } = mediaEventTexts(scan)
    const before = isLast ? this.#endText() : ''
    if (this.#isBlocked) return before
    const changes: TextChange[] = []
    for (const { from, to, piece } of texts) {
      const given = textAt(scan.bytes, from, to)
      const next = piece ? this.#channel(piece).push(given) : this.#checkedWhole(given)
      if (piece === 'text') this.#sent += next ?? ''
      if (piece === 'segment') this.#segment = { frame, scan, from, to }
      this.#isBlocked ||= next === undefined || (piece !== undefined && this.#channel(piece).isBlocked)
      if (this.#isBlocked) return before + (piece === 'text' && next ? delta(next) : '')
      if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
    }
    if (this.#guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
    if (changes.length === 0) return before + frame
    const sorted = changes.toSorted((a, b) => a.from - b.from)
    return before + withData(frame, withTexts(scan.bytes, sorted).toString())
  }

  /** A text in one piece: one that repeats the pieces, or the only one. */
  #checkedWhole(text: string): string | undefined {
    if (this.#channels.has('text')) return this.#guards.repeat(text, PIECE)
    try {
      return this.#guards.checkAnswer(text, OUTPUT)
    } catch (error) {
      if (error instanceof GuardBlock) return undefined
      throw error
    }
  }

  #channel(piece: 'text' | 'segment'): GuardedChannel {
    let channel = this.#channels.get(piece)
    if (!channel) {
      const isRepeated = piece === 'segment' && this.#channels.has('text')
      this.#channels.set(piece, (channel = new GuardedChannel(this.#guards, PIECE, isRepeated)))
    }
    return channel
  }

  /** Events with what was held back of the text and of its segments. */
  #endText(): string {
    const rest = this.#endOf('text')
    this.#sent += rest
    const ofSegments = this.#isBlocked ? '' : this.#endOf('segment')
    const sent = rest === '' ? '' : delta(rest)
    if (!this.#segment || ofSegments === '' || this.#isBlocked) return sent
    const { frame, scan, from, to } = this.#segment
    const data = withTexts(scan.bytes, [{ from, to, text: JSON.stringify(ofSegments) }])
    return sent + withData(frame, data.toString())
  }

  #endOf(piece: 'text' | 'segment'): string {
    const channel = this.#channels.get(piece)
    const rest = channel?.end() ?? ''
    if (channel?.isBlocked) this.#isBlocked = true
    return rest
  }
}

function delta(text: string): string {
  return `data: ${JSON.stringify({ type: 'transcript.text.delta', delta: text })}\n\n`
}
