import { DenseSet } from '../domain/dense-set.ts'
import type { Channel } from '../domain/records/channel.ts'
import { GatewayError } from '../errors.ts'
import { rateLimitError } from '../limits/rate-limiter.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type Account, ALL_MODELS, type RestKind } from '../upstreams/account-rests.ts'
import { ChannelHealth, type CountedAttempt } from '../upstreams/channel-health.ts'
import { ChannelLoad } from '../upstreams/channel-load.ts'
import { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import { KeyRings, type UpstreamKey } from '../upstreams/key-ring.ts'
import { MissingModels } from '../upstreams/missing-models.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import { Attempt } from './attempt.ts'
import { both } from './call-features.ts'
import type { Call } from './call.ts'
import { type Candidate, type CandidateServices, candidatesOf, shortestRestMs } from './candidates.ts'
import { throwIfUncounted } from './dialects/count-tokens.ts'
import { FailedAttempts } from './failed-attempts.ts'
import type { FailureLog } from './failure-log.ts'
import { type NextAttempt, ruleOf } from './failure-table.ts'
import {
  CALL_STOPPED,
  CLIENT_DISCONNECTED,
  finalError,
  missingEndpointFailure,
  type Failure,
  GATEWAY_STOPPING,
  isStoppedCall,
} from './failure.ts'
import type { AttemptWatcher } from './feature.ts'
import type { AttemptEnd } from './response-handler.ts'
import { RetryBudget } from './retry-budget.ts'
import { sessionHeaders } from './session.ts'
import type { AttemptRequest, ChannelPlan, ParsedRequest, Plan, AttemptTarget } from './request-stages.ts'

/** Services that attempts need. */
export interface AttemptServices extends CandidateServices {
  readonly upstreams: UpstreamClient
  readonly load: ChannelLoad
  readonly minutes: ChannelMinutes
  readonly metrics: Metrics
  readonly failureLog: FailureLog
}

/**
 * How the attempts with some accounts ended: the call is settled; other accounts may be tried; none may; or
 * only models for requests that are too long or filtered.
 */
type Outcome = 'settled' | 'failed' | 'over' | 'context_fallback' | 'content_fallback'

const OUTCOMES: Readonly<Record<Exclude<NextAttempt, 'keys'>, Outcome>> = {
  nothing: 'over',
  same: 'failed',
  channels: 'failed',
  context_fallback: 'context_fallback',
  content_fallback: 'content_fallback',
}

/** An answer of an upstream that came later than its request. */
export interface LaterAnswer {
  readonly status: number
  readonly body: Buffer
  /** The body of the request as it was sent, of the one that is made for the channel now. */
  readonly asSent: (made: Buffer) => Buffer
}

const NO_WATCHER: AttemptWatcher = {}

/** Ends the trial of a key that rests. The key is used again as soon as its provider accepts a request. */
function watcherOfTrial(end: () => void): AttemptWatcher {
  return {
    head({ status }) {
      if (status < 300) end()
    },
    over: end,
  }
}

/** Runs the attempts of all calls and the timer that watches them. */
export class Attempts {
  readonly #services: AttemptServices
  /**
   * The services for requests that count tokens. Calls do not read their results, because a provider permits and
   * limits counting separately.
   */
  readonly #countServices: AttemptServices
  /** Running attempts, and finished ones whose upstream still sends. */
  readonly #underWay = new DenseSet<Attempt>()
  readonly #sweep: NodeJS.Timeout
  readonly #retries = new RetryBudget(performance.now())
  #stopped = false

  constructor(services: AttemptServices) {
    this.#services = services
    this.#countServices = {
      ...services,
      health: new ChannelHealth(),
      keyRings: new KeyRings(),
      load: new ChannelLoad(),
      minutes: new ChannelMinutes(),
      missing: new MissingModels(),
    }
    // One timer for all calls, because a timer for each would cost more than the calls.
    this.#sweep = setInterval(() => this.#tick(performance.now()), 1_000).unref()
  }

  /** Number of running streams. */
  get openStreams(): number {
    return [...this.#underWay].filter((attempt) => attempt.isStream && !attempt.isFinished).length
  }

  /** Whether the gateway stops, so that no attempt may begin. */
  get isStopped(): boolean {
    return this.#stopped
  }

  /** Ends the running attempts and allows no further ones. */
  stop(): void {
    this.#stopped = true
    for (const attempt of this.#underWay) attempt.stopWithGateway()
  }

  /** Stops the timer that watches running attempts. */
  close(): void {
    clearInterval(this.#sweep)
    this.#services.failureLog.close()
  }

  /**
   * Tries models, channels and keys, in this order, until a response is settled. Rejects with the error for
   * the client, as long as nothing was sent to the client. A channel that has reached its rate limit is
   * skipped; if all channels have, the error is `rate_limited`.
   */
  async run(call: Call, plans: readonly Plan[]): Promise<void> {
    const { failureLog, minutes } = this.#servicesFor(call)
    const failed = new FailedAttempts(failureLog, minutes)
    // Every call passes here and `#tryOnce`; `using` would take twenty times as long as `finally`.
    try {
      this.#retries.callBegan(performance.now())
      // Preparing a request may fetch files, so from now on the client may have to wait as for an upstream.
      call.response.needsUpstream()
      const counted: Plan[] = []
      for (let left = plans.filter(({ reason }) => reason === undefined); left.length > 0; ) {
        const outcome = await (left.length === 1
          ? this.#tryModel(call, left[0] as Plan, failed, false, counted)
          : this.#tryModels(call, left, failed, counted))
        if (outcome === 'settled') {
          failed.answeredBy(call.incoming.record.channel)
          return
        }
        if (outcome === 'failed' || outcome === 'over') break
        left = failed.mayChange(outcome) ? plans.filter(({ reason }) => reason === outcome) : []
      }
      const { last } = failed
      if (last?.passOn) {
        await last.passOn()
        return
      }
      if (last && call.plan.dialect.isCount) throwIfUncounted(last, call.plan.request)
      if (failed.hasAny) {
        const error = failed.finalError(() => shortestRestMs(this.#services, plans))
        call.features.failed(call, error)
        throw error
      }
      throw failed.preparationError ?? this.#unserved(plans)
    } finally {
      failed[Symbol.dispose]()
    }
  }

  async #tryModels(
    call: Call,
    plans: readonly Plan[],
    failed: FailedAttempts,
    counted: Plan[],
  ): Promise<Outcome> {
    let outcome: Outcome = 'failed'
    // A model is skipped if all of its channels are skipped. If that is true of all models, they are tried after all.
    for (const maySkip of [true, false]) {
      for (const plan of plans) {
        outcome = await this.#tryModel(call, plan, failed, maySkip, counted)
        // A request may be too long for the first of the models for long requests, and not for the second.
        if (outcome !== 'failed' && outcome !== plan.reason) return outcome
      }
      if (failed.hasAny || failed.preparationError !== undefined) break
    }
    return outcome
  }

  /** Tries the channels of one model. `counted`: fallbacks whose limits already include this call. */
  async #tryModel(
    call: Call,
    plan: Plan,
    failed: FailedAttempts,
    maySkip: boolean,
    counted: Plan[],
  ): Promise<Outcome> {
    const candidates = candidatesOf(this.#services, call, plan, maySkip)
    if (candidates.length === 0) return 'failed'
    const { limits } = this.#services
    await limits.countModel(call.incoming, plan.requestedModel)
    if (plan.model !== plan.requestedModel && !counted.includes(plan)) {
      if (!(await limits.askModel(plan.model))) return 'failed'
      counted.push(plan)
    }
    failed.nextModel(plan.request.model)
    call.switchModel(plan)
    const left: { readonly candidate: Candidate; readonly request: AttemptRequest }[] = []
    for (const candidate of candidates) {
      // The prompt may have more tokens here than at the channel for which quota was reserved.
      const refusal = await call.features.tried(call, plan, candidate.plan)
      if (refusal) {
        if (call.response.isAborted) this.#leave(failed)
        failed.preparationError ??= refusal
        continue
      }
      const request = await this.#prepared(call, candidate.plan, failed)
      if (!request) continue
      const { outcome, keys } = await this.#tryKeys(call, candidate, request, failed)
      if (outcome !== 'failed') return outcome
      if (keys.length > 0) left.push({ candidate: { ...candidate, keys }, request })
    }
    // Where a server has answered with an error, another account at the same server may still be served.
    for (const { candidate, request } of left) {
      const { outcome } = await this.#tryKeys(call, candidate, request, failed)
      if (outcome !== 'failed') return outcome
    }
    return 'failed'
  }

  // A request that cannot be converted for one channel may still be possible for another; a channel of the
  // client's dialect accepts any request.
  async #prepared(
    call: Call,
    plan: ChannelPlan,
    failed: FailedAttempts,
  ): Promise<AttemptRequest | undefined> {
    try {
      return await this.prepare(call, plan)
    } catch (error) {
      if (call.response.isAborted) this.#leave(failed)
      if (error instanceof GatewayError && error.isFinal) throw error
      failed.preparationError ??= error
      return undefined
    }
  }

  /** Makes the request of a call for a channel. Rejects with the error for the client if that is impossible. */
  async prepare(call: Call, plan: ChannelPlan): Promise<AttemptRequest> {
    const { request, settings } = call.plan
    const prepared = await plan.prepare(settings.options.pass_through, call)
    const own = this.#adapted(call, prepared, plan.channel, request)
    return call.features.adapted(call, own, plan.channel)
  }

  /**
   * Ends a call with an answer that came otherwise than by a request of the call. Rejects with the error for the client if
   * the answer is one. The channel's health and limits are not concerned.
   */
  async take(call: Call, plan: ChannelPlan, key: UpstreamKey, answer: LaterAnswer): Promise<void> {
    const request = await this.prepare(call, plan)
    const { channel } = plan
    call.incoming.record.channel = channel.name
    const { name: client } = call.plan.dialect
    const target = { channel, key, client, request, plan, words: call.words, features: call.features }
    const watcher = call.features.attempted(call, target)
    const attempt = new Attempt(call, target, new ChannelLoad(), performance.now(), watcher)
    call.beginAttempt(target, attempt)
    const { status, body, asSent } = answer
    if (Buffer.isBuffer(request.body)) request.onBody?.(asSent(request.body))
    attempt.onHead({ status, contentType: 'application/json', retryAfter: undefined, headers: {} })
    attempt.onData(body)
    attempt.onEnd()
    const end = await attempt.end
    watcher?.over?.()
    if (end === 'settled') return
    call.incoming.record.failure = end.cause
    call.attempts.failed(end)
    if (end.passOn) await end.passOn()
    else throw finalError([end], () => undefined)
  }

  /**
   * Tries the keys of a channel. `keys` of the result are those that may be tried after the other channels.
   * `docs/operations.md: Decisions after a failure`.
   */
  async #tryKeys(
    call: Call,
    { plan, keys }: Candidate,
    request: AttemptRequest,
    failed: FailedAttempts,
  ): Promise<{ readonly outcome: Outcome; readonly keys: readonly UpstreamKey[] }> {
    const { channel } = plan
    call.incoming.record.channel = channel.name
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index] as UpstreamKey
      const account = { channel: channel.name, key: key.value, model: request.upstreamModel }
      // A move to another account is never refused, because it may be able to serve the call. Limited is what
      // asks again where the call has failed.
      const isPaid = !failed.hasAny || this.#retries.take()
      if (!isPaid && failed.isOf(account)) continue
      if (!(await this.#services.limits.ask(channel))) break
      failed.nextAttemptAt(channel)
      const { name: client } = call.plan.dialect
      const target = { channel, key, client, request, plan, words: call.words, features: call.features }
      let failure = await this.#tryOnce(call, target)
      if (failure && ruleOf(failure).next === 'same') failure = await this.#tryOnce(call, target)
      if (!failure) return { outcome: 'settled', keys: [] }
      if (call.hold.writeFailure) throw call.hold.writeFailure
      const rule = ruleOf(failure)
      if (rule.counts) failed.addOfUpstream({ call, channel, key }, account, failure)
      else failed.add(failure)
      if (rule.blames === 'model')
        this.#services.missing.add(channel, call.plan.request.model, performance.now())
      if (failure.hasUsage && !failed.mayPayAgain()) return { outcome: 'over', keys: [] }
      if (rule.next === 'keys') continue
      const outcome = OUTCOMES[rule.next]
      const mayAskAgain = outcome === 'failed' && failure.kind !== 'no_answer' && rule.blames !== 'model'
      return { outcome, keys: mayAskAgain ? keys.slice(index + 1) : [] }
    }
    return { outcome: 'failed', keys: [] }
  }

  /**
   * Adds to a request what is the same for all keys of the channel: headers, the cache key, and changes for
   * the channel's upstream.
   */
  #adapted(
    call: Call,
    prepared: AttemptRequest,
    channel: Channel,
    { stream, dropped: before = [] }: ParsedRequest,
  ): AttemptRequest {
    const accept = prepared.passed?.accept ?? (stream ? 'text/event-stream' : 'application/json')
    const session = sessionHeaders(call.incoming.request.headers, channel)
    const headers = [...prepared.headers, 'accept', accept, ...session]
    const request = call.features.adapt(call, { ...prepared, headers, stream }, channel)
    const adapted = this.#services.upstreams.adapt(channel, request)
    const { body, dropped, headers: changed = request.headers } = adapted
    if (body === request.body && changed === request.headers && dropped.length + before.length === 0)
      return request
    return {
      ...request,
      headers: changed,
      body,
      dropped: [...new Set([...before, ...prepared.dropped, ...dropped])],
    }
  }

  /** Throws the error for a client that has left. */
  #leave(failed: FailedAttempts): never {
    failed.add(CLIENT_DISCONNECTED)
    throw failed.finalError(() => undefined)
  }

  #unserved(plans: readonly Plan[]): GatewayError {
    const channels = plans.flatMap((plan) => plan.channels)
    const waitMs = Math.min(...channels.map(({ channel }) => this.#services.limits.waitMs(channel)))
    return rateLimitError(waitMs, 'every channel for this model')
  }

  /**
   * Makes one attempt and always counts it at the circuit breaker. Returns undefined if the attempt settled the call.
   */
  async #tryOnce(call: Call, target: AttemptTarget): Promise<Failure | undefined> {
    const { response, incoming } = call
    const { dialect, request } = call.plan
    if (response.isAborted) return CLIENT_DISCONNECTED
    if (this.#stopped) return GATEWAY_STOPPING
    if (call.isStopped) return CALL_STOPPED
    const { channel, key } = target
    const { failureLog, health, keyRings, load, metrics, minutes, missing } = this.#servicesFor(call)
    const counted = health.begin(channel)
    try {
      const account = { channel: channel.name, key: key.value, model: target.request.upstreamModel }
      const endTrial = keyRings.rests.begin(account)
      const startedMs = performance.now()
      const watching = call.features.attempted(call, target)
      const watcher = endTrial ? both(watcherOfTrial(endTrial), watching ?? NO_WATCHER) : watching
      const attempt = new Attempt(call, target, load, startedMs, watcher, counted)
      const unsubscribe = response.onClosed(() => {
        if (response.isAborted) attempt.onClientLeft()
      })
      this.#underWay.add(attempt)
      load.begin(channel)
      call.beginAttempt(target, attempt, startedMs)
      let end: AttemptEnd | undefined
      try {
        this.#send(attempt, call, target)
        end = await attempt.end
        if (end !== 'settled' && end.kind === 'model_missing' && dialect.mayBeUnserved)
          end = missingEndpointFailure(end)
      } finally {
        unsubscribe()
        load.end(channel)
        watcher?.over?.()
        this.#count(counted, attempt, end, call)
        noteAttempt(minutes, target, performance.now() - startedMs, end, call)
        if (attempt.isSilent) this.#underWay.delete(attempt)
      }
      if (attempt.succeeded) {
        // A response can begin with success and then contain an error.
        if (end === 'settled' && !call.cut) keyRings.rests.succeeded(account, startedMs)
        missing.remove(channel, request.model)
      }
      if (end === 'settled') {
        const { cut } = call
        if (cut) failureLog.report({ call, channel, key, ...cut }, 'ended the stream', performance.now())
        if (cut?.failure) rest(keyRings, account, cut.failure, startedMs)
        return undefined
      }
      incoming.record.failure = end.cause
      call.attempts.failed(end)
      rest(keyRings, account, end, startedMs)
      if (ruleOf(end).counts && !call.hold.hasWriteFailed)
        metrics.add('upstreamErrors', 1, channel.name, end.cause)
      return end
    } finally {
      counted[Symbol.dispose]()
    }
  }

  #servicesFor({ plan }: Call): AttemptServices {
    return plan.dialect.isCount ? this.#countServices : this.#services
  }

  #send(attempt: Attempt, call: Call, target: AttemptTarget): void {
    const { channel, key } = target
    const { request } = target
    try {
      const sent = this.#services.upstreams.send(call.hold, channel, key, request, attempt)
      call.attempts.onSent(sent)
      attempt.onSent(sent, (body) => this.#send(attempt, call, { ...target, request: { ...request, body } }))
    } catch (error) {
      attempt.cancel()
      throw error
    }
  }

  // An upstream that breaks off its responses counts as failed. If the client left, the result is unknown.
  // `end` is undefined if the call could not be settled.
  #count(counted: CountedAttempt, attempt: Attempt, end: AttemptEnd | undefined, { cut, hold }: Call): void {
    if (cut?.isOfChannel) counted.failed(performance.now())
    else if (
      end === undefined ||
      end === 'settled' ||
      end === GATEWAY_STOPPING ||
      isStoppedCall(end) ||
      end.kind === 'connection_lost'
    ) {
      if (attempt.succeeded) counted.succeeded()
    } else if (ruleOf(end).rest !== 'breaker') counted.succeeded()
    else if (!hold.hasWriteFailed) counted.failed(performance.now(), end.restMs)
  }

  #tick(nowMs: number): void {
    this.#services.failureLog.tick(nowMs)
    for (const attempt of this.#underWay) {
      attempt.tick(nowMs)
      if (attempt.isFinished && attempt.isSilent) this.#underWay.delete(attempt)
    }
  }
}

/**
 * Records an attempt in the channel's statistics. It counts as failed if the upstream failed before or during
 * its response. An attempt over a connection that was already dead is repeated and does not count.
 */
function noteAttempt(
  minutes: ChannelMinutes,
  { channel, key }: AttemptTarget,
  tookMs: number,
  end: AttemptEnd | undefined,
  { cut, hold }: Call,
): void {
  if (end === undefined || end === 'settled') minutes.note(channel, tookMs, cut?.cause, key.value)
  else if (end.kind !== 'connection_lost')
    minutes.note(
      channel,
      tookMs,
      ruleOf(end).counts && !hold.hasWriteFailed ? end.cause : undefined,
      key.value,
    )
}

/** Lets the account rest that a failure blames. */
function rest(
  { rests }: KeyRings,
  account: Account,
  { kind, cause, restMs: statedMs }: Failure,
  askedMs: number,
): void {
  const { blames } = ruleOf({ kind })
  if (blames !== 'key' && blames !== 'key and model') return
  const rested = blames === 'key' ? { ...account, model: ALL_MODELS } : account
  rests.start(rested, { kind: kind as RestKind, cause, statedMs }, performance.now(), askedMs)
}
