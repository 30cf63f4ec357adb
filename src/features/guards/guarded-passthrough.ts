import {
  changedAnswer,
  isAlwaysJson,
  type MediaAnswerKind,
  mediaTexts,
  emptiedMediaAnswer,
  type SearchedAnswer,
  searchedAnswer,
  subtitleLines,
  type TextSpan,
} from '@sluice/wire/guarded-media'
import { type TextChange, decodeStringAt } from '@sluice/wire/guarded-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { Call } from '../../call/call.ts'
import type { Tap } from '../../call/dialects/dialect.ts'
import type { PassthroughOutput, PassthroughResponses, Passthrough } from '../../call/dialects/passthrough.ts'
import type { ResponseEnding } from '../../call/price-usage.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import type { CheckTurns } from '../../call/check-turns.ts'
import { GuardedMediaEvents } from './guarded-media-events.ts'
import {
  CheckedPassthrough,
  checkTranscriptEvents,
  checkJsonAnswer,
  checkPictureEvents,
  checkTextTranscript,
} from './checked-passthrough.ts'

const OUTPUT = { place: 'output', isSigned: false, isJson: false } as const
const NOTHING = Buffer.alloc(0)
/** The error that ends a blocked stream of images. */
const BLOCKED = {
  message: 'a guard refused the answer',
  type: 'invalid_request_error',
  code: 'guard_blocked',
} as const

/**
 * Returns the endpoint's responses with a check by guards: of the texts that accompany images or vectors, or of a
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
          const served =
            about === 'transcript'
              ? await checkTranscriptEvents(bytes, checks, signal)
              : await checkPictureEvents(bytes, checks, signal)
          if (!served) return tap.failureFrame(BLOCKED)
          const turns = guards.turnsUntil(() => signal.aborted)
          const events = new GuardedMediaEvents(guards, turns)
          const sent = Buffer.from((await turns.run(events.push(served))) + events.endText())
          return events.isBlocked ? Buffer.concat([sent, refusalEnd(about, tap, events)]) : sent
        })
      if (tap) return new GuardedEvents(inner, tap, about, guards)
      const isJson = isAlwaysJson(about) || /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
      const beginCheck = (bytes: Buffer): WholeCheck | undefined =>
        isJson ? checkOfJson(bytes, about, guards) : (turns) => checkedText(bytes, guards, turns)
      if (!checks) return new GuardedWhole(inner, guards, beginCheck)
      return new CheckedPassthrough(inner, async (bytes, signal) => {
        const served = isJson
          ? await checkJsonAnswer(bytes, about, checks, signal)
          : await checkTextTranscript(bytes, checks, signal)
        const check = served.isBlocked ? undefined : beginCheck(served.bytes)
        return check ? check(guards.turnsUntil(() => signal.aborted)) : served.bytes
      })
    },
  }
}

/** Checks a whole answer in turns with other work; resolves to the answer to send. */
type WholeCheck = (turns: CheckTurns) => Promise<Buffer>

/**
 * An answer that is not a stream. It is held back until it has been checked, so that nothing of a blocked
 * answer is sent.
 */
class GuardedWhole implements Passthrough {
  readonly hasContent = false
  readonly #inner: Passthrough
  readonly #guards: CallGuards
  readonly #beginCheck: (bytes: Buffer) => WholeCheck | undefined
  readonly #chunks = new ChunkList()
  #isUnread = false
  #check: WholeCheck | undefined
  #checked: Buffer = NOTHING

  constructor(inner: Passthrough, guards: CallGuards, beginCheck: (bytes: Buffer) => WholeCheck | undefined) {
    this.#inner = inner
    this.#guards = guards
    this.#beginCheck = beginCheck
  }

  get error(): Passthrough['error'] {
    return this.#inner.error
  }

