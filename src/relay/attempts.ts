import { DenseSet } from '../domain/dense-set.ts'
import type { Channel } from '../domain/records/channel.ts'
import { GatewayError } from '../errors.ts'
import { rateLimitError } from '../limits/rate-limiter.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ChannelHealth, CountedAttempt } from '../upstreams/channel-health.ts'
import type { ChannelLoad } from '../upstreams/channel-load.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { KeyRings, UpstreamKey } from '../upstreams/key-ring.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { MissingModels } from '../upstreams/missing-models.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import { Attempt } from './attempt.ts'
import type { CallLimits } from './call-limits.ts'
import type { Call } from './call.ts'
import type { FailureLog, FailureReaction, UpstreamFailure } from './failure-log.ts'
import {
  CALL_STOPPED,
  CLIENT_DISCONNECTED,
  missingEndpointFailure,
  type Failure,
  finalError,
  GATEWAY_STOPPING,
  isStoppedCall,
  WRITE_FAILURE_CAUSE,
} from './failure.ts'
import type { AttemptEnd } from './response-handler.ts'
import { guardedAttempt } from './guards/guarded-attempt.ts'
import { providerLimitBoundOf, moveExhaustedKeysLast } from './provider-limit-bound.ts'
import { RetryBudget } from './retry-budget.ts'
import type { SessionAffinity } from './affinity/affinity.ts'
import { withCacheDiagnosisRequest } from './affinity/cache-diagnosis-request.ts'
import { sessionHeaders, withCacheKey } from './affinity/cache-key.ts'
import type { AttemptRequest, ChannelPlan, ParsedRequest, Plan, AttemptTarget } from './request-stages.ts'

/** Services that attempts need. */
export interface AttemptServices {
  readonly upstreams: UpstreamClient
  readonly keyRings: KeyRings
  readonly providerLimits: ProviderLimits
  readonly health: ChannelHealth
  readonly load: ChannelLoad
  readonly minutes: ChannelMinutes
  readonly missing: MissingModels
  readonly affinity: Pick<SessionAffinity, 'counted'>
  readonly ends: ModelRetirements
  readonly metrics: Metrics
  readonly limits: CallLimits
  readonly failureLog: FailureLog
}

/** A channel to try, and its keys in the order in which they are tried. */
interface Candidate {
  readonly plan: ChannelPlan
  readonly keys: readonly UpstreamKey[]
  /** Whether every key has reached a limit that its provider stated, so that the channel is tried last. */
  readonly isSpent?: true
}

/** Runs the attempts of all calls and the timer that watches them. */
export class Attempts {
  readonly #services: AttemptServices
  /** Running attempts, and finished ones whose upstream still sends. */
  readonly #underWay = new DenseSet<Attempt>()
  readonly #sweep: NodeJS.Timeout
  readonly #retries = new RetryBudget(performance.now())
  #stopped = false

