import {
  changedAnswer,
  type MediaAnswerKind,
  type MediaEventText,
  mediaEventTexts,
  mediaTexts,
  emptiedMediaAnswer,
  type SearchedAnswer,
  searchedAnswer,
  subtitleLines,
  withoutTranscriptParts,
} from '@sluice/wire/guarded-media'
import { decodeStringAt, applyTextChanges } from '@sluice/wire/guarded-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import { frameData, FrameSplitter, MAX_EVENT_BYTES } from '@sluice/wire/sse/frame-splitter'
import type { Call } from '../../call/call.ts'
import type { PassthroughOutput, Passthrough } from '../../call/dialects/passthrough.ts'
import type { ResponseEnding } from '../../call/price-usage.ts'
import { GuardBlock } from './call-guards.ts'
import { scanEventData, frameWithData } from './event-frames.ts'
import { transcriptDeltaEvent } from './guarded-media-events.ts'
import type { ServiceChecks } from './services/service-checks.ts'

const NOTHING = Buffer.alloc(0)

/** A whole answer as it is sent after guards' services have checked it. */
interface ServedBytes {
  readonly bytes: Buffer
  readonly isBlocked: boolean
}

/**
 * An answer that is held back, completely, until guards' services have checked it. A stream of events is held
 * back as well.
 */
export class CheckedPassthrough implements Passthrough {
  readonly hasContent = false
  readonly #inner: Passthrough
  readonly #judge: (bytes: Buffer, signal: AbortSignal) => Promise<Buffer>
  readonly #chunks = new ChunkList()
  #isUnread = false
  #judged: Buffer = NOTHING

  constructor(inner: Passthrough, judge: (bytes: Buffer, signal: AbortSignal) => Promise<Buffer>) {
    this.#inner = inner
    this.#judge = judge
  }

  get hasBegun(): boolean {
    return this.#inner.hasBegun
  }

  get error(): Passthrough['error'] {
    return this.#inner.error
  }

  get held(): number {
    return this.#chunks.length
  }

