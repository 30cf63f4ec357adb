import type { Channel } from '../domain/records/channel.ts'

/** Number of minutes that are stored per channel, including the current one. */
export const RECORDED_MINUTES = 60
/**
 * Number of histogram buckets per doubling of the duration. The error of a percentile is therefore at most 9
 * %.
 */
const STEPS = 4
/** Number of histogram buckets. The last one counts all durations above an hour. */
const COUNTS = 88

/** Numbers of attempts at a channel in one minute, and how long they took. */
export interface MinuteFigures {
  readonly requests: number
  readonly failed: number
  /** Percentiles of the durations of successful attempts, in milliseconds; null if no attempt succeeded. */
  readonly p50_ms: number | null
  readonly p95_ms: number | null
}

/** The last failed attempt at a channel. */
export interface LastError {
  /** Time of the failed attempt in Unix milliseconds. */
  readonly atMs: number
  /** The cause of the failure, as one of a few fixed words that the metrics also use. */
  readonly cause: string
}

/** Numbers of attempts at a channel in the last hour, and how long they took. */
export interface HourFigures {
  readonly requests: number
  readonly failed: number
  readonly p50_ms: number | null
}

/**
 * Numbers of attempts at a channel in the last 15 minutes. For calls with a failed attempt at the channel,
 * also how they ended.
 */
export interface RecentFigures {
  readonly requests: number
  readonly failed: number
  /** Numbers of attempts since the channel's circuit breaker last closed. */
  readonly sinceRecovery: { readonly requests: number; readonly failed: number }
  /** Number of calls with a failed attempt at this channel that another channel then answered. */
  readonly rescued: number
  /**
   * Number of calls with a failed attempt at this channel that no other channel answered, so that they
   * failed.
   */
  readonly lost: number
}

/** Whether a channel has answered a call since the gateway was started. */
export type ChannelAnswerHistory = 'untried' | 'answered' | 'failed'

interface Minute {
  /** Number of the minute, counted from 1970-01-01, UTC. */
  number: number
  requests: number
  failed: number
  rescued: number
  lost: number
  /** Numbers of attempts since the channel's circuit breaker last closed. */
  readonly sinceRecovery: { requests: number; failed: number }
  readonly durations: Uint32Array
}

interface ChannelFigures {
  readonly minutes: (Minute | undefined)[]
  lastError: LastError | undefined
  /**
   * Unix milliseconds at which the present series of failures began. Failures belong to the same series if
   * they are less than `RECENT_MINUTES` apart.
   */
  failingSinceMs: number
  record: ChannelAnswerHistory
  /** Whether the channel's last test failed, and no call was answered since. */
  hasFailedTest: boolean
  /** Numbers of attempts by API key. */
  readonly keys: Map<string, KeyMinutes>
}

/** Numbers of attempts with one API key, by minute. */
interface KeyMinutes {
  readonly numbers: Float64Array
  readonly requests: Uint32Array
}

/** Number of most recent minutes by which the present condition of a channel is judged. */
const RECENT_MINUTES = 15

const IDLE: MinuteFigures = { requests: 0, failed: 0, p50_ms: null, p95_ms: null }

/**
 * Numbers of attempts at all channels on this node, for each minute of the last hour. They are stored by
 * channel name, so that they survive a reload of the configuration; after a start, those of the hour before are
 * restored from the usage log. `docs/administration.md: Channel health`.
 */
export class ChannelMinutes {
  readonly #channels = new Map<string, ChannelFigures>()
  readonly #now: () => number

  /** `now` returns Unix milliseconds, so that minutes begin at the same time on all nodes. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /**
   * Counts an attempt that took `tookMs` milliseconds. `cause` is the cause of its failure; undefined if it
   * succeeded.
   */
  note({ name }: Pick<Channel, 'name'>, tookMs: number, cause: string | undefined, key: string): void {
    const figures = this.#figuresOf(name)
    const nowMs = this.#now()
    const minute = minuteAt(figures, minuteOf(nowMs))
    minute.requests += 1
    minute.sinceRecovery.requests += 1
    noteKey(figures.keys, key, minute.number)
    if (cause === undefined) {
      figures.record = 'answered'
      figures.hasFailedTest = false
      const at = countOf(tookMs)
      minute.durations[at] = (minute.durations[at] ?? 0) + 1
    } else {
      minute.failed += 1
      minute.sinceRecovery.failed += 1
      noteFailure(figures, nowMs, cause)
    }
  }

