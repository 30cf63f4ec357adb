import type { Channel } from '../domain/channel.ts'
import { DenseSet } from '../domain/dense-set.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { rateLimited } from '../limits/rate-limiter.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ChannelHealth, Trial } from '../upstreams/channel-health.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import type { KeyRings, UpstreamKey } from '../upstreams/key-ring.ts'
import type { MissingModels } from '../upstreams/missing-models.ts'
import { Attempt } from './attempt.ts'
import type { Call, Target } from './call.ts'
import type { CallLimits } from './call-limits.ts'
import { FailedAttempts } from './failed-attempts.ts'
import { CLIENT_GONE, type Failure, STOPPING } from './failure.ts'
import type { FailureLog } from './failure-log.ts'
import type { Resolution } from './routing.ts'
import { RetryBudget } from './retry-budget.ts'
import type { Prepared } from './dialects/dialect.ts'
import type { AttemptEnd } from './response-handler.ts'

/** What attempts are made with. */
export interface AttemptParts {
  readonly upstreams: UpstreamClient
  readonly keyRings: KeyRings
  readonly health: ChannelHealth
  readonly missing: MissingModels
  readonly metrics: Metrics
  readonly limits: CallLimits
  readonly failureLog: FailureLog
}

interface Candidate {
  readonly channel: Channel
  readonly keys: readonly UpstreamKey[]
}

/** The attempts to have calls answered, and the clock that they are watched by. */
export class Attempts {
  readonly #parts: AttemptParts
  /** The attempts under way, and those whose upstream has not fallen silent yet. */
  readonly #underWay = new DenseSet<Attempt>()
  readonly #sweep: NodeJS.Timeout
  readonly #retries = new RetryBudget(performance.now())
  #stopped = false

  constructor(parts: AttemptParts) {
    this.#parts = parts
    // One timer for all calls: a timer for each would cost more than the calls.
    this.#sweep = setInterval(() => this.#tick(performance.now()), 1_000).unref()
  }

