import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { RequestMemory } from '../../limits/request-memory.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import { RetriedWrites } from '../../store/retried-writes.ts'
import type { RowStore } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { RunningAnswer } from '../../call/answers/running-answer.ts'
import { UpstreamRefusal } from '../../call/failure.ts'
import type { AnswerRead, ReadRequest } from '../../call/answer-request.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { requirePermission } from '../../call/routing.ts'
import {
  type AnswerSource,
  CallUnderWay,
  type CompleteAnswer,
  type EqualCall,
  EqualCalls,
  type EqualCallsPolicy,
  type MissedAnswer,
} from './equal-calls.ts'
import type { KeptAnswer, KeptAnswers } from './kept-answers.ts'
import { requestFingerprint } from './request-fingerprint.ts'

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
export interface IdempotentCallServices {
  readonly claims: IdempotencyClaims
  readonly answers: KeptAnswers
  readonly memory: RequestMemory
  readonly reads: StoreReads
  readonly metrics: Metrics
}

/** A request with an idempotency key. A client may send it several times. */
interface RequestWithIdempotencyKey extends ReadRequest {
  readonly key: string
  /** Makes the call to an upstream. */
  readonly run: (incoming: IncomingCall) => Promise<void>
}

/** A request whose earlier attempts can be found. */
interface Attempt extends RequestWithIdempotencyKey, EqualCall {
  /** HMAC of the request, which repeated attempts share. */
  readonly fingerprint: string
}

/** A call that this process has claimed in the database, or tries to claim. */
class ClaimedCall extends CallUnderWay<Attempt, KeptAnswer, true> {
  readonly claim = randomUUID()
  /** Whether the call continues although all its clients have left. */
  isLeft = false
}

/**
 * Calls with an idempotency key: the first one asks a provider, and all others with the same key and request
 * get its answer. `docs/api.md: Idempotency keys`.
 */
export class IdempotentCalls implements EqualCallsPolicy<Attempt, KeptAnswer, true, ClaimedCall> {
  readonly #services: IdempotentCallServices
  readonly #calls = new EqualCalls(this)
  readonly #leftOfUsers = new Map<number, number>()
  /** Database writes that end claims on calls, by lookup, until the database has them: until then a call counts as under way. */
  readonly #ends = new Map<string, () => Promise<void>>()
  readonly #retried = new RetriedWrites(() => {})
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

  /** Returns the function that answers a request with an idempotency key; undefined without a key, or if the operator has turned them off. */
  of({ request: { headers } }: IncomingCall, { options }: Settings): AnswerRead | undefined {
    const key = options.idempotency.keep > 0 ? headers['idempotency-key'] : undefined
    return key === undefined ? undefined : (request, run) => this.#answer({ ...request, key, run })
  }

