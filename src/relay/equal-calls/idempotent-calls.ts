import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { MemoryAllocation, RequestMemory } from '../../limits/request-memory.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import type { ClaimState } from '../../store/operations/idempotent-calls.ts'
import type { RowStore } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { UpstreamRefusal } from '../failure.ts'
import type { IncomingCall, RenderedRefusal } from '../request-stages.ts'
import { RetriedWrites } from '../responses/response-store.ts'
import { type AnswerEnd, RunningAnswer } from '../answers/running-answer.ts'
import type { KeptAnswers } from './kept-answers.ts'

/** Maximum length of an idempotency key, in characters. */
const MAX_KEY_LENGTH = 255
/**
 * Milliseconds after which a node loses its claim on a call unless it renews the claim, by the clock of the database; and
 * interval of renewals.
 */
const LEASE_MS = 60_000
const RENEWAL_MS = 20_000
/** Maximum number of claims on calls that one database write renews. */
const RENEWED_AT_A_TIME = 500
/**
 * First and longest pause, in milliseconds, before a call that another process is making is checked again.
 */
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 1_000
/** Maximum number of calls of one user that continue although all their clients have left. */
const MAX_LEFT = 64
/** Statuses of a provider's refusal that repeating the request cannot change. */
const LASTING_REFUSALS: ReadonlySet<number> = new Set([400, 404, 422])
/** Header of an answer that was produced for an earlier call. */
const REPLAYED = { 'idempotency-replayed': 'true' } as const

/** Records in the database which process is making which call. */
export interface IdempotencyClaims {
  readonly rows: Pick<RowStore, 'write'>
  /** Name of this process among the processes that share the database. */
  readonly node: string
  /** Computes an HMAC with the gateway's secret. */
  readonly tag: (purpose: 'answer', text: string) => string
}

/** Services that calls with an idempotency key need. */
interface IdempotentCallServices {
  readonly claims: IdempotencyClaims
  readonly answers: KeptAnswers
  readonly memory: RequestMemory
  readonly reads: StoreReads
  readonly metrics: Metrics
}

/** A request with an idempotency key. A client may send it several times. */
export interface RequestWithIdempotencyKey {
  readonly key: string
  /** Computes the fingerprint of path and body, by which a repeated request is recognised. */
  readonly fingerprint: () => Promise<string>
  /** The memory of the request. The memory of the answer counts in the share of the same owner. */
  readonly allocation: MemoryAllocation
  readonly incoming: IncomingCall
  readonly caller: Caller
  readonly settings: Settings
  /** Throws an error if the caller may not use the model. */
  readonly requirePermission: (model: string) => void
  /** Makes the call to an upstream. */
  readonly run: (incoming: IncomingCall) => Promise<void>
}

/** A call that this process is making, or that it tries to claim in the database before making it. */
interface CallUnderWay {
  readonly fingerprint: string
  readonly claim: string
  readonly userId: number
  /** Resolves when the database has granted or denied the claim. */
  readonly decided: PromiseWithResolvers<void>
  /** Resolves when the call is over and its claim is ended. */
  readonly over: PromiseWithResolvers<void>
  readonly incoming: IncomingCall
  /** The answer as it arrives; undefined until the claim on the call is granted. */
  answer: RunningAnswer | undefined
  /** The call with the response that records its answer. */
  made: IncomingCall | undefined
  /** Whether the call continues although all its clients have left. */
  isLeft: boolean
}

/**
 * Calls with an idempotency key: the first one asks a provider, and all others with the same key and request
 * get its answer. `docs/api.md: Idempotency keys`.
 */
export class IdempotentCalls {
  readonly #services: IdempotentCallServices
  readonly #underWay = new Map<string, CallUnderWay>()
  readonly #leftOfUsers = new Map<number, number>()
  /** Database writes that end claims on calls; they are repeated while the database is unavailable. */
  readonly #writes = new RetriedWrites(() => {})
  #renewal: NodeJS.Timeout | undefined

  constructor(services: IdempotentCallServices) {
    this.#services = services
  }

