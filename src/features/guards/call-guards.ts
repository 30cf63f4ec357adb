import type { Response } from '@sluice/http1'
import type { Pseudonyms } from '@sluice/screen/pseudonyms'
import type { TextScreen } from '@sluice/screen/screen'
import { PartsScreening } from '@sluice/screen/screen-parts'
import type { GuardAction, GuardPlace, TextGuard } from '../../domain/guard.ts'
import {
  actionOf,
  GUARDS_HEADER,
  GUARD_VERDICTS,
  isServiceGuard,
  isTextGuard,
  verdictOf,
} from '../../domain/guard.ts'
import { GatewayError } from '../../errors.ts'
import { CheckTurns } from '../../call/check-turns.ts'
import { ActiveGuard, GuardBlock, passesUncheckedText } from './active-guard.ts'
import type { KnownTextsOfUser } from './known-texts.ts'
import type { ServiceChecks } from './services/service-checks.ts'

/**
 * Maximum length in characters of the verdicts in a header and in a row of the usage log, and the part of it
 * that is reserved for `...;more=12`.
 */
const MAX_TEXT = 4096
const MORE_LENGTH = 24

/**
 * Matches a type or code of an error, such as `rate_limit_error`, `NOT_FOUND`, `ThrottlingException` or `1261`, but not
 * an API key.
 */
const ERROR_CODE =
  /^(?:[a-z]{1,24}(?:_[a-z]{1,24}){0,7}|[A-Z]{1,24}(?:_[A-Z]{1,24}){0,7}|(?:[A-Z][a-z]{1,24}){1,8}|\d{1,5})$/

/** Maximum length of a text of an upstream's error that guards check. */
const MAX_ERROR_LENGTH = 16_384
const ERROR_TEXT = { place: 'output', isSigned: false, isJson: false } as const
/** What stands in place of a text of an error that a guard blocks. */
const BLOCKED_ERROR = 'a guard refused the words of this error'

/** Where in a request or an answer a text was found. */
export interface TextLocation {
  readonly place: GuardPlace
  /** Whether the text is signed reasoning, which must not be changed. */
  readonly isSigned: boolean
}

/** Where a text was found, and how it is read. */
export interface TextSpot extends TextLocation {
  /** Whether the text is JSON, in which the strings are checked: the arguments of a tool call. */
  readonly isJson: boolean
}

/**
 * The guards that search the texts of one place in requests or answers, combined so that a text is searched
 * only once.
 */
export interface GuardScreen {
  readonly screen: TextScreen
  /** The guards whose rules `screen` contains, in the order of the rules. */
  readonly guards: readonly ActiveGuard[]
}

/** Checks a text up to a position, and returns the part that can be sent on. */
type CheckStep = (end: number) => string

/** Combines guards, each with its action for a match, to one screen that searches texts for all of them. */
export type ScreenMaker = (
  rules: readonly { readonly guard: TextGuard; readonly do: GuardAction }[],
) => TextScreen

/** The guards that apply to one call, in the order of the configuration. */
export class CallGuards {
  readonly all: readonly ActiveGuard[]
  /** Placeholders that stand for values of this call's request, and the values. */
  readonly pseudonyms: Pseudonyms
  /**
   * Texts of the user's earlier requests in which guards have found nothing, so that they need not be checked
   * again.
   */
  readonly known: KnownTextsOfUser
  /**
   * Checks by the guards whose decisions external services or models make; undefined if there are no such
   * guards.
   */
  readonly services: ServiceChecks | undefined
  /** Divides the check of the request into turns, and ends it when the client has left. */
  turns: CheckTurns
  readonly #makeScreen: ScreenMaker
  readonly #screens = new Map<string, GuardScreen | undefined>()
  #isSignedLeft = false

  constructor(
    all: readonly ActiveGuard[],
    pseudonyms: Pseudonyms,
    known: KnownTextsOfUser,
    makeScreen: ScreenMaker,
    services?: ServiceChecks,
  ) {
    this.known = known
    this.turns = this.turnsUntil(() => false)
    this.all = all
    this.pseudonyms = pseudonyms
    this.services = services
    this.#makeScreen = makeScreen
  }

  /** Whether the answer comes later, and is checked then. */
  isSuspended = false