  push(chunk: Buffer): PassthroughOutput {
    const { forward, isOver } = this.#inner.push(chunk)
    if (forward && !this.#isUnread) this.#chunks.add(forward)
    return { forward: undefined, isOver }
  }

  end(): boolean {
    const isComplete = this.#inner.end()
    if (isComplete && !this.#isUnread) this.#chunks.add(this.#inner.rest())
    return isComplete
  }

  async check(signal: AbortSignal): Promise<void> {
    this.#judged = await this.#judge(this.#chunks.take(), signal)
  }

  clientLeft(): void {
    this.#isUnread = true
    this.#chunks.take()
  }

  rest(): Buffer {
    return this.#judged
  }

  measure(call: Call, isComplete: boolean, ending: ResponseEnding): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(call, isComplete, ending)
  }
}

/** Resolves to the texts as guards' services have changed them; undefined if a service blocks one. */
async function judged(
  texts: readonly string[],
  checks: ServiceChecks,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  try {
    return await checks.check({
      texts: texts.map((text) => ({ text, place: 'output', isSigned: false, isJson: false })),
      calls: [],
      images: [],
      side: 'response',
      signal,
    })
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

/** Has services check an answer in JSON. An answer whose texts cannot be found is blocked. */
export async function checkJsonAnswer(
  bytes: Buffer,
  about: MediaAnswerKind,
  checks: ServiceChecks,
  signal: AbortSignal,
): Promise<ServedBytes> {
  let answer: SearchedAnswer
  try {
    answer = searchedAnswer(bytes, about)
  } catch {
    return { bytes: Buffer.from('{}'), isBlocked: true }
  }
  const { scan } = answer
  const { texts } = mediaTexts(scan, about)
  const given = texts.map(({ from, to }) => decodeStringAt(scan.bytes, from, to))
  const passed = await judged(given, checks, signal)
  if (!passed) return { bytes: emptiedMediaAnswer(scan, about), isBlocked: true }
  const changes = texts.flatMap((span, index) => {
    const next = passed[index] ?? ''
    return next === given[index] ? [] : [{ ...span, text: JSON.stringify(next) }]
  })
  const next = changedAnswer(bytes, answer, changes)
  const isWhole = changes.length === 0 || about !== 'transcript'
  return {
    bytes: isWhole ? next : withoutTranscriptParts(scanObject(next, RESPONSE_LIMITS)),
    isBlocked: false,
  }
}

/** Has services check a transcript that is plain text or subtitles. */
export async function checkTextTranscript(
  bytes: Buffer,
  checks: ServiceChecks,
  signal: AbortSignal,
): Promise<ServedBytes> {
  const { lines, texts } = subtitleLines(bytes.toString())
  const given = texts.map((index) => lines[index] ?? '')
  const passed = await judged(given, checks, signal)
  if (!passed) return { bytes: NOTHING, isBlocked: true }
  if (passed.every((text, at) => text === given[at])) return { bytes, isBlocked: false }
  const result = [...lines]
  for (const [at, index] of texts.entries()) result[index] = passed[at] ?? ''
  return { bytes: Buffer.from(result.join('')), isBlocked: false }
}

/**
 * Has services check a transcript that is a stream of events. If it was changed, the text is sent in a single
 * event.
 */
export async function checkTranscriptEvents(
  bytes: Buffer,
  checks: ServiceChecks,
  signal: AbortSignal,
): Promise<Buffer> {
  const frames = framesOf(bytes)
  const whole = frames.find(({ isLast }) => isLast)?.text
  const said = frames.map(({ span, text }) => (span?.piece === 'text' ? text : '')).join('')
  const given = whole ?? said
  const [passed] = (await judged([given], checks, signal)) ?? []
  if (passed === given && (said === '' || said === given)) return bytes
  // Events with a text that services have not seen or have changed are replaced.
  const text = passed ?? ''
  const last = frames.findLast(({ isLast }) => isLast)
  const done =
    passed === undefined || !last
      ? { type: 'transcript.text.done', text }
      : { ...(JSON.parse(last.scan.bytes.toString()) as object), text }
  const first = text === '' ? '' : transcriptDeltaEvent(text)
  return Buffer.from(`${first}${frameWithData(last?.frame ?? '', JSON.stringify(without(done)))}`)
}

/**
 * The events of a stream of images, with the texts that guards' services let pass; undefined if a service
 * blocks one.
 */
export async function checkPictureEvents(
  bytes: Buffer,
  checks: ServiceChecks,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const frames = framesOf(bytes)
  const passed = await judged(
    frames.map(({ text }) => text),
    checks,
    signal,
  )
  if (!passed) return undefined
  if (frames.every(({ text }, at) => text === passed[at])) return bytes
  const written = frames.map(({ frame, scan, span, text }, at) => {
    const next = passed[at] ?? ''
    if (!span || next === text) return frame
    return frameWithData(
      frame,
      applyTextChanges(scan.bytes, [{ ...span, text: JSON.stringify(next) }]).toString(),
    )
  })
  return Buffer.from(written.join(''))
}

interface Frame {
  readonly frame: string
  readonly scan: ScannedObject
  /** The position of the text in the event; undefined if the event has no text. */
  readonly span: MediaEventText | undefined
  readonly text: string
  readonly isLast: boolean
}

function framesOf(bytes: Buffer): Frame[] {
  const splitter = new FrameSplitter(MAX_EVENT_BYTES)
  const taken = splitter.take(bytes)
  const found: Frame[] = []
  if (!taken) return found
  for (let at = 0; ; ) {
    const end = splitter.next(at)
    if (end < 0) break
    const frame = taken.subarray(at, end).toString()
    at = end
    const data = frameData(frame)
    const scan = data === undefined ? undefined : scanEventData(data)
    if (!scan) continue
    const { texts, isLast } = mediaEventTexts(scan)
    const [span] = texts
    found.push({
      frame,
      scan,
      span,
      text: span ? decodeStringAt(scan.bytes, span.from, span.to) : '',
      isLast,
    })
  }
  return found
}

/** Returns the event without `logprobs`, the list that repeats its text token by token. */
function without(event: object): object {
  return Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'logprobs'))
}
