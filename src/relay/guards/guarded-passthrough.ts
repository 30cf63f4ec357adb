import {
  type MediaAnswerKind,
  mediaTexts,
  emptiedMediaAnswer,
  subtitleLines,
  type TextSpan,
} from '@sluice/wire/guarded-media'
import { type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/guarded-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Call } from '../call.ts'
import type { Tap } from '../dialects/dialect.ts'
import type { PassthroughOutput, PassthroughResponses, Passthrough } from '../dialects/passthrough.ts'
import type { ResponseEnding } from '../price-usage.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import { GuardTurns } from './guard-turns.ts'
import { GuardedMediaEvents } from './guarded-media-events.ts'
import {
  CheckedPassthrough,
  checkTranscriptEvents,
  checkJsonAnswer,
  checkPictureEvents,
  checkTextTranscript,
} from './checked-passthrough.ts'

const OUTPUT = { place: 'output', isSigned: false } as const
const TEXT = { ...OUTPUT, isJson: false } as const
const NOTHING = Buffer.alloc(0)
/** The error that ends a blocked stream of images. */
const BLOCKED = {
  message: 'a guard refused the answer',
  type: 'invalid_request_error',
  code: 'guard_blocked',
} as const

/**
 * Returns the endpoint's responses with a check by guards: of the texts that accompany images, or of a
 * transcript. Responses without texts are returned unchanged.
 */
export function guardedPassthrough(passed: PassthroughResponses, guards: CallGuards): PassthroughResponses {
  const { about } = passed
  if (about === undefined) return passed
  return {
    ...passed,
    begin(contentType) {
      const inner = passed.begin(contentType)
      if (!inner) return undefined
      const { tap } = inner
      const { services } = guards
      const checks = services?.concerns('output') === true ? services : undefined
      if (tap && checks)
        return new CheckedPassthrough(inner, async (bytes, signal) => {
          const events = new GuardedMediaEvents(guards)
          const served =
            about === 'transcript'
              ? await checkTranscriptEvents(bytes, checks, signal)
              : await checkPictureEvents(bytes, checks, signal)
          if (!served) return tap.failureFrame(BLOCKED)
          const sent = Buffer.from(events.push(served) + events.endText())
          return events.isBlocked ? Buffer.concat([sent, refusalEnd(about, tap, events)]) : sent
        })
      if (tap) return new GuardedEvents(inner, tap, about, guards)
      const isJson = about === 'images' || /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
      const check = (bytes: Buffer, signal: AbortSignal): Promise<Buffer> => {
        const turns = new GuardTurns(() => signal.aborted)
        return isJson
          ? checkedJson(scanObject(bytes, RESPONSE_LIMITS), about, guards, turns)
          : checkedText(bytes, guards, turns)
      }
      if (!checks) return new CheckedPassthrough(inner, check, isJson ? isJsonObject : undefined)
      return new CheckedPassthrough(inner, async (bytes, signal) => {
        const served = isJson
          ? await checkJsonAnswer(bytes, about, checks, signal)
          : await checkTextTranscript(bytes, checks, signal)
        return served.isBlocked ? served.bytes : check(served.bytes, signal)
      })
    },
  }
}

function isJsonObject(bytes: Buffer): boolean {
  try {
    scanObject(bytes, RESPONSE_LIMITS)
    return true
  } catch {
    return false
  }
}

/** Checks an answer in JSON. Resolves to the answer to send. Rejects with `CheckCancelled`. */
async function checkedJson(
  scan: ScannedObject,
  about: MediaAnswerKind,
  guards: CallGuards,
  turns: GuardTurns,
): Promise<Buffer> {
  const { bytes } = scan
  const { texts, lists, tokens } = mediaTexts(scan, about)
  const changes: TextChange[] = []
  const change = ({ from, to }: TextSpan, given: string, next: string): void => {
    if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
  }
  try {
    for (const span of texts) {
      const given = decodeStringAt(bytes, span.from, span.to)
      change(span, given, await guards.checkLongAnswerText(given, TEXT, turns))
    }
  } catch (error) {
    if (error instanceof GuardBlock) return emptiedMediaAnswer(scan, about)
    throw error
  }
  for (const list of lists) {
    const given = list.map(({ from, to }) => decodeStringAt(bytes, from, to))
    const next =
      (await guards.repeatParts(given, OUTPUT, turns)) ?? (await checkedParts(given, guards, turns))
    if (!next) return emptiedMediaAnswer(scan, about)
    for (const [index, span] of list.entries()) change(span, given[index] ?? '', next[index] ?? '')
  }
  if (guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
  return applyTextChanges(
    bytes,
    changes.toSorted((a, b) => a.from - b.from),
  )
}

/** Resolves to the parts of a text as guards have changed them; undefined if a guard blocks the text. */
async function checkedParts(
  parts: readonly string[],
  guards: CallGuards,
  turns: GuardTurns,
): Promise<readonly string[] | undefined> {
  try {
    return await guards.checkAnswerParts(parts, OUTPUT, turns)
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

/**
 * Checks a transcript: plain text, or subtitles, whose texts are checked together because a sentence may
 * continue from one to the next.
 */
async function checkedText(bytes: Buffer, guards: CallGuards, turns: GuardTurns): Promise<Buffer> {
  const { lines, texts } = subtitleLines(bytes.toString())
  const parts = texts.map((index) => (lines[index] ?? '').replace(/\r?\n$|\r$/, ''))
  const checked = await checkedParts(parts, guards, turns)
  if (!checked) return NOTHING
  if (checked.every((part, at) => part === parts[at])) return bytes
  const result = [...lines]
  for (const [at, index] of texts.entries())
    result[index] = (checked[at] ?? '') + (lines[index] ?? '').slice(parts[at]?.length)
  return Buffer.from(result.join(''))
}

/** The bytes that end a blocked stream: an error for images, the last event for a transcript. */
function refusalEnd(about: MediaAnswerKind, tap: Tap, { lastEvent }: GuardedMediaEvents): Buffer {
  return about === 'transcript' ? Buffer.from(lastEvent) : tap.failureFrame(BLOCKED)
}

/** Checks a stream of events with images or with a transcript. */
class GuardedEvents implements Passthrough {
  readonly tap: Tap
  readonly #inner: Passthrough
  readonly #about: MediaAnswerKind
  readonly #events: GuardedMediaEvents
  #rest: Buffer = NOTHING

  constructor(inner: Passthrough, tap: Tap, about: MediaAnswerKind, guards: CallGuards) {
    this.#inner = inner
    this.tap = tap
    this.#about = about
    this.#events = new GuardedMediaEvents(guards)
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
    return this.#events.held
  }

  get isBlocked(): boolean {
    return this.#events.isBlocked
  }

  push(chunk: Buffer): PassthroughOutput {
    const { forward, isOver } = this.#inner.push(chunk)
    const sent = forward ? this.#events.push(forward) : ''
    return { forward: sent === '' ? undefined : Buffer.from(sent), isOver }
  }

  end(): boolean {
    const isComplete = this.#inner.end()
    // The last event repeats the texts of earlier events. It is checked now, before the call is charged.
    if (isComplete) this.#rest = Buffer.from(this.#events.push(this.#inner.rest()) + this.#events.endText())
    return isComplete
  }

  rest(): Buffer {
    if (!this.isBlocked) return this.#rest
    return Buffer.concat([this.#rest, refusalEnd(this.#about, this.tap, this.#events)])
  }

  measure(call: Call, isComplete: boolean, ending: ResponseEnding): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(call, isComplete, ending)
  }
}