  get hasBegun(): boolean {
    return this.#inner.hasBegun
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
    if (!this.#inner.end()) return false
    if (this.#isUnread) return true
    this.#chunks.add(this.#inner.rest())
    this.#check = this.#beginCheck(this.#chunks.take())
    return this.#check !== undefined
  }

  async check(signal: AbortSignal): Promise<void> {
    this.#checked = (await this.#check?.(this.#guards.turnsUntil(() => signal.aborted))) ?? NOTHING
  }

  clientLeft(): void {
    this.#isUnread = true
    this.#chunks.take()
  }

  rest(): Buffer {
    return this.#checked
  }

  measure(call: Call, isComplete: boolean, ending: ResponseEnding): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(call, isComplete, ending)
  }
}

/** The check of an answer in JSON. Undefined if the bytes are not a JSON object, so that its texts cannot be found. */
function checkOfJson(bytes: Buffer, about: MediaAnswerKind, guards: CallGuards): WholeCheck | undefined {
  let answer: SearchedAnswer
  try {
    answer = searchedAnswer(bytes, about)
  } catch {
    return undefined
  }
  return async (turns) => {
    const changed = await unlessBlocked(changesOf(answer.scan, about, guards, turns))
    return changed ? changedAnswer(bytes, answer, changed) : emptiedMediaAnswer(answer.scan, about)
  }
}

/** What guards change in an answer in JSON. Rejects with `GuardBlock`. */
async function changesOf(
  scan: ScannedObject,
  about: MediaAnswerKind,
  guards: CallGuards,
  turns: CheckTurns,
): Promise<TextChange[]> {
  const { texts, lists, tokens } = mediaTexts(scan, about)
  const changes: TextChange[] = []
  const decode = ({ from, to }: TextSpan): string => decodeStringAt(scan.bytes, from, to)
  const change = ({ from, to }: TextSpan, given: string, next: string): void => {
    if (next !== given) changes.push({ from, to, text: JSON.stringify(next) })
  }
  for (const span of texts) {
    const given = decode(span)
    change(span, given, await guards.checkLongAnswerText(given, OUTPUT, turns))
  }
  for (const list of lists) {
    const given = list.map(decode)
    const next = await guards.checkAnswerParts(given, OUTPUT, turns, true)
    for (const [index, span] of list.entries()) change(span, given[index] ?? '', next[index] ?? '')
  }
  if (guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
  return changes
}

/** Resolves to undefined if a guard blocks the answer. */
async function unlessBlocked<Result>(checking: Promise<Result>): Promise<Result | undefined> {
  try {
    return await checking
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

/**
 * Checks a transcript: plain text, or subtitles, whose texts are checked together because a sentence may
 * continue from one to the next.
 */
async function checkedText(bytes: Buffer, guards: CallGuards, turns: CheckTurns): Promise<Buffer> {
  const { lines, texts } = subtitleLines(bytes.toString())
  const parts = texts.map((index) => (lines[index] ?? '').replace(/\r?\n$|\r$/, ''))
  const checked = await unlessBlocked(guards.checkAnswerParts(parts, OUTPUT, turns))
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
  readonly checks: CheckTurns
  readonly #events: GuardedMediaEvents
  /** The check of what has arrived, if it goes on. */
  #steps: Generator<undefined, string> | undefined
  #isOver = false
  #isUnread = false
  #rest: Buffer = NOTHING

  constructor(inner: Passthrough, tap: Tap, about: MediaAnswerKind, guards: CallGuards) {
    this.#inner = inner
    this.tap = tap
    this.#about = about
    this.checks = guards.turnsUntil(() => this.#isUnread)
    this.#events = new GuardedMediaEvents(guards, this.checks)
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
    return this.#isUnread ? 0 : this.#events.held
  }

  get isBlocked(): boolean {
    return this.#events.isBlocked
  }

  push(chunk: Buffer): PassthroughOutput {
    if (!this.#steps) {
      const { forward, isOver } = this.#inner.push(chunk)
      this.#isOver = isOver
      if (!forward) return { forward, isOver }
      this.#steps = this.#events.push(forward)
    }
    const step = this.#isUnread ? { done: true, value: '' } : this.#steps.next()
    if (!step.done) return { forward: undefined, isOver: false, isUnfinished: true }
    this.#steps = undefined
    return { forward: step.value ? Buffer.from(step.value) : undefined, isOver: this.#isOver }
  }

  end(): boolean {
    return this.#inner.end()
  }

  // The last event repeats the texts of earlier events. It is checked before the call is charged.
  async check(): Promise<void> {
    const last = await this.checks.run(this.#events.push(this.#inner.rest()))
    this.#rest = Buffer.from(last + this.#events.endText())
  }

  clientLeft(): void {
    this.#isUnread = true
  }

  rest(): Buffer {
    if (!this.isBlocked) return this.#rest
    return Buffer.concat([this.#rest, refusalEnd(this.#about, this.tap, this.#events)])
  }

  measure(call: Call, isComplete: boolean, ending: ResponseEnding): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(call, isComplete, ending)
  }
}