  async #answer(request: RequestWithIdempotencyKey): Promise<void> {
    const { key, incoming, caller, body } = request
    if (key === '' || key.length > MAX_KEY_LENGTH)
      throw new GatewayError('invalid_request', 'idempotency-key: expected 1 to 255 characters')
    const { tag } = this.#services.claims
    const lookup = tag('answer', `idempotency\n${caller.token.id}\n${key}`)
    const fingerprint = tag('answer', `request\n${await requestFingerprint(incoming.request.url, body)}`)
    const owner = { client: caller.user.id, key: caller.token.id }
    return this.#calls.answer({ ...request, lookup, fingerprint, owner, maxMisses: Number.POSITIVE_INFINITY })
  }

  /** Stops renewing the claims on calls. */
  close(): void {
    clearInterval(this.#renewal)
  }

  begin(attempt: Attempt): ClaimedCall {
    const call: ClaimedCall = new ClaimedCall(
      attempt,
      new RunningAnswer({
        memory: this.#services.memory,
        owner: attempt.owner,
        maxBytes: attempt.settings.options.idempotency.most_answer,
        staysWithoutClients: () => this.#stays(call),
      }),
    )
    return call
  }

  /** Claims the call in the database. While another process makes it, checks again until it is over. */
  async claim({ call, claim }: ClaimedCall): Promise<AnswerSource<KeptAnswer>> {
    const { lookup, fingerprint, caller, settings, incoming } = call
    const { rows, node } = this.#services.claims
    const userId = caller.user.id
    await this.#writeEnd(lookup)
    for (let pauseMs = FIRST_PAUSE_MS; !incoming.response.isAborted; ) {
      const nowMs = Date.now()
      const expiresMs = nowMs + settings.options.idempotency.keep
      const claimed = { lookup, userId, fingerprint, claim, node, nowMs, leaseMs: LEASE_MS, expiresMs }
      switch (await rows.write('claimCall', claimed)) {
        case 'claimed':
          this.#renewal ??= setInterval(() => void this.#renew(), RENEWAL_MS).unref()
          return 'make'
        case 'conflict':
          throw this.#conflict()
        case 'over':
          return (await this.#services.answers.find('idempotency', lookup, userId)) ?? this.#refuse()
        case 'under way':
          await delay(pauseMs)
          pauseMs = Math.min(MAX_PAUSE_MS, 2 * pauseMs)
      }
    }
    return undefined
  }

  beforeWaiting({ call }: ClaimedCall, { fingerprint }: Attempt): void {
    if (call.fingerprint !== fingerprint) throw this.#conflict()
  }

  async attach(
    first: ClaimedCall,
    { incoming, caller, settings, isForAnyModel }: Attempt,
  ): Promise<MissedAnswer | undefined> {
    // A client that has left while it waited is not one of the answer.
    if (incoming.response.isAborted) return undefined
    const { id, record } = first.call.incoming
    if (record.model !== undefined) {
      if (!isForAnyModel) requirePermission(settings, caller, record.model)
      incoming.record.model = record.model
    }
    const attached = first.answer.attach(incoming.response, REPLAYED)
    if (attached) {
      // The client may have left as the first bytes were written to it.
      if (first.answer.clients > 0) this.#noLongerLeft(first)
      incoming.record.replayOf = id
      this.#count('attached')
      if (await attached) return undefined
      delete incoming.record.replayOf
    }
    if (!first.answer.hasEnded) this.#refuse()
    // The answer broke off or was not kept. One of the requests that received nothing makes the next call.
    return {}
  }

  async replay(
    kept: KeptAnswer,
    _first: ClaimedCall,
    { incoming, caller, settings, isForAnyModel }: Attempt,
  ): Promise<true> {
    const { answers, reads } = this.#services
    const { record, response } = incoming
    if (kept.model !== '' && !isForAnyModel) requirePermission(settings, caller, kept.model)
    record.model = kept.model
    record.replayOf = kept.facts
    try {
      await answers.send(kept, response, reads.of(caller.user.id), { headers: REPLAYED })
      this.#count('replayed')
      return true
    } catch (error) {
      // The answer was removed in the meantime, for instance to make room.
      return error instanceof GatewayError && error.code === 'not_found'
        ? this.#refuse()
        : Promise.reject(error)
    }
  }

  async make({ call: { incoming, run } }: ClaimedCall, recorded: IncomingCall): Promise<void> {
    recorded.isIdempotent = true
    try {
      await run(recorded)
    } catch (error) {
      const isLasting = error instanceof UpstreamRefusal && LASTING_REFUSALS.has(error.facts.status)
      const refusal = isLasting && !recorded.response.headersSent && incoming.render?.(error)
      if (!refusal) throw error
      recorded.response.writeHead(refusal.status, refusal.headers).end(refusal.body)
      // Repeating the call would not change the refusal, so it is an answer.
      recorded.hasFailed = false
    }
  }

  factsOf(_first: ClaimedCall, { hasFailed }: IncomingCall): true | undefined {
    return hasFailed === true ? undefined : true
  }

  async keep({ call, claim }: ClaimedCall, _facts: true, { head, pieces }: CompleteAnswer): Promise<void> {
    const { lookup, incoming, caller, settings } = call
    const { answers, claims } = this.#services
    const userId = caller.user.id
    const nowMs = Date.now()
    const expiresMs = nowMs + settings.options.idempotency.keep
    const isKept =
      pieces !== undefined &&
      (await answers
        .keep({
          kind: 'idempotency',
          key: lookup,
          userId,
          tokenId: caller.token.id,
          model: incoming.record.model ?? '',
          head,
          facts: incoming.id,
          pieces,
          createdMs: nowMs,
          expiresMs,
        })
        .catch(() => false))
    this.#count(isKept ? 'kept' : 'not_kept')
    await this.#end(lookup, () => claims.rows.write('endClaim', { lookup, userId, claim, expiresMs }))
  }

  release({ call: { lookup, caller }, claim }: ClaimedCall): Promise<void> {
    const { rows } = this.#services.claims
    return this.#end(lookup, () => rows.write('releaseClaim', { lookup, userId: caller.user.id, claim }))
  }

  over(call: ClaimedCall): void {
    this.#noLongerLeft(call)
    // Further attempts are given the kept answer, so the memory is freed as the attached ones read.
    call.answer.release()
  }

  /** Whether a call continues although all its clients have left; counts it once if so. */
  #stays(call: ClaimedCall): boolean {
    if (call.isLeft) return true
    const { id } = call.call.caller.user
    const left = this.#leftOfUsers.get(id) ?? 0
    if (left >= MAX_LEFT) return false
    this.#leftOfUsers.set(id, left + 1)
    call.isLeft = true
    this.#count('left')
    return true
  }

  #noLongerLeft(call: ClaimedCall): void {
    if (!call.isLeft) return
    call.isLeft = false
    const { id } = call.call.caller.user
    const left = (this.#leftOfUsers.get(id) ?? 0) - 1
    if (left > 0) this.#leftOfUsers.set(id, left)
    else this.#leftOfUsers.delete(id)
  }

  // While the database is unavailable, the end is written by whatever comes first: a retry, a renewal of claims, or the next
  // attempt at this call.
  #end(lookup: string, write: () => Promise<void>): Promise<void> {
    this.#ends.set(lookup, write)
    return this.#retried.run(() => this.#writeEnd(lookup), 0)
  }

  async #writeEnd(lookup: string): Promise<void> {
    const write = this.#ends.get(lookup)
    await write?.()
    if (this.#ends.get(lookup) === write) this.#ends.delete(lookup)
  }

  // Renews the claims of this process on calls. A claim lasts for three intervals, so one failed renewal does
  // no harm.
  async #renew(): Promise<void> {
    const { lookups } = this.#calls
    const { rows, node } = this.#services.claims
    try {
      for (let at = 0; at < lookups.length; at += RENEWED_AT_A_TIME) {
        const some = lookups.slice(at, at + RENEWED_AT_A_TIME)
        await rows.write('renewClaims', { lookups: some, node, leaseMs: LEASE_MS })
      }
      for (const lookup of this.#ends.keys()) await this.#writeEnd(lookup)
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

  #refuse(): never {
    this.#count('refused')
    throw new GatewayError(
      'idempotency_not_kept',
      'the answer to this request is not kept any more, or was too large to be kept; use another idempotency key',
    )
  }
}