  constructor(services: AttemptServices) {
    this.#services = services
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
    using failed = new FailedAttempts(this.#services.failureLog, this.#services.minutes)
    this.#retries.callBegan(performance.now())
    // Preparing a request may fetch files, so from now on the client may have to wait as for an upstream.
    call.response.needsUpstream()
    const counted = new Set<Plan>()
    // A model is skipped if all of its channels are skipped. If that is true of all models, they are tried after all.
    for (const maySkip of plans.length > 1 ? [true, false] : [false]) {
      for (const plan of plans)
        if (await this.#tryModel(call, plan, failed, maySkip, counted)) {
          failed.answeredBy(call.incoming.record.channel)
          return
        }
      if (failed.hasAny || failed.preparationError !== undefined) break
    }
    throw failed.hasAny ? failed.finalError() : (failed.preparationError ?? this.#allLimited(plans))
  }

  /**
   * Tries the channels of one model. Returns true if the call is settled; throws if no other channel may be
   * tried. `counted`: fallbacks whose limits already include this call.
   */
  async #tryModel(
    call: Call,
    plan: Plan,
    failed: FailedAttempts,
    maySkip: boolean,
    counted: Set<Plan>,
  ): Promise<boolean> {
    const candidates = this.#candidates(call, plan, maySkip)
    if (candidates.length === 0) return false
    if (plan.model !== plan.requestedModel && !counted.has(plan)) {
      if (!(await this.#services.limits.askModel(plan.model))) return false
      counted.add(plan)
    }
    failed.nextModel(plan.request.model)
    call.switchModel(plan)
    for (const candidate of candidates) {
      // The prompt may have more tokens here than at the channel for which quota was reserved.
      const refusal = call.prompts && (await call.prompts.hold(call, plan, candidate.plan))
      if (refusal) {
        if (call.response.isAborted) failed.leave()
        failed.preparationError ??= refusal
        continue
      }
      const request = await this.#prepared(call, candidate.plan, failed)
      if (request && (await this.#tryKeys(call, candidate, request, failed))) return true
    }
    return false
  }

  // A request that cannot be converted for one channel may still be possible for another; a channel of the
  // client's dialect accepts any request.
  async #prepared(
    call: Call,
    plan: ChannelPlan,
    failed: FailedAttempts,
  ): Promise<AttemptRequest | undefined> {
    const { request, settings } = call.plan
    try {
      const prepared = await plan.prepare(settings.options.pass_through, call)
      const adapted = guardedAttempt(this.#adapted(call, prepared, plan.channel, request), call)
      return call.breaks && plan.channel.cache_diagnostics
        ? withCacheDiagnosisRequest(adapted, await call.breaks.answerIdAt(plan.channel.name))
        : adapted
    } catch (error) {
      if (call.response.isAborted) failed.leave()
      failed.preparationError ??= error
      return undefined
    }
  }

  /** Tries the keys of a channel. Returns true if the call is settled. */
  async #tryKeys(
    call: Call,
    { plan, keys }: Candidate,
    request: AttemptRequest,
    failed: FailedAttempts,
  ): Promise<boolean> {
    const { keyRings, limits, missing } = this.#services
    const { channel } = plan
    call.incoming.record.channel = channel.name
    for (const key of keys) {
      if (failed.hasAny && !this.#retries.take()) throw failed.finalError()
      if (!(await limits.ask(channel))) break
      failed.nextAttemptAt(channel)
      const target = { channel, key, client: call.plan.dialect.name, request, plan }
      let failure = await this.#tryOnce(call, target)
      if (failure?.next === 'same-again') failure = await this.#tryOnce(call, target)
      if (!failure) return true
      if (call.hold.writeFailure) throw call.hold.writeFailure
      if (isOfUpstream(failure)) failed.addOfUpstream({ call, channel, key }, failure)
      else failed.add(failure)
      if (failure.blames === 'key') keyRings.startCooldown(channel, key, performance.now(), failure)
      if (failure.blames === 'model') missing.add(channel, call.plan.request.model, performance.now())
      if (failure.next === 'nowhere') throw failed.finalError()
      if (failure.next !== 'next-key') break
    }
    return false
  }

  /**
   * Adds to a request what is the same for all keys of the channel: headers, the cache key, and changes for
   * the channel's upstream.
   */
  #adapted(
    { affinity, incoming }: Call,
    prepared: AttemptRequest,
    channel: Channel,
    { stream, dropped: before = [] }: ParsedRequest,
  ): AttemptRequest {
    const accept = prepared.passed?.accept ?? (stream ? 'text/event-stream' : 'application/json')
    const session = sessionHeaders(incoming.request.headers, channel)
    const request = {
      ...prepared,
      headers: [...prepared.headers, 'accept', accept, ...session],
      body: affinity ? withCacheKey(prepared, channel, affinity) : prepared.body,
      stream,
    }
    const adapted = this.#services.upstreams.adapt(channel, request)
    const { body, dropped, headers = request.headers } = adapted
    if (body === request.body && headers === request.headers && dropped.length + before.length === 0)
      return request
    return { ...request, headers, body, dropped: [...new Set([...before, ...prepared.dropped, ...dropped])] }
  }

  #allLimited(plans: readonly Plan[]): GatewayError {
    const channels = plans.flatMap((plan) => plan.channels)
    const waitMs = Math.min(...channels.map(({ channel }) => this.#services.limits.waitMs(channel)))
    return rateLimitError(waitMs, 'every channel for this model')
  }

  // Skips channels that are drained, no longer serve the model, have an open circuit breaker or recently
  // lacked the model, and keys that were recently refused. If nothing is left, all are tried anyway, unless
  // `maySkip` allows skipping the model.
  #candidates({ affinity }: Call, plan: Plan, maySkip: boolean): Candidate[] {
    const {
      channels,
      request: { model },
      settings,
    } = plan
    const { health, keyRings, limits, providerLimits } = this.#services
    const nowMs = performance.now()
    const ends = this.#services.ends.of(settings)
    const today = ends.isEmpty ? 0 : Date.now()
    const all: Candidate[] = []
    const good: Candidate[] = []
    for (const candidate of channels) {
      const { channel } = candidate
      if (limits.waitMs(channel) > 0) continue
      const keys = keysFor(candidate, keyRings.rotated(channel))
      all.push({ plan: candidate, keys })
      if (channel.isDrained || health.isOpen(channel, nowMs)) continue
      if (ends.hasEnded(channel, model, today)) continue
      if (this.#services.missing.isMissing(channel, model, nowMs)) continue
      const usable = keys.filter((key) => !keyRings.isCoolingDown(channel, key, nowMs))
      if (usable.length === 0) continue
      const upstreamModel = candidate.tools?.model ?? channel.model_mapping.get(model) ?? model
      const bound = providerLimitBoundOf(plan, candidate)
      const able = usable.filter((key) => providerLimits.canTake(channel, key, upstreamModel, bound))
      const isSpent = able.length === 0
      const inTurn = isSpent ? usable : able
      const ordered = affinity ? affinity.ordered(plan, channel, inTurn) : inTurn
      good.push({ plan: candidate, keys: ordered, ...(isSpent && { isSpent }) })
    }
    if (good.some(({ isSpent }) => isSpent)) moveExhaustedKeysLast(good)
    return (good.length > 0 || maySkip ? good : all).slice(0, 1 + settings.options.retries)
  }

  /**
   * Makes one attempt and always counts it at the circuit breaker. Returns undefined if the attempt settled the call.
   */
  async #tryOnce(call: Call, target: AttemptTarget): Promise<Failure | undefined> {
    const { response, incoming } = call
    const { request } = call.plan
    if (response.isAborted) return CLIENT_DISCONNECTED
    if (this.#stopped) return GATEWAY_STOPPING
    if (call.isStopped) return CALL_STOPPED
    const { channel, key } = target
    using counted = this.#services.health.begin(channel)
    const { load, minutes } = this.#services
    const startedMs = performance.now()
    const answered = this.#services.providerLimits.begin(
      channel,
      key,
      target.request.upstreamModel,
      providerLimitBoundOf(call.plan, target.plan),
    )
    const attempt = new Attempt(call, target, load, startedMs, answered)
    const unsubscribe = response.onClosed(() => {
      if (response.isAborted) attempt.onClientLeft()
    })
    this.#underWay.add(attempt)
    load.begin(channel)
    call.beginAttempt(target)
    if (call.affinity) call.affinity.attempted(call.plan, target)
    else this.#services.affinity.counted(call.plan, target)
    call.attempt = attempt
    let end: AttemptEnd | undefined
    try {
      this.#send(attempt, call, target)
      end = await attempt.end
      if (end !== 'settled' && end.blames === 'model' && request.mayBeUnserved)
        end = missingEndpointFailure(end)
    } finally {
      unsubscribe()
      load.end(channel)
      answered()
      this.#count(counted, attempt, end, call)
      noteAttempt(minutes, target, performance.now() - startedMs, end, call)
      if (attempt.isSilent) this.#underWay.delete(attempt)
    }
    if (attempt.succeeded) {
      this.#services.keyRings.endCooldown(channel, key, startedMs)
      this.#services.missing.remove(channel, request.model)
    }
    if (end === 'settled') {
      const { cut } = call
      if (cut)
        this.#services.failureLog.report(
          { call, channel, key, ...cut },
          'ended the stream',
          performance.now(),
        )
      return undefined
    }
    incoming.record.failure = end.cause
    call.attempts.failed(end)
    if (isOfUpstream(end) && !call.hold.hasWriteFailed)
      this.#services.metrics.add('upstreamErrors', 1, channel.name, end.cause)
    return end
  }

  #send(attempt: Attempt, call: Call, target: AttemptTarget): void {
    const { channel, key } = target
    const request = call.content ? { ...target.request, onBody: call.content.onBody } : target.request
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
    if (cut && cut.upstreamMessage === undefined) counted.failed(performance.now())
    else if (
      end === undefined ||
      end === 'settled' ||
      end === GATEWAY_STOPPING ||
      isStoppedCall(end) ||
      end.next === 'same-again'
    ) {
      if (attempt.succeeded) counted.succeeded()
    } else if (end.blames !== 'channel') counted.succeeded()
    else if (!hold.hasWriteFailed) counted.failed(performance.now(), end.cooldownMs)
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
 * The keys of the provider account to which the request is bound. If the request is not bound to an account,
 * or the account's key no longer exists: all keys.
 */
function keysFor(plan: ChannelPlan, keys: readonly UpstreamKey[]): readonly UpstreamKey[] {
  const own = keys.filter((key) => plan.isOfKey?.(key) ?? true)
  return own.length > 0 ? own : keys
}

/** Whether the upstream caused the failure, rather than the client or the gateway. */
function isOfUpstream(failure: Failure): boolean {
  const isOwn =
    failure === CLIENT_DISCONNECTED ||
    failure === GATEWAY_STOPPING ||
    isStoppedCall(failure) ||
    failure.cause === WRITE_FAILURE_CAUSE
  return !isOwn && failure.isExpected !== true
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
  else if (end.next !== 'same-again')
    minutes.note(
      channel,
      tookMs,
      isOfUpstream(end) && !hold.hasWriteFailed ? end.cause : undefined,
      key.value,
    )
}

/**
 * Failed attempts of one call. Each failure is logged together with what happens next: another attempt, the
 * final error, or the end of the call.
 */
class FailedAttempts implements Disposable {
  readonly #log: FailureLog
  readonly #minutes: ChannelMinutes
  readonly #failures: Failure[] = []
  /** Channels that failed; undefined before the first one. */
  #channels: Set<Channel> | undefined
  /** The first error of a channel for which no request could be prepared; undefined if there is none. */
  preparationError: unknown
  #model: string | undefined
  #unlogged: (UpstreamFailure & { readonly failure: Failure }) | undefined

  constructor(log: FailureLog, minutes: ChannelMinutes) {
    this.#log = log
    this.#minutes = minutes
  }

  /** Whether any attempt failed so far. */
  get hasAny(): boolean {
    return this.#failures.length > 0
  }

  /** Adds a failure of which no warning is logged, for instance the client's disconnect. */
  add(failure: Failure): void {
    this.#failures.push(failure)
  }

  /** Throws the error for a client that has left. */
  leave(): never {
    this.add(CLIENT_DISCONNECTED)
    throw this.finalError()
  }

  /** Adds a failure of an upstream. */
  addOfUpstream(
    { call, channel, key }: Pick<UpstreamFailure, 'call' | 'channel' | 'key'>,
    failure: Failure,
  ): void {
    this.#failures.push(failure)
    ;(this.#channels ??= new Set()).add(channel)
    const { cause, status, upstreamMessage } = failure
    const stated = status === undefined ? {} : { status }
    this.#unlogged = { call, channel, key, cause, failure, ...stated, upstreamMessage }
  }

  /** Logs the last failure, now that another attempt begins at this channel. */
  nextAttemptAt(channel: Channel): void {
    if (this.#unlogged) this.#writeLog(this.#unlogged.channel === channel ? 'next key' : 'next channel')
  }

  /** Logs the last failure if another model is tried. */
  nextModel(name: string): void {
    if (this.#model !== undefined && this.#model !== name) this.#writeLog('next model')
    this.#model = name
  }

  /**
   * Records which channel settled the call. The channels that failed count the call as rescued by another channel.
   */
  answeredBy(name: string | undefined): void {
    for (const channel of this.#channels ?? [])
      if (channel.name !== name) this.#minutes.noteCall(channel, 'rescued')
  }

  /** The error for the client after all attempts failed. */
  finalError(): Error {
    const error = finalError(this.#failures)
    if (this.#failures.at(-1) !== CLIENT_DISCONNECTED)
      for (const channel of this.#channels ?? []) this.#minutes.noteCall(channel, 'lost')
    this.#writeLog(error === this.#unlogged?.failure.refusal ? 'returned to the client' : 'gave up')
    return error
  }

  [Symbol.dispose](): void {
    this.#writeLog('gave up')
  }

  #writeLog(reaction: FailureReaction): void {
    const failure = this.#unlogged
    if (!failure) return
    this.#unlogged = undefined
    this.#log.report(failure, reaction, performance.now())
  }
}