  /** What is to be known when the answer comes: the guards with what they have decided, and the replaced values. */
  suspend(): string {
    this.isSuspended = true
    const guards = this.all.map(({ guard, verdict, matches, hasRun }) => [
      guard.name,
      verdict,
      matches,
      hasRun,
    ])
    return JSON.stringify([guards, [...this.pseudonyms.entries()]])
  }

  /** Connects the check of the request to its client. */
  begin(response: Pick<Response, 'isAborted' | 'needsUpstream'>): void {
    response.needsUpstream()
    this.turns = this.turnsUntil(() => response.isAborted)
  }

  /** Begins a check in turns, which ends when the client has left. */
  turnsUntil(isGone: () => boolean): CheckTurns {
    return new CheckTurns(this.known.user, isGone)
  }

  /** Returns the guards that search the texts of this place; undefined if there are none. */
  screenOf({ place, isSigned }: TextLocation): GuardScreen | undefined {
    const key = isSigned ? `${place} signed` : place
    if (!this.#screens.has(key)) this.#screens.set(key, this.#screenFor(place, isSigned))
    return this.#screens.get(key)
  }

  #screenFor(place: GuardPlace, isSigned: boolean): GuardScreen | undefined {
    const guards: ActiveGuard[] = []
    const rules: Parameters<ScreenMaker>[0][number][] = []
    for (const active of this.all) {
      const { guard } = active
      if (!guard.where.includes(place) || !isTextGuard(guard)) continue
      guards.push(active)
      rules.push({ guard, do: actionOf(guard, isSigned) })
    }
    return guards.length === 0 ? undefined : { screen: this.#makeScreen(rules), guards }
  }

  /**
   * Checks a whole text of the request. Returns the text to send on, which is the same text if no guard
   * changes it. Throws `GuardBlock`.
   */
  checkRequest(text: string, spot: TextSpot): string {
    return this.#check(spot, text, this.pseudonyms)
  }

  /**
   * Checks a text of the request step by step. Each call of the returned function checks up to position
   * `end`, and returns the part that can be sent on or throws `GuardBlock`. Returns undefined if no guard
   * checks the text.
   */
  requestSteps(text: string, spot: TextSpot): CheckStep | undefined {
    return this.#steps(text, spot, this.pseudonyms)
  }

  /** Checks a text of the answer as `checkAnswer` does, in turns. Throws `GuardBlock`. */
  async checkLongAnswer(text: string, spot: TextSpot, turns: CheckTurns): Promise<string> {
    const step = this.answerSteps(text, spot)
    return this.restored(step ? await turns.checkLong(text, step) : text, spot)
  }

  /**
   * Checks a text of the answer step by step, as `requestSteps` does. What the steps return goes to `restored`.
   * @param isRepeated Whether the text repeats another one, so that its matches are not counted again.
   */
  answerSteps(text: string, spot: TextSpot, isRepeated = false): CheckStep | undefined {
    return this.#steps(text, spot, undefined, isRepeated)
  }

  /** A whole text of the answer that was checked, with the values of the request in place of the tokens that replaced them. */
  restored(checked: string, spot: TextSpot): string {
    if (this.pseudonyms.size === 0 || spot.isSigned) return checked
    return spot.isJson ? this.pseudonyms.restoreJson(checked) : this.pseudonyms.restore(checked)
  }

  #steps(
    text: string,
    spot: TextSpot,
    pseudonyms: Pseudonyms | undefined,
    isRepeated = false,
  ): CheckStep | undefined {
    const place = this.screenOf(spot)
    if (!place) return undefined
    const stream = place.screen.stream(pseudonyms, spot.isJson)
    return this.#recorded(place, spot.isSigned, stream, (end) => stream.readTo(text, end), isRepeated)
  }