  /** Streams under way. */
  get openStreams(): number {
    return [...this.#underWay].filter((attempt) => attempt.isStream && !attempt.isFinished).length
  }

  /** Nothing begins any more: what the gateway was told to end is ending. */
  get isStopped(): boolean {
    return this.#stopped
  }

  /** Ends what is still under way, and lets nothing begin. */
  stop(): void {
    this.#stopped = true
    for (const attempt of this.#underWay) attempt.stop()
  }

  /** Stops the clock. */
  close(): void {
    clearInterval(this.#sweep)
    this.#parts.failureLog.close()
  }

  /**
   * Tries channel after channel and key after key, until an answer is settled. Rejects with what the caller
   * is to be told, where nothing was sent to it yet. A channel at its limit is passed over; where all are,
   * that is a `rate_limited`.
   */
  async run(call: Call, settings: Settings, { channels, model }: Resolution): Promise<void> {
    const { failureLog, keyRings, limits } = this.#parts
    using failed = new FailedAttempts(failureLog)
    this.#retries.callBegan(performance.now())
    // Preparing may fetch files, for as long as an upstream takes.
    call.response.needsUpstream()
    // What a channel cannot be asked, another may: one that speaks the caller's protocol can be asked
    // anything.
    let unaskable: unknown
    for (const { channel, keys } of this.#candidates(channels, call.request.model, settings)) {
      let prepared: Prepared
      try {
        prepared = await call.request.prepare(channel, model, settings.options.passThrough, call)
      } catch (error) {
        if (call.response.isAborted) {
          failed.add(CLIENT_GONE)
          throw failed.finalError()
        }
        unaskable ??= error
        continue
      }
      call.record.channel = channel.name
      for (const key of keys) {
        if (failed.hasAny && !this.#retries.take()) throw failed.finalError()
        const asked = limits.ask(channel)
        if (!(asked instanceof Promise ? await asked : asked)) break
        failed.nextAttemptAt(channel)
        let failure = await this.#tryOnce(call, { channel, prepared }, key)
        if (failure?.next === 'same-again') failure = await this.#tryOnce(call, { channel, prepared }, key)
        if (!failure) return
        if (call.hold.hasWriteFailed) throw unwritable()
        if (isOfUpstream(failure)) failed.addOfUpstream({ call, channel, key }, failure)
        else failed.add(failure)
        if (failure.blames === 'key') keyRings.startCooldown(channel, key, performance.now(), failure.cooldownMs)
        if (failure.blames === 'model')
          this.#parts.missing.add(channel, call.request.model, performance.now())
        if (failure.next === 'nowhere') throw failed.finalError()
        if (failure.next !== 'next-key') break
      }
    }
    if (failed.hasAny) throw failed.finalError()
    throw unaskable ?? this.#allLimited(channels)
  }

  #allLimited(channels: readonly Channel[]): GatewayError {
    const waitMs = Math.min(...channels.map((channel) => this.#parts.limits.waitMs(channel)))
    return rateLimited(waitMs, 'every channel for this model')
  }

  // Channels that rest or lately had no such model, and keys that were refused lately, are passed over,
  // unless there are no others: then they are as good as any.
  #candidates(channels: readonly Channel[], model: string, settings: Settings): Candidate[] {
    const { health, keyRings, limits } = this.#parts
    const nowMs = performance.now()
    const turns: Candidate[] = []
    const good: Candidate[] = []
    for (const channel of channels) {
      if (limits.waitMs(channel) > 0) continue
      const keys = keyRings.rotated(channel)
      turns.push({ channel, keys })
      if (health.isCircuitOpen(channel, nowMs) || this.#parts.missing.isMissing(channel, model, nowMs)) continue
      const taken = keys.filter((key) => !keyRings.isCoolingDown(channel, key, nowMs))
      if (taken.length > 0) good.push({ channel, keys: taken })
    }
    return (good.length > 0 ? good : turns).slice(0, 1 + settings.options.retries)
  }

  /** One attempt; undefined if the call is settled by it. Whatever becomes of it, its trial is ended here. */
  async #tryOnce(call: Call, target: Target, key: UpstreamKey): Promise<Failure | undefined> {
    const { response, request, record } = call
    if (response.isAborted) return CLIENT_GONE
    if (this.#stopped) return STOPPING
    const { channel } = target
    using trial = this.#parts.health.begin(channel)
    const attempt = new Attempt(call, target, performance.now())
    const unheed = response.onClosed(() => {
      if (response.isAborted) attempt.left()
    })
    this.#underWay.add(attempt)
    call.beginAttempt()
    let end: AttemptEnd | undefined
    try {
      this.#send(attempt, call, target, key)
      end = await attempt.end
      if (end !== 'settled' && end.blames === 'model' && request.mayBeUnserved) end = endpointMissing(end)
    } finally {
      unheed()
      this.#endTrial(trial, attempt, end, call)
      if (attempt.isSilent) this.#underWay.delete(attempt)
    }
    if (attempt.succeeded) {
      this.#parts.keyRings.endCooldown(channel, key)
      this.#parts.missing.remove(channel, request.model)
    }
    if (end === 'settled') {
      const { cut: brokenOff } = call
      if (brokenOff)
        this.#parts.failureLog.report(
          { call, channel, key, ...brokenOff },
          'ended the stream',
          performance.now(),
        )
      return undefined
    }
    record.failure = end.cause
    if (isOfUpstream(end) && !call.hold.hasWriteFailed)
      this.#parts.metrics.upstreamErrors.add(1, channel.name, end.cause)
    return end
  }

  #send(attempt: Attempt, { hold, request }: Call, { channel, prepared }: Target, key: UpstreamKey): void {
    const accept = request.stream ? 'text/event-stream' : 'application/json'
    const headers = [...prepared.headers, 'accept', accept]
    const { path, body } = prepared
    try {
      attempt.sent(this.#parts.upstreams.post(hold, channel, key, path, headers, body, attempt))
    } catch (error) {
      attempt.cancel()
      throw error
    }
  }

  // An upstream that breaks its answers off does not work either, and one whose caller left has not said yet.
  // `end` is missing where the call could not be settled. What is not judged here is unknown.
  #endTrial(trial: Trial, attempt: Attempt, end: AttemptEnd | undefined, { cut: brokenOff, hold }: Call): void {
    if (brokenOff && brokenOff.said === undefined) trial.failed(performance.now())
    else if (end === undefined || end === 'settled' || end === STOPPING || end.next === 'same-again') {
      if (attempt.succeeded) trial.succeeded()
    } else if (end.blames !== 'channel') trial.succeeded()
    else if (!hold.hasWriteFailed) trial.failed(performance.now(), end.cooldownMs)
  }

  #tick(nowMs: number): void {
    this.#parts.failureLog.tick(nowMs)
    for (const attempt of this.#underWay) {
      attempt.tick(nowMs)
      if (attempt.isFinished && attempt.isSilent) this.#underWay.delete(attempt)
    }
  }
}

// An upstream need not offer this request: its 404 says nothing of the channel or the model, and ends the
// call.
function endpointMissing(failure: Failure): Failure {
  return { ...failure, next: 'nowhere', blames: 'nobody', isExpected: true }
}

/** Whether it was an upstream that failed, and not its caller or the gateway. */
function isOfUpstream(failure: Failure): boolean {
  return failure !== CLIENT_GONE && failure !== STOPPING && failure.isExpected !== true
}

/** The accounts cannot be written: nothing can be begun. */
export function unwritable(): GatewayError {
  return new GatewayError('overloaded', 'the gateway cannot write its accounts at the moment; try again', {
    retryAfter: 5,
  })
}
