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
  withoutTranscriptParts,
} from '@sluice/wire/media-texts'
import { type TextChange, decodeStringAt } from '@sluice/wire/found-texts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { CheckTurns } from '../../call/check-turns.ts'
import type { Tap } from '../../call/dialects/answer-reader.ts'
import type { PassthroughOutput, PassthroughResponses, Passthrough } from '../../call/dialects/passthrough.ts'
import {
  type AnswerCheck,
  answerCheck,
  outputText,
  screenedTexts,
  servedTexts,
  unlessBlocked,
} from './answer-check.ts'
import type { CallGuards } from './call-guards.ts'
import { GuardedMediaEvents } from './guarded-media-events.ts'

const OUTPUT = { place: 'output', isSigned: false, isJson: false } as const
const NOTHING = Buffer.alloc(0)

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
      if (tap && guards.services?.concerns('output') !== true)
        return new GuardedEvents(inner, tap, about, guards)
      return new HeldAnswer(inner, checkOf(about, contentType, guards, tap !== undefined))
    },
  }
}

/** Only images and transcripts are streamed. */
function kindOf(about: MediaAnswerKind): 'images' | 'transcript' {
  return about === 'transcript' ? about : 'images'
}

/** Checks a whole answer in turns with other work; resolves to the answer to send. */
type WholeCheck = (signal: AbortSignal) => Promise<Buffer>

/** Returns the check of an answer; undefined if its texts cannot be found. */
type CheckBeginner = (bytes: Buffer) => WholeCheck | undefined

function checkOf(
  about: MediaAnswerKind,
  contentType: string,
  guards: CallGuards,
  isStream: boolean,
): CheckBeginner {
  if (isStream)
    return (bytes) => (signal) => {
      const check = answerCheck(guards, signal)
      return new GuardedMediaEvents(guards, kindOf(about), check.turns).whole(bytes, check)
    }
  const isJson = isAlwaysJson(about) || /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
  if (isJson) return (bytes) => checkOfJson(bytes, about, guards)
  return (bytes) => (signal) => checkedText(bytes, answerCheck(guards, signal))
}

/** An answer that is held back until it has been checked, so that nothing of a blocked answer is sent. */
class HeldAnswer implements Passthrough {
  readonly hasContent = false
  readonly #inner: Passthrough
  readonly #beginCheck: CheckBeginner
  readonly #chunks = new ChunkList()
  #isUnread = false
  #check: WholeCheck | undefined
  #checked: Buffer = NOTHING

  constructor(inner: Passthrough, beginCheck: CheckBeginner) {
    this.#inner = inner
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
    this.#checked = (await this.#check?.(signal)) ?? NOTHING
  }

  clientLeft(): void {
    this.#isUnread = true
    this.#chunks.take()
  }

  rest(): Buffer {
    return this.#checked
  }

  measure(...how: Parameters<Passthrough['measure']>): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(...how)
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
  return async (signal) => {
    const changes = await unlessBlocked(changesOf(answer.scan, about, answerCheck(guards, signal)))
    return changes ? changedAnswer(bytes, answer, changes) : emptiedMediaAnswer(answer.scan, about)
  }
}

/** What guards change in an answer in JSON. Rejects with `GuardBlock`. */
async function changesOf(
  scan: ScannedObject,
  about: MediaAnswerKind,
  check: AnswerCheck,
): Promise<readonly TextChange[]> {
  const { texts, lists, tokens } = mediaTexts(scan, about)
  const decode = ({ from, to }: TextSpan): string => decodeStringAt(scan.bytes, from, to)
  const given = texts.map((span) => outputText(decode(span)))
  const served = await servedTexts(check, given)
  const screened = await screenedTexts(check, given, served)
  const changes: TextChange[] = []
  const change = ({ from, to }: TextSpan, before: string, next: string): void => {
    if (next !== before) changes.push({ from, to, text: JSON.stringify(next) })
  }
  for (const [index, span] of texts.entries()) change(span, given[index]?.text ?? '', screened[index] ?? '')
  // Services have not seen the parts of the text that they have changed.
  if (about === 'transcript' && served.some((text, index) => text !== given[index]?.text))
    return withoutTranscriptParts(scan, changes)
  const { guards, turns } = check
  for (const list of lists) {
    const parts = list.map(decode)
    const next = await guards.checkAnswerParts(parts, OUTPUT, turns, true)
    for (const [index, span] of list.entries()) change(span, parts[index] ?? '', next[index] ?? '')
  }
  if (guards.changesAnswer) for (const [from, to, text] of tokens) changes.push({ from, to, text })
  return changes
}

/**
 * Checks a transcript: plain text, or subtitles, whose texts are checked together because a sentence may
 * continue from one to the next.
 */
async function checkedText(bytes: Buffer, check: AnswerCheck): Promise<Buffer> {
  const { lines, texts } = subtitleLines(bytes.toString())
  const parts = texts.map((index) => (lines[index] ?? '').replace(/\r?\n$|\r$/, ''))
  const checked = await unlessBlocked(checkedParts(parts, check))
  if (!checked) return NOTHING
  if (checked.every((part, at) => part === parts[at])) return bytes
  const result = [...lines]
  for (const [at, index] of texts.entries())
    result[index] = (checked[at] ?? '') + (lines[index] ?? '').slice(parts[at]?.length)
  return Buffer.from(result.join(''))
}

async function checkedParts(parts: readonly string[], check: AnswerCheck): Promise<readonly string[]> {
  const served = await servedTexts(check, parts.map(outputText))
  return check.guards.checkAnswerParts(served, OUTPUT, check.turns)
}

/** Checks a stream of events with images or with a transcript. */
class GuardedEvents implements Passthrough {
  readonly tap: Tap
  readonly #inner: Passthrough
  readonly checks: CheckTurns
  readonly #events: GuardedMediaEvents
  /** The check of what has arrived, if it goes on. */
  #steps: Generator<void, string> | undefined
  #isOver = false
  #isUnread = false
  #rest: Buffer = NOTHING

  constructor(inner: Passthrough, tap: Tap, about: MediaAnswerKind, guards: CallGuards) {
    this.#inner = inner
    this.tap = tap
    this.checks = guards.turnsUntil(() => this.#isUnread)
    this.#events = new GuardedMediaEvents(guards, kindOf(about), this.checks)
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
    this.#rest = Buffer.from(await this.checks.run(this.#events.finish(this.#inner.rest())))
  }

  clientLeft(): void {
    this.#isUnread = true
  }

  rest(): Buffer {
    if (!this.isBlocked) return this.#rest
    return Buffer.concat([this.#rest, Buffer.from(this.#events.refusal)])
  }

  measure(...how: Parameters<Passthrough['measure']>): ReturnType<Passthrough['measure']> {
    return this.#inner.measure(...how)
  }
}
