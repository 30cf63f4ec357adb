import type { Channel } from '../domain/channel.ts'
import { Roster } from '../domain/roster.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { rateLimited } from '../limits/limits.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { Upstreams } from '../upstreams/http.ts'
import type { KeyRings, UpstreamKey } from '../upstreams/key-ring.ts'
import { Attempt } from './attempt.ts'
import type { Call, Target } from './call.ts'
import type { CallLimits } from './call-limits.ts'
import { type Failure, lastWord, STOPPING } from './failure.ts'
import type { Resolution } from './resolve.ts'
import { RetryBudget } from './retry-budget.ts'
import type { Prepared } from './roads/road.ts'
import type { AttemptEnd } from './sink.ts'

/** What attempts are made with. */
export interface AttemptParts {
  readonly upstreams: Upstreams
  readonly keyRings: KeyRings
  readonly health: ChannelHealth
  readonly metrics: Metrics
  readonly limits: CallLimits
}

interface Turn {
  readonly channel: Channel
  readonly keys: readonly UpstreamKey[]
}

/** The attempts to have calls answered, and the clock that they are watched by. */
export class Attempts {
  readonly #parts: AttemptParts
  /** The attempts under way, and those whose upstream has not fallen silent yet. */
  readonly #underWay = new Roster<Attempt>()
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
  }

  /**
   * Tries channel after channel and key after key, until an answer is settled. Rejects with what the caller is to be told,
   * where nothing was sent to it yet. A channel at its limit is passed over; where all are, that is a `rate_limited`.
   */
  async run(call: Call, settings: Settings, { channels, model }: Resolution): Promise<void> {
    const { keyRings, limits } = this.#parts
    const failures: Failure[] = []
    this.#retries.called(performance.now())
    // What a channel cannot be asked, another may: one that speaks the caller's protocol can be asked anything.
    let unaskable: unknown
    for (const { channel, keys } of this.#inTurn(channels, settings)) {
      let prepared: Prepared
      try {
        prepared = await call.request.prepare(channel, model, settings.options.passThrough)
      } catch (error) {
        unaskable ??= error
        continue
      }
      call.record.channel = channel.name
      for (const key of keys) {
        if (failures.length > 0 && !this.#retries.take()) throw lastWord(failures)
        const asked = limits.ask(channel)
        if (!(asked instanceof Promise ? await asked : asked)) break
        let failure = await this.#once(call, { channel, prepared }, key)
        if (failure?.onward === 'same-again') failure = await this.#once(call, { channel, prepared }, key)
        if (!failure) return
        if (call.hold.isLost) throw unwritable()
        failures.push(failure)
        if (failure.blames === 'key') keyRings.setAside(channel, key, performance.now(), failure.restMs)
        if (failure.onward === 'nowhere') throw lastWord(failures)
        if (failure.onward !== 'next-key') break
      }
    }
    if (failures.length > 0) throw lastWord(failures)
    throw unaskable ?? this.#allLimited(channels)
  }

  #allLimited(channels: readonly Channel[]): GatewayError {
    const waitMs = Math.min(...channels.map((channel) => this.#parts.limits.waitMs(channel)))
    return rateLimited(waitMs, 'every channel for this model')
  }

  // Channels that rest, and keys that were refused lately, are passed over, unless there are no others: then they are as good
  // as any.
  #inTurn(channels: readonly Channel[], settings: Settings): Turn[] {
    const { health, keyRings, limits } = this.#parts
    const nowMs = performance.now()
    const turns: Turn[] = []
    const good: Turn[] = []
    for (const channel of channels) {
      if (limits.waitMs(channel) > 0) continue
      const keys = keyRings.inTurn(channel)
      turns.push({ channel, keys })
      if (health.isResting(channel, nowMs)) continue
      const taken = keys.filter((key) => !keyRings.isSetAside(channel, key, nowMs))
      if (taken.length > 0) good.push({ channel, keys: taken })
    }
    return (good.length > 0 ? good : turns).slice(0, 1 + settings.options.retries)
  }

  /** One attempt; undefined if the call is settled by it. */
  async #once(call: Call, target: Target, key: UpstreamKey): Promise<Failure | undefined> {
    const { response, hold, request, record } = call
    if (response.isLost) return CALLER_GONE
    if (this.#stopped) return STOPPING
    const { channel, prepared } = target
    const attempt = new Attempt(call, target, performance.now())
    const unheed = response.onClosed(() => {
      if (response.isLost) attempt.left()
    })
    this.#underWay.add(attempt)
    record.attempts = (record.attempts ?? 0) + 1
    this.#parts.health.begin(channel)
    const accept = request.stream ? 'text/event-stream' : 'application/json'
    attempt.sent(
      this.#parts.upstreams.post(
        hold,
        channel,
        key,
        prepared.path,
        [...prepared.headers, 'accept', accept],
        prepared.body,
        attempt,
      ),
    )
    try {
      const end = await attempt.end
      if (attempt.succeeded) this.#parts.keyRings.restore(channel, key)
      this.#judge(channel, end, attempt.succeeded, call.hasBrokenOff)
      if (end === 'settled') return undefined
      record.failure = end.cause
      if (end !== STOPPING) this.#parts.metrics.upstreamErrors.add(1, channel.name, end.cause)
      return end
    } finally {
      unheed()
      if (attempt.isSilent) this.#underWay.delete(attempt)
    }
  }

  // An upstream that breaks its answers off does not work either, and one whose caller left has not said yet.
  #judge(channel: Channel, end: AttemptEnd, succeeded: boolean, brokeOff: boolean): void {
    const { health } = this.#parts
    if (brokeOff) health.failed(channel, performance.now())
    else if (end === 'settled' || end === STOPPING || end.onward === 'same-again') {
      if (succeeded) health.works(channel)
      else health.unknown(channel)
    } else if (end.blames === 'channel') health.failed(channel, performance.now(), end.restMs)
    else health.works(channel)
  }

  #tick(nowMs: number): void {
    for (const attempt of this.#underWay) {
      attempt.tick(nowMs)
      if (attempt.isFinished && attempt.isSilent) this.#underWay.delete(attempt)
    }
  }
}

/** Nobody is there to be answered any more. */
const CALLER_GONE: Failure = {
  onward: 'nowhere',
  blames: 'nobody',
  restMs: undefined,
  refusal: undefined,
  cause: 'caller gone',
}

/** The accounts cannot be written: nothing can be begun. */
export function unwritable(): GatewayError {
  return new GatewayError('overloaded', 'the gateway cannot write its accounts at the moment; try again', {
    retryAfter: 5,
  })
}