  /** Number of calls that continue although all their clients have left. */
  get left(): number {
    let sum = 0
    for (const count of this.#leftOfUsers.values()) sum += count
    return sum
  }

  /** Answers a request. Rejects with the error for its client. */
  async answer(attempt: RequestWithIdempotencyKey): Promise<void> {
    const { key, incoming, caller } = attempt
    if (key === '' || key.length > MAX_KEY_LENGTH)
      throw new GatewayError('invalid_request', 'idempotency-key: expected 1 to 255 characters')
    const { tag } = this.#services.claims
    const lookup = tag('answer', `idempotency\n${caller.token.id}\n${key}`)
    const fingerprint = tag('answer', `request\n${await attempt.fingerprint()}`)
    for (let pauseMs = FIRST_PAUSE_MS; !incoming.response.isAborted; ) {
      const here = this.#underWay.get(lookup)
      if (here) {
        if (here.fingerprint !== fingerprint) throw this.#conflict()
        if (await this.#attached(here, attempt)) return
        continue
      }
      const call = newCall(fingerprint, attempt)
      switch (await this.#claim(lookup, call, attempt)) {
        case 'claimed':
          return this.#make(lookup, call, attempt)
        case 'conflict':
          throw this.#conflict()
        case 'over':
          return this.#replay(lookup, attempt)
        case 'under way':
          // Another process makes the call, so whether it is over is checked again after a pause.
          await delay(pauseMs)
          pauseMs = Math.min(MAX_PAUSE_MS, 2 * pauseMs)
      }
    }
  }

  /** Stops renewing the claims on calls. */
  close(): void {
    clearInterval(this.#renewal)
  }

  /** Resolves to whether the request got the answer of a call that is running in this process. */
  async #attached(
    here: CallUnderWay,
    { incoming, requirePermission }: RequestWithIdempotencyKey,
  ): Promise<boolean> {
    await here.decided.promise
    const { answer } = here
    if (!answer) return false
    const { model } = here.incoming.record
    if (model !== undefined) {
      requirePermission(model)
      incoming.record.model = model
    }
    // An answer that ended with an error is not given again, even though its claim is not released yet.
    const isRepeated = !answer.hasEnded || here.made?.hasFailed !== true
    const attached = isRepeated ? answer.attach(incoming.response, REPLAYED) : undefined
    if (attached) {
      this.#noLongerLeft(here)
      incoming.record.replayOf = here.incoming.id
      this.#count('attached')
      if (await attached) return true
      delete incoming.record.replayOf
    }
    if (!answer.hasEnded) throw this.#notKept()
    // The answer broke off or was not kept. One of the requests that received nothing makes the next call.
    await here.over.promise
    return false
  }

  async #claim(
    lookup: string,
    call: CallUnderWay,
    { caller, settings }: RequestWithIdempotencyKey,
  ): Promise<ClaimState> {
    const { rows, node } = this.#services.claims
    this.#underWay.set(lookup, call)
    let state: ClaimState | undefined
    try {
      const nowMs = Date.now()
      state = await rows.write('claimCall', {
        lookup,
        userId: caller.user.id,
        fingerprint: call.fingerprint,
        claim: call.claim,
        node,
        nowMs,
        leaseMs: LEASE_MS,
        expiresMs: nowMs + settings.options.idempotency.keep,
      })
      return state
    } finally {
      if (state !== 'claimed') {
        this.#underWay.delete(lookup)
        call.decided.resolve()
      }
    }
  }

  /** Makes a call that this process has claimed in the database, and keeps its answer. */
  async #make(lookup: string, call: CallUnderWay, attempt: RequestWithIdempotencyKey): Promise<void> {
    const { incoming, allocation, settings } = attempt
    const answer = new RunningAnswer({
      memory: this.#services.memory,
      owner: allocation.owner,
      maxBytes: settings.options.idempotency.most_answer,
      staysWithoutClients: () => this.#stays(call),
    })
    call.answer = answer
    this.#renewal ??= setInterval(() => void this.#renew(), RENEWAL_MS).unref()
    call.decided.resolve()
    // The error of the answer is ignored, because the same error is thrown at the end of this method.
    const delivered = answer.attach(incoming.response)?.catch(() => true)
    const made: IncomingCall = { ...incoming, response: answer.recorder, isIdempotent: true }
    call.made = made
    let failure: { readonly error: unknown } | undefined
    try {
      if (incoming.unlessKept) throw incoming.unlessKept
      await attempt.run(made)
    } catch (error) {
      failure = { error }
    }
    if (made.isTraced) incoming.isTraced = true
    const rendered = failure && !answer.recorder.headersSent && lastingRefusal(failure.error, incoming)
    if (rendered) answer.recorder.writeHead(rendered.status, rendered.headers).end(rendered.body)
    else if (failure) answer.fail(failure.error, incoming.response)
    else answer.recorder.destroy()
    try {
      const isLasting = rendered !== undefined || (!failure && made.hasFailed !== true)
      await this.#end(lookup, call, attempt, isLasting ? await answer.end : undefined)
    } finally {
      this.#underWay.delete(lookup)
      this.#noLongerLeft(call)
      call.over.resolve()
      answer.release()
    }
    if (failure && !rendered) throw failure.error
    if ((await delivered) === false) incoming.response.destroy()
  }

