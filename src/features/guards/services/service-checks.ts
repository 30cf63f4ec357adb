import type { Pseudonyms } from '@sluice/screen/pseudonyms'
import {
  jsonTextOf,
  jsonTexts,
  MIN_NUMBER_LENGTH,
  type FoundToolCall,
  type ToolCallsAndImages,
  type JsonStringOrNumber,
} from '@sluice/wire/tool-calls-and-images'
import { applyTextChanges } from '@sluice/wire/found-texts'
import type { Caller } from '../../../accounts/authentication/caller.ts'
import {
  actionOf,
  type GuardAction,
  type GuardPlace,
  type GuardVerdict,
  verdictOf,
} from '../../../domain/guard.ts'
import type { Settings } from '../../../domain/settings.ts'
import { GatewayError } from '../../../errors.ts'
import { MemoryAllocation, type RequestMemory } from '../../../limits/request-memory.ts'
import type { IncomingCall } from '../../../call/incoming-call.ts'
import { CheckCancelled } from '../../../call/check-turns.ts'
import { type ActiveGuard, GuardBlock, passesUncheckedText } from '../active-guard.ts'
import { applyJudgement, matchKindOf } from './apply-judgement.ts'
import { type Judgement, type CheckRequest, type Service, ServiceFailure } from './service.ts'
import type { ServiceClient } from './service-client.ts'

/** Bytes of memory for each byte of a request's body: the texts, their JSON, and the bytes that are sent. */
const COPIES = 3

/**
 * A guard's service is also asked about images if the guard checks this place: `input` for images in a
 * request, `output` for images in a response.
 */
const IMAGE_PLACES = { request: 'input', response: 'output' } as const

/** A text of a request or an answer that guards' services check. */
export interface CheckedText {
  readonly text: string
  readonly place: GuardPlace
  /** Whether the text is signed, so that it must not be changed. */
  readonly isSigned: boolean
  /** Whether the text is JSON, in which only the strings are checked. */
  readonly isJson: boolean
  /** Whether the text is a number. Services are not asked about short numbers. */
  readonly isNumber?: boolean
  /** Whether the text is a name in a schema. Services are not asked about these, because there are many. */
  readonly isName?: boolean
}

/** The texts, tool calls and images that are checked together. */
export interface ContentToCheck extends ToolCallsAndImages {
  readonly texts: readonly CheckedText[]
  readonly side: CheckRequest['side']
  /** Aborted when the result is no longer needed. If absent, the check ends when the client leaves. */
  readonly signal?: AbortSignal
}

/** A request to a moderation model of the gateway. */
export interface ModerationRequest {
  readonly model: string
  readonly texts: readonly string[]
  readonly settings: Settings
  readonly caller: Caller
  /** Whether the caller is charged for the moderation. */
  readonly isCharged: boolean
  readonly signal: AbortSignal
}

/** What the checks need to send requests to guards' services. */
export interface CheckServices {
  readonly client: ServiceClient
  readonly memory: RequestMemory
  /**
   * Moderates texts. Rejects with `ServiceFailure`; with `CheckRefused` if the caller cannot pay.
   */
  readonly moderate: (request: ModerationRequest) => Promise<unknown>
  /** Called when a service could not decide, with the reason. */
  readonly onFailure: (guard: string, callId: string, reason: string) => void
}

/** The call whose texts services check. */
interface CheckOrigin {
  readonly services: CheckServices
  readonly settings: Settings
  readonly caller: Caller
  readonly pseudonyms: Pseudonyms
}

/** A guard, and the service that decides about texts for it. */
interface ServedGuard {
  readonly active: ActiveGuard
  readonly service: Service
}

/**
 * A service could not be asked because of the gateway or the caller, for instance for lack of memory or
 * quota. Such an error is not subject to `on_failure`.
 */
export class CheckRefused extends Error {
  readonly refusal: GatewayError