  /** Has each step recorded. Of a text that repeats another one, only a block is. */
  #recorded(
    place: GuardScreen,
    isSigned: boolean,
    screened: { readonly counts: readonly number[]; readonly blockedBy: number | undefined },
    step: CheckStep,
    isRepeated = false,
  ): CheckStep {
    let counted: readonly number[] = []
    return (end) => {
      const beganMs = performance.now()
      const passed = step(end)
      const { blockedBy } = screened
      if (isRepeated && blockedBy === undefined) return passed
      const counts = [...screened.counts]
      const added = counts.map((count, index) => count - (counted[index] ?? 0))
      counted = counts
      this.record(place, added, isSigned, performance.now() - beganMs)
      const blocking = blockedBy === undefined ? undefined : place.guards[blockedBy]
      if (blocking) throw new GuardBlock(blocking)
      return passed
    }
  }

  /** Checks a whole text of the answer, and replaces placeholders with the values of the request. Throws `GuardBlock`. */
  checkAnswer(text: string, spot: TextSpot): string {
    return this.restored(this.#check(spot, text), spot)
  }

  /**
   * Changes a text of the answer that repeats an earlier text, in the same way as the earlier one. Matches
   * are not recorded again. Returns undefined if the text is blocked.
   */
  repeat(text: string, spot: TextSpot): string | undefined {
    const checked = this.screened(text, spot)
    return checked === undefined ? undefined : this.restored(checked, spot)
  }

  /**
   * Changes a text of the answer as guards require. Matches are not recorded, and placeholders stay. Returns
   * undefined if the text is blocked.
   */
  screened(text: string, spot: TextSpot): string | undefined {
    const screen = this.screenOf(spot)?.screen
    const applied = screen?.apply(text, undefined, spot.isJson)
    return applied?.blockedBy === undefined ? (applied?.text ?? text) : undefined
  }

  /**
   * A text of an upstream's error as the guards of answers leave it. Words of the protocol stay. Matches are not recorded,
   * because the error may never be sent. `isRecorded`: whether the text is for logs and rows, in which no match of any
   * guard may be, and no value that was replaced.
   */
  checkedError(text: string, isRecorded = false): string {
    if (ERROR_CODE.test(text)) return text
    const screen = isRecorded ? this.#ofRecords : this.screenOf(ERROR_TEXT)?.screen
    if (!screen) return this.restored(text, ERROR_TEXT)
    const { text: checked, blockedBy } = screen.apply(text.slice(0, MAX_ERROR_LENGTH))
    if (blockedBy !== undefined) return BLOCKED_ERROR
    return isRecorded ? checked : this.restored(checked, ERROR_TEXT)
  }

  get #ofRecords(): TextScreen {
    return this.#makeScreen(
      this.all.flatMap(({ guard }) => {
        if (!isTextGuard(guard)) return []
        const action = guard.where.includes('output') ? actionOf(guard, false) : 'redact'
        return [{ guard, do: action === 'flag' ? 'redact' : action }]
      }),
    )
  }

  /**
   * Checks a text of the answer that consists of several parts, such as the lines of subtitles, in turns. Throws
   * `GuardBlock`.
   * @param isRepeated Whether the parts repeat another text, so that their matches are not counted again.
   */
  async checkAnswerParts(
    parts: readonly string[],
    spot: TextLocation,
    turns: CheckTurns,
    isRepeated = false,
  ): Promise<readonly string[]> {
    const place = this.screenOf(spot)
    let checked = parts
    if (place) {
      const screening = new PartsScreening(place.screen, parts)
      const read: CheckStep = (end) => {
        screening.readTo(end)
        return ''
      }
      await turns.checkLong(screening.text, this.#recorded(place, spot.isSigned, screening, read, isRepeated))
      checked = screening.parts
    }
    return this.pseudonyms.size === 0 ? checked : checked.map((part) => this.pseudonyms.restore(part))
  }

  /** The number of matches that all guards have found so far. */
  get matches(): number {
    return this.all.reduce((sum, { matches }) => sum + matches, 0)
  }

  /** Whether an answer may contain anything to check, or placeholders to replace. */
  get concernsAnswer(): boolean {
    return this.pseudonyms.size > 0 || this.#ofAnswer.length > 0
  }

  /** Whether an answer may be changed. If so, lists that repeat its texts token by token must not be sent. */
  get changesAnswer(): boolean {
    return (
      this.pseudonyms.size > 0 ||
      this.all.some(
        ({ guard }) => actionOf(guard, false) !== 'flag' && guard.where.some((place) => place === 'output'),
      )
    )
  }

  /** The guards that check answers. */
  get #ofAnswer(): readonly ActiveGuard[] {
    return this.all.filter(({ guard }) =>
      guard.where.some((place) => place === 'output' || place === 'tool_arguments'),
    )
  }

  /** Whether parts of an answer that cannot be checked must not be sent. */
  get withholds(): boolean {
    return this.#ofAnswer.some(({ guard }) => actionOf(guard, false) !== 'flag')
  }

  #check(spot: TextSpot, text: string, pseudonyms?: Pseudonyms): string {
    const place = this.screenOf(spot)
    if (!place) return text
    const beganMs = performance.now()
    const { text: checked, counts, blockedBy } = place.screen.apply(text, pseudonyms, spot.isJson)
    const tookMs = performance.now() - beganMs
    this.record(place, counts, spot.isSigned, tookMs)
    const blocking = blockedBy === undefined ? undefined : place.guards[blockedBy]
    if (blocking) throw new GuardBlock(blocking)
    return checked
  }

  /**
   * Records that a text of the answer cannot be checked, or without `spot` the whole answer. Returns whether
   * it may be sent nevertheless.
   */
  failed(spot?: TextLocation): boolean {
    let passes = true
    for (const active of spot ? (this.screenOf(spot)?.guards ?? []) : this.#ofAnswer) {
      const isPassed = passesUncheckedText(active)
      active.note(isPassed ? 'failed_passed' : 'failed_blocked', 0)
      passes &&= isPassed
    }
    return passes
  }

  /**
   * Records that a part of the request cannot be checked. Throws `GuardBlock` if it may not be sent.
   * `docs/guards.md: What cannot be checked`.
   */
  failedRequest(place: GuardPlace): void {
    let blocking: ActiveGuard | undefined
    for (const active of this.all) {
      if (!active.guard.where.includes(place)) continue
      const isPassed = passesUncheckedText(active)
      active.note(isPassed ? 'failed_passed' : 'failed_blocked', 0)
      if (!isPassed) blocking ??= active
    }
    if (blocking) throw new GuardBlock(blocking)
  }

  /**
   * Records the matches that each guard of a screen (guards that search together) has found in a part of a
   * text.
   */
  record({ guards }: GuardScreen, counts: readonly number[], isSigned: boolean, tookMs: number): void {
    for (const [index, active] of guards.entries()) {
      const count = counts[index] ?? 0
      active.hasRun = true
      active.tookMs += tookMs
      if (count === 0) continue
      active.note(verdictOf(actionOf(active.guard, isSigned), count), count)
      if (isSigned && actionOf(active.guard, false) !== 'flag') this.#isSignedLeft = true
    }
  }

  /** The verdicts of guards about the request, in the format of `text`. */
  ofRequest = ''

  /**
   * The verdicts so far: `name=redacted;count=2, other=flagged;count=1`. Empty if no guard has checked
   * anything. If the text would be too long, it has only the most severe verdicts and ends with the number of
   * the others: `...;more=12`.
   */
  get text(): string {
    const run = this.all.filter(({ hasRun }) => hasRun)
    const whole = run.map(verdictText).join(', ')
    if (whole.length <= MAX_TEXT) return whole
    const severity = ({ verdict }: ActiveGuard): number => GUARD_VERDICTS.indexOf(verdict)
    const kept: string[] = []
    let length = MORE_LENGTH
    for (const one of run.toSorted((a, b) => severity(b) - severity(a))) {
      const text = verdictText(one)
      length += text.length + 2
      if (length > MAX_TEXT) break
      kept.push(text)
    }
    return [...kept, `...;more=${run.length - kept.length}`].join(', ')
  }

  /** Whether guards have found something in signed reasoning of the request, which they would change elsewhere. */
  get hasLeftSigned(): boolean {
    return this.#isSignedLeft || this.all.some(leavesSigned)
  }

  /** Whether a guard has blocked the call. */
  get hasBlocked(): boolean {
    return this.all.some(({ verdict }) => verdict === 'blocked' || verdict === 'failed_blocked')
  }

  /** The error for a client whose request was blocked by a guard. */
  refusal({ active }: GuardBlock): GatewayError {
    return new GatewayError('guard_blocked', `the guard "${active.guard.name}" refused this request`, {
      headers: { [GUARDS_HEADER]: this.text },
      isFinal: true,
    })
  }
}

// A service that changes texts flags only what is signed.
function leavesSigned({ guard, verdict }: ActiveGuard): boolean {
  return verdict === 'flagged' && isServiceGuard(guard) && actionOf(guard, false) !== 'flag'
}

function verdictText({ guard, verdict, matches }: ActiveGuard): string {
  return `${guard.name}=${verdict};count=${matches}`
}