  /**
   * Keeps the answer of a call, or releases the claim on the call. `end` is undefined if repeating the call
   * may give another result.
   */
  async #end(
    lookup: string,
    { claim, userId }: CallUnderWay,
    { incoming, caller, settings }: RequestWithIdempotencyKey,
    end: AnswerEnd | undefined,
  ): Promise<void> {
    const {
      answers,
      claims: { rows },
    } = this.#services
    if (end?.kind !== 'complete')
      return this.#writes.run(() => rows.write('releaseClaim', { lookup, userId, claim }), 0)
    const { head, pieces } = end
    const nowMs = Date.now()
    const isKept =
      pieces !== undefined &&
      (await answers
        .keep({
          kind: 'idempotency',
          key: lookup,
          userId: caller.user.id,
          tokenId: caller.token.id,
          model: incoming.record.model ?? '',
          head,
          facts: incoming.id,
          pieces,
          createdMs: nowMs,
          expiresMs: nowMs + settings.options.idempotency.keep,
        })
        .catch(() => false))
    this.#count(isKept ? 'kept' : 'not_kept')
    await this.#writes.run(() => rows.write('endClaim', { lookup, userId, claim }), 0)
  }

  /** Sends the answer of an earlier call. */
  async #replay(
    lookup: string,
    { incoming, caller, requirePermission }: RequestWithIdempotencyKey,
  ): Promise<void> {
    const { answers, reads } = this.#services
    const { record, response } = incoming
    const found = await answers.find('idempotency', lookup, caller.user.id)
    if (!found) throw this.#notKept()
    if (found.model !== '') requirePermission(found.model)
    record.model = found.model
    record.replayOf = found.facts
    try {
      await answers.send(found, response, reads.of(caller.user.id), { headers: REPLAYED })
      this.#count('replayed')
    } catch (error) {
      // The answer was removed in the meantime, for instance to make room.
      throw error instanceof GatewayError && error.code === 'not_found' ? this.#notKept() : error
    }
  }

  /** Whether a call continues although all its clients have left; counts it if so. */
  #stays(call: CallUnderWay): boolean {
    const left = this.#leftOfUsers.get(call.userId) ?? 0
    if (left >= MAX_LEFT) return false
    this.#leftOfUsers.set(call.userId, left + 1)
    call.isLeft = true
    this.#count('left')
    return true
  }

  #noLongerLeft(call: CallUnderWay): void {
    if (!call.isLeft) return
    call.isLeft = false
    const left = (this.#leftOfUsers.get(call.userId) ?? 0) - 1
    if (left > 0) this.#leftOfUsers.set(call.userId, left)
    else this.#leftOfUsers.delete(call.userId)
  }

  // Renews the claims of this process on calls. A claim lasts for three intervals, so one failed renewal does
  // no harm.
  async #renew(): Promise<void> {
    const lookups = [...this.#underWay.keys()]
    const { rows, node } = this.#services.claims
    try {
      for (let at = 0; at < lookups.length; at += RENEWED_AT_A_TIME) {
        const some = lookups.slice(at, at + RENEWED_AT_A_TIME)
        await rows.write('renewClaims', { lookups: some, node, leaseMs: LEASE_MS })
      }
    } catch {
      // The database is unavailable or closed. The next renewal tries again.
    }
  }

  #count(result: 'kept' | 'not_kept' | 'replayed' | 'attached' | 'left' | 'conflict' | 'refused'): void {
    this.#services.metrics.add('idempotency', 1, result)
  }

  #conflict(): GatewayError {
    this.#count('conflict')
    return new GatewayError(
      'idempotency_conflict',
      'this idempotency key was used for a request with another path or body',
    )
  }

  #notKept(): GatewayError {
    this.#count('refused')
    return new GatewayError(
      'idempotency_not_kept',
      'the answer to this request is not kept any more, or was too large to be kept; use another idempotency key',
    )
  }
}

function newCall(fingerprint: string, { incoming, caller }: RequestWithIdempotencyKey): CallUnderWay {
  return {
    fingerprint,
    claim: randomUUID(),
    userId: caller.user.id,
    decided: Promise.withResolvers(),
    over: Promise.withResolvers(),
    incoming,
    answer: undefined,
    made: undefined,
    isLeft: false,
  }
}

/**
 * A refusal of the provider that repeating the request cannot change, rendered for the client; otherwise
 * undefined.
 */
function lastingRefusal(error: unknown, { render }: IncomingCall): RenderedRefusal | undefined {
  const isLasting = error instanceof UpstreamRefusal && LASTING_REFUSALS.has(error.facts.status)
  return isLasting ? render?.(error) : undefined
}