  constructor(refusal: GatewayError) {
    super(refusal.message, { cause: refusal })
    this.refusal = refusal
  }
}

/** Checks the texts of a call with those of its guards that ask a service. */
export class ServiceChecks {
  #callId = ''
  #left = new AbortController().signal
  readonly #guards: readonly ServedGuard[]
  readonly #origin: CheckOrigin

  constructor(guards: readonly ServedGuard[], origin: CheckOrigin) {
    this.#guards = guards
    this.#origin = origin
  }

  /** Connects the checks to a call, so that they end when its client leaves. */
  begin({ id, response }: Pick<IncomingCall, 'id' | 'response'>): void {
    this.#callId = id
    response.needsUpstream()
    const left = new AbortController()
    this.#left = left.signal
    const onClosed = (): void => {
      if (response.isAborted) left.abort()
    }
    response.onClosed(onClosed)
    onClosed()
  }

  /** Whether any guard with a service checks one of these places. */
  concerns(...places: readonly GuardPlace[]): boolean {
    return this.#guards.some(({ active: { guard } }) => guard.where.some((place) => places.includes(place)))
  }

  /** The guards with a service that check the answer. */
  get #ofAnswer(): readonly ServedGuard[] {
    return this.#guards.filter(({ active: { guard } }) =>
      guard.where.some((place) => place === 'output' || place === 'tool_arguments'),
    )
  }

  /** Whether unchecked parts of an answer must not be sent. False if all guards of the answer only report. */
  get withholds(): boolean {
    return this.#ofAnswer.some(({ active: { guard } }) => actionOf(guard, false) !== 'flag')
  }

  /**
   * Number of characters of a streamed answer that are checked at a time; 0 if the answer is checked as a
   * whole.
   */
  get window(): number {
    const windows = this.#ofAnswer.map(({ active: { guard } }) => guard.most_delay)
    return windows.includes(0) ? 0 : Math.max(0, ...windows)
  }

  /**
   * Has the services check texts. Resolves to the texts to send on. Rejects with `GuardBlock`,
   * `CheckCancelled` or `CheckRefused`.
   */
  async check(given: ContentToCheck): Promise<readonly string[]> {
    const checked = { ...given, signal: given.signal ?? this.#left }
    const judging: ServedGuard[] = []
    let texts = checked.texts.map(({ text }) => text)
    // Guards that change texts run one after the other, each on the result of the one before. The other
    // guards then check the final texts, all at the same time.
    for (const one of this.#guards) {
      const action = actionOf(one.active.guard, false)
      if (action === 'redact' || action === 'replace') texts = await this.#ask(one, checked, texts)
      else judging.push(one)
    }
    if (judging.length === 0) return texts
    const stop = new AbortController()
    const signal = AbortSignal.any([checked.signal, stop.signal])
    try {
      await Promise.all(judging.map((one) => this.#ask(one, { ...checked, signal }, texts)))
    } catch (error) {
      if (checked.signal.aborted) throw new CheckCancelled('cancelled')
      throw error
    } finally {
      stop.abort()
    }
    return texts
  }

  /** Records that the answer cannot be checked. Returns whether it may be sent nevertheless. */
  failed(reason: string): boolean {
    let passes = true
    for (const { active } of this.#ofAnswer) {
      this.#origin.services.onFailure(active.guard.name, this.#callId, reason)
      const isPassed = passesUncheckedText(active)
      active.note(isPassed ? 'failed_passed' : 'failed_blocked', 0)
      passes &&= isPassed
    }
    return passes
  }

  async #ask(
    { active, service }: ServedGuard,
    checked: Required<ContentToCheck>,
    texts: readonly string[],
  ): Promise<string[]> {
    const { guard } = active
    const parts = checked.texts.map((one, index) =>
      guard.where.includes(one.place) ? partsOf(texts[index] ?? '', one) : undefined,
    )
    const asked = parts.flatMap((one) => one?.pieces ?? []).filter(isAsked)
    const isCalls = guard.where.includes('tool_arguments')
    const question: CheckRequest = {
      texts: asked.map(({ text }) => text),
      toolCalls: isCalls ? callsWithArguments(checked.calls, checked.texts, texts) : [],
      images: guard.where.includes(IMAGE_PLACES[checked.side]) ? checked.images : [],
      side: checked.side,
      callId: this.#callId,
    }
    const isEmpty = question.texts.length + question.toolCalls.length + question.images.length === 0
    if (isEmpty || (question.texts.length === 0 && guard.match.kind !== 'webhook')) return [...texts]
    const judgement = await this.#judgement(active, service, question, checked.signal)
    if (!judgement) return [...texts]
    const action = actionOf(guard, false)
    const isMonitored = action === 'flag'
    if (judgement.matches === 0 && !judgement.isBlocked) return [...texts]
    const matches = Math.max(1, judgement.matches)
    if (!isMonitored && (judgement.isBlocked || action === 'block')) {
      active.note('blocked', matches)
      throw new GuardBlock(active)
    }
    const next = isMonitored
      ? [...texts]
      : this.#changed(guard.name, { action, with: guard.with }, checked, texts, parts, asked, judgement)
    // Signed texts are not changed, so there may be matches without any change.
    const isChanged = next.some((text, index) => text !== texts[index])
    active.note(verdictOf(isChanged ? action : 'flag', matches), matches)
    return next
  }

  #changed(
    name: string,
    change: { readonly action: GuardAction; readonly with: string },
    checked: ContentToCheck,
    texts: readonly string[],
    parts: readonly (TextParts | undefined)[],
    asked: readonly Piece[],
    { texts: judged = [] }: Judgement,
  ): string[] {
    const places = new Map(asked.map((piece, index) => [piece, judged[index]]))
    const pseudonyms = checked.side === 'request' ? this.#origin.pseudonyms : undefined
    const how = { ...change, kind: matchKindOf(name), pseudonyms }
    return texts.map((text, index) => {
      const part = parts[index]
      if (!part || checked.texts[index]?.isSigned === true) return text
      return part.written((piece) => {
        const judgement = places.get(piece)
        return judgement ? applyJudgement(piece.text, judgement, how) : piece.text
      })
    })
  }

  /**
   * Resolves to the service's decision; undefined if the service failed and the texts may pass nevertheless.
   */
  async #judgement(
    active: ActiveGuard,
    service: Service,
    question: CheckRequest,
    cancelled: AbortSignal,
  ): Promise<Judgement | undefined> {
    const { guard } = active
    const { services, settings, caller } = this.#origin
    const beganMs = performance.now()
    const timeout = new AbortController()
    const timer = setTimeout(() => timeout.abort(), guard.timeout)
    const signal = AbortSignal.any([cancelled, timeout.signal])
    using memory = new CheckMemory(services.memory, caller, guard.timeout)
    try {
      const judging = service.judge(question, {
        post: async (request) => {
          await memory.take(COPIES * request.body.length)
          return services.client.post(request, { signal, take: (bytes) => memory.take(bytes) })
        },
        moderate: (model, texts) =>
          services.moderate({ model, texts, settings, caller, isCharged: guard.charge, signal }),
      })
      const judgement = await judging
      active.hasRun = true
      return judgement
    } catch (error) {
      if (cancelled.aborted) throw new CheckCancelled('cancelled')
      const reason = timeout.signal.aborted ? `it took longer than ${guard.timeout} ms` : reasonOf(error)
      services.onFailure(guard.name, this.#callId, reason)
      return this.#failed(active, error, question.side)
    } finally {
      clearTimeout(timer)
      timeout.abort()
      active.tookMs += performance.now() - beganMs
    }
  }

  #failed(active: ActiveGuard, error: unknown, side: CheckRequest['side']): undefined {
    const isRefused = error instanceof CheckRefused
    if (isRefused && side === 'request') throw error
    const passes = passesUncheckedText(active) && !(isRefused && actionOf(active.guard, false) !== 'flag')
    const verdict: GuardVerdict = passes ? 'failed_passed' : 'failed_blocked'
    active.note(verdict, 0)
    if (!passes) throw new GuardBlock(active)
    return undefined
  }
}

