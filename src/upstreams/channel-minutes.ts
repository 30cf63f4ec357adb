import type { Channel } from '../domain/records/channel.ts'

/** Number of minutes kept for a channel, including the current one. */
export const RECORDED_MINUTES = 60
/** Histogram buckets per doubling of the duration; the error of a percentile is at most 9 %. */
const STEPS = 4
/** Number of buckets; the last one contains everything above an hour. */
const COUNTS = 88

/** Attempts at a channel in one minute. */
export interface MinuteFigures {
  readonly requests: number
  readonly failed: number
  /** Percentiles of the durations of successful attempts, in milliseconds; null if there are none. */
  readonly p50_ms: number | null
  readonly p95_ms: number | null
}

/** The last failed attempt at a channel. */
export interface LastError {
  /** Unix milliseconds. */
  readonly atMs: number
  /** The cause in a few fixed words, as in the metrics. */
  readonly cause: string
}

/** Attempts of the last hour. */
export interface HourFigures {
  readonly requests: number
  readonly failed: number
  readonly p50_ms: number | null
}

/** Attempts at a channel in the last 15 minutes, and how the calls ended that failed at it at least once. */
export interface RecentFigures {
  readonly requests: number
  readonly failed: number
  /** Attempts since the channel last recovered from a cooldown. */
  readonly sinceRecovery: { readonly requests: number; readonly failed: number }
  /** Calls that another channel answered. */
  readonly rescued: number
  /** Calls that failed. */
  readonly lost: number
}

/** Whether a channel has answered since the start. */
export type ChannelRecord = 'untried' | 'answered' | 'failed'

interface Minute {
  /** Minutes since 1970. */
  number: number
  requests: number
  failed: number
  rescued: number
  lost: number
  /** Attempts since the channel last recovered from a cooldown. */
  readonly sinceRecovery: { requests: number; failed: number }
  readonly durations: Uint32Array
}

interface ChannelFigures {
  readonly minutes: (Minute | undefined)[]
  lastError: LastError | undefined
  /** Unix milliseconds of the first of the last failures, between which less than `RECENT_MINUTES` passed. */
  failingSinceMs: number
  record: ChannelRecord
  /** Whether the last test failed, and nothing was answered since. */
  hasFailedTest: boolean
  /** Attempts of each key, once there are several. */
  keys: Map<string, KeyMinutes> | undefined
}

/** Attempts of one key by minute. */
interface KeyMinutes {
  readonly numbers: Float64Array
  readonly requests: Uint32Array
}

/** Minutes that tell the present condition of a channel. */
const RECENT_MINUTES = 15

const IDLE: MinuteFigures = { requests: 0, failed: 0, p50_ms: null, p95_ms: null }

/**
 * Attempts at all channels in the last hour on this node, by minute. They are kept by channel name, so that
 * they survive a reload of the configuration. `docs/administration.md: Channel health`.
 */
export class ChannelMinutes {
  readonly #channels = new Map<string, ChannelFigures>()
  readonly #now: () => number

  /** `now` reads Unix milliseconds, so that minutes begin at the same time on all nodes. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Counts an attempt that ended after `tookMs`. `cause`: the cause of its failure, if it failed. */
  note(
    { name, keys }: Pick<Channel, 'name' | 'keys'>,
    tookMs: number,
    cause: string | undefined,
    key = '',
  ): void {
    const figures = this.#figuresOf(name)
    const nowMs = this.#now()
    const minute = minuteAt(figures, minuteOf(nowMs))
    minute.requests += 1
    minute.sinceRecovery.requests += 1
    if (keys.length > 1 || figures.keys) noteKey((figures.keys ??= new Map()), key, minute.number)
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

  /** Records that a channel has recovered from a cooldown, whose failures do not tell how it does now. */
  recovered(name: string): void {
    for (const minute of this.#channels.get(name)?.minutes ?? [])
      if (minute) Object.assign(minute.sinceRecovery, { requests: 0, failed: 0 })
  }

  /** Records a test; `cause` of its failure, if it failed. Tests are not counted among the attempts. */
  noteTest(name: string, cause: string | undefined): void {
    const figures = this.#figuresOf(name)
    figures.hasFailedTest = cause !== undefined
    if (cause === undefined) figures.record = 'answered'
    else noteFailure(figures, this.#now(), cause)
  }

  /** Records the end of a call of which an attempt failed here. */
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
      keys: undefined,
    }
    this.#channels.set(name, figures)
    return figures
  }

  /** Whether a channel has answered since the start, and whether its last test failed. */
  recordOf(name: string): { readonly record: ChannelRecord; readonly hasFailedTest: boolean } {
    const { record = 'untried', hasFailedTest = false } = this.#channels.get(name) ?? {}
    return { record, hasFailedTest }
  }

  /** The attempts of the last 15 minutes, and since when some of them failed, in Unix milliseconds. */
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

  /** The attempts of the last hour. */
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

  /** The attempts of a key in the last hour. */
  ofKey(name: string, key: string): number {
    const figures = this.#channels.get(name)
    if (!figures?.keys) return this.hour(name).requests
    const after = minuteOf(this.#now()) - RECORDED_MINUTES
    const { numbers = [], requests = [] } = figures.keys.get(key) ?? {}
    let sum = 0
    for (const [at, number] of numbers.entries()) if (number > after) sum += requests[at] ?? 0
    return sum
  }

  /** The minutes of a channel, the oldest first; the last one is the current minute. */
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

// The smallest duration that is not exceeded by at least this share of all durations.
function percentile(durations: Uint32Array, total: number, share: number): number | null {
  let left = Math.ceil(total * share)
  for (const [at, count] of durations.entries()) {
    if (count > 0 && (left -= count) <= 0) return Math.round(2 ** (at / STEPS))
  }
  return null
}