  /**
   * Counts an attempt of a former process, which the usage log has. It counts as before a recovery: it says what
   * happened, and of the present condition only whether the channel has answered.
   */
  restore(name: string, atMs: number, tookMs: number, cause: string | null): void {
    const number = minuteOf(atMs)
    const last = minuteOf(this.#now())
    if (number > last) return
    const figures = this.#figuresOf(name)
    if (cause === null) figures.record = 'answered'
    if (number <= last - RECORDED_MINUTES) return
    const minute = minuteAt(figures, number)
    minute.requests += 1
    if (cause === null) {
      const at = countOf(tookMs)
      minute.durations[at] = (minute.durations[at] ?? 0) + 1
      return
    }
    minute.failed += 1
    if (figures.record === 'untried') figures.record = 'failed'
    if (figures.lastError && figures.lastError.atMs >= atMs) return
    figures.lastError = { atMs, cause }
    figures.failingSinceMs = atMs
  }

  /**
   * Records that a channel's circuit breaker has closed, so that earlier failures say nothing about its
   * present condition.
   */
  recovered(name: string): void {
    for (const minute of this.#channels.get(name)?.minutes ?? [])
      if (minute) Object.assign(minute.sinceRecovery, { requests: 0, failed: 0 })
  }

  /**
   * Records a test of a channel. `cause` is the cause of its failure; undefined if it succeeded. Tests are
   * not counted as attempts.
   */
  noteTest(name: string, cause: string | undefined): void {
    const figures = this.#figuresOf(name)
    figures.hasFailedTest = cause !== undefined
    if (cause === undefined) figures.record = 'answered'
    else noteFailure(figures, this.#now(), cause)
  }

  /** Records how a call ended that had a failed attempt at this channel. */
  noteCall({ name }: Channel, outcome: 'rescued' | 'lost'): void {
    minuteAt(this.#figuresOf(name), minuteOf(this.#now()))[outcome] += 1
  }

  #figuresOf(name: string): ChannelFigures {
    let figures = this.#channels.get(name)
    if (figures) return figures
    figures = {
      minutes: [],
      lastError: undefined,
      failingSinceMs: 0,
      record: 'untried',
      hasFailedTest: false,
      keys: new Map(),
    }
    this.#channels.set(name, figures)
    return figures
  }

  /** Whether a channel has answered in this process or in the day before, and whether its last test failed. */
  recordOf(name: string): { readonly record: ChannelAnswerHistory; readonly hasFailedTest: boolean } {
    const { record = 'untried', hasFailedTest = false } = this.#channels.get(name) ?? {}
    return { record, hasFailedTest }
  }

  /**
   * Numbers of attempts in the last 15 minutes, and the Unix milliseconds at which the present series of
   * failures began.
   */
  recent(name: string): RecentFigures & { readonly failingSinceMs: number } {
    const figures = this.#channels.get(name)
    const sums = { requests: 0, failed: 0, rescued: 0, lost: 0, sinceRecovery: { requests: 0, failed: 0 } }
    const after = minuteOf(this.#now()) - RECENT_MINUTES
    for (const minute of figures?.minutes ?? []) {
      if (!minute || minute.number <= after) continue
      sums.requests += minute.requests
      sums.failed += minute.failed
      sums.rescued += minute.rescued
      sums.lost += minute.lost
      sums.sinceRecovery.requests += minute.sinceRecovery.requests
      sums.sinceRecovery.failed += minute.sinceRecovery.failed
    }
    return { ...sums, failingSinceMs: figures?.failingSinceMs ?? 0 }
  }

  /** Numbers of attempts at a channel in the last hour, and how long they took. */
  hour(name: string): HourFigures {
    const after = minuteOf(this.#now()) - RECORDED_MINUTES
    const durations = new Uint32Array(COUNTS)
    let [requests, failed] = [0, 0]
    for (const minute of this.#channels.get(name)?.minutes ?? []) {
      if (!minute || minute.number <= after) continue
      requests += minute.requests
      failed += minute.failed
      for (const [at, count] of minute.durations.entries()) durations[at] = (durations[at] ?? 0) + count
    }
    return { requests, failed, p50_ms: percentile(durations, requests - failed, 0.5) }
  }

  /** Number of attempts with a key in the last hour, without those of a former process: the usage log does not name keys. */
  ofKey(name: string, key: string): number {
    const after = minuteOf(this.#now()) - RECORDED_MINUTES
    const { numbers = [], requests = [] } = this.#channels.get(name)?.keys.get(key) ?? {}
    let sum = 0
    for (const [at, number] of numbers.entries()) if (number > after) sum += requests[at] ?? 0
    return sum
  }

  /** The last 60 minutes of a channel, the oldest first; the last one is the current minute. */
  of(name: string): readonly MinuteFigures[] {
    const figures = this.#channels.get(name)
    const last = minuteOf(this.#now())
    return Array.from({ length: RECORDED_MINUTES }, (_, index) => {
      const number = last - RECORDED_MINUTES + 1 + index
      const minute = figures?.minutes[number % RECORDED_MINUTES]
      return minute?.number === number ? figuresOf(minute) : IDLE
    })
  }

  /** The last failed attempt at a channel; undefined if none has failed since the start. */
  lastError(name: string): LastError | undefined {
    return this.#channels.get(name)?.lastError
  }
}

function noteFailure(figures: ChannelFigures, nowMs: number, cause: string): void {
  const { lastError } = figures
  if (!lastError || nowMs - lastError.atMs > RECENT_MINUTES * 60_000) figures.failingSinceMs = nowMs
  figures.lastError = { atMs: nowMs, cause }
  if (figures.record === 'untried') figures.record = 'failed'
}

function noteKey(keys: Map<string, KeyMinutes>, key: string, number: number): void {
  let minutes = keys.get(key)
  if (!minutes) {
    minutes = { numbers: new Float64Array(RECORDED_MINUTES), requests: new Uint32Array(RECORDED_MINUTES) }
    keys.set(key, minutes)
  }
  const slot = number % RECORDED_MINUTES
  const isSame = minutes.numbers[slot] === number
  minutes.numbers[slot] = number
  minutes.requests[slot] = (isSame ? (minutes.requests[slot] ?? 0) : 0) + 1
}

function minuteOf(unixMs: number): number {
  return Math.floor(unixMs / 60_000)
}

function minuteAt({ minutes }: ChannelFigures, number: number): Minute {
  const slot = number % RECORDED_MINUTES
  const found = minutes[slot]
  if (found?.number === number) return found
  const durations = found?.durations.fill(0) ?? new Uint32Array(COUNTS)
  const minute = {
    number,
    requests: 0,
    failed: 0,
    rescued: 0,
    lost: 0,
    sinceRecovery: { requests: 0, failed: 0 },
    durations,
  }
  minutes[slot] = minute
  return minute
}

function figuresOf({ requests, failed, durations }: Minute): MinuteFigures {
  return {
    requests,
    failed,
    p50_ms: percentile(durations, requests - failed, 0.5),
    p95_ms: percentile(durations, requests - failed, 0.95),
  }
}

function countOf(tookMs: number): number {
  return Math.min(COUNTS - 1, Math.round(STEPS * Math.log2(Math.max(1, tookMs))))
}

// Returns the shortest duration that at least a `share` of all durations does not exceed, in milliseconds.
function percentile(durations: Uint32Array, total: number, share: number): number | null {
  let left = Math.ceil(total * share)
  for (const [at, count] of durations.entries()) {
    if (count > 0 && (left -= count) <= 0) return Math.round(2 ** (at / STEPS))
  }
  return null
}