/** Memory of a request to a service and of its response, counted in the caller's share. */
class CheckMemory implements Disposable {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation
  readonly #waitMs: number
  #giveUp: (() => void) | undefined
  #isOver = false

  constructor(memory: RequestMemory, { user, token }: Caller, waitMs: number) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation({ client: user.id, key: token.id })
    this.#waitMs = waitMs
  }

  async take(bytes: number): Promise<void> {
    if (bytes === 0) return
    const isTaken = await this.#memory.takeInTime(this.#allocation, bytes, this.#waitMs, (giveUp) => {
      this.#giveUp = giveUp
    })
    if (isTaken && this.#isOver) this.#release()
    if (!isTaken) throw new CheckRefused(checkMemoryError())
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#giveUp?.()
    this.#release()
  }

  #release(): void {
    const { bytes } = this.#allocation
    if (bytes > 0) this.#memory.give(this.#allocation, bytes)
  }
}

/** The error for a client whose share of memory is used up by guards' checks. */
export function checkMemoryError(): GatewayError {
  return new GatewayError('overloaded', 'too many checks of guards are held for this client; try again', {
    retryAfter: 1,
  })
}

function reasonOf(error: unknown): string {
  if (error instanceof ServiceFailure || error instanceof CheckRefused) return error.message
  return 'it failed'
}

/** Returns the tool calls with the arguments that guards have changed. */
export function callsWithArguments(
  calls: readonly FoundToolCall[],
  given: readonly CheckedText[],
  next: readonly string[],
): FoundToolCall[] {
  const changes = new Map<string, string>()
  for (const [index, { place, text }] of given.entries()) {
    const changed = next[index] ?? text
    if (place === 'tool_arguments' && changed !== text) changes.set(text, changed)
  }
  if (changes.size === 0) return [...calls]
  return calls.map((call) => {
    const { arguments: whole } = call
    const json = changes.has(whole) ? undefined : jsonTexts(whole)
    const changed = json
      ? jsonParts(whole, json).written(({ text }) => changes.get(text) ?? text)
      : (changes.get(whole) ?? whole)
    return { ...call, arguments: changed }
  })
}

/** A part of a text that a service is asked about. */
interface Piece {
  readonly text: string
}

/** A text, split into the parts that services see. */
interface TextParts {
  readonly pieces: readonly Piece[]
  /** Returns the text with its parts replaced. */
  readonly written: (next: (piece: Piece) => string) => string
}

function partsOf(text: string, { isJson, isNumber, isName }: CheckedText): TextParts {
  if (isName || (isNumber && text.length < MIN_NUMBER_LENGTH)) return { pieces: [], written: () => text }
  const json = isJson ? jsonTexts(text) : undefined
  if (json) return jsonParts(text, json)
  const piece = { text }
  return { pieces: [piece], written: (next) => next(piece) }
}

function jsonParts(
  text: string,
  { bytes, texts }: { readonly bytes: Buffer; readonly texts: readonly JsonStringOrNumber[] },
): TextParts {
  return {
    pieces: texts,
    written(next) {
      const changes = texts.flatMap((piece) => {
        const changed = next(piece)
        if (changed === piece.text) return []
        return [{ from: piece.from, to: piece.to, text: JSON.stringify(changed) }]
      })
      return changes.length === 0 ? text : jsonTextOf(applyTextChanges(bytes, changes))
    },
  }
}

function isAsked({ text }: Piece): boolean {
  return /\S/.test(text)
}
