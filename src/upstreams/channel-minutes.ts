import type { Channel } from '../domain/records/channel.ts'

/** Number of minutes kept for a channel, including the current one. */
export const KEPT_MINUTES = 60
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

interface Minute {
  /** Minutes since 1970. */
  number: number
  requests: number
  failed: number
  readonly durations: Uint32Array
}

interface Kept {
  readonly minutes: (Minute | undefined)[]
  lastError: LastError | undefined
}

const IDLE: MinuteFigures = { requests: 0, failed: 0, p50_ms: null, p95_ms: null }

/**
 * Attempts at all channels in the last hour on this node, by minute. They are kept by channel name, so that
 * they survive a reload of the configuration. `docs/administration.md: Channel health`.
 */
export class ChannelMinutes {
  readonly #channels = new Map<string, Kept>()
  readonly #now: () => number

  /** `now` reads Unix milliseconds, so that minutes begin at the same time on all nodes. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Counts an attempt that ended after `tookMs`. `cause`: the cause of its failure, if it failed. */
  note({ name }: Channel, tookMs: number, cause: string | undefined): void {
    let kept = this.#channels.get(name)
    if (!kept) this.#channels.set(name, (kept = { minutes: [], lastError: undefined }))
    const nowMs = this.#now()
    const minute = minuteAt(kept, minuteOf(nowMs))
    minute.requests += 1
    if (cause === undefined) {
      const at = countOf(tookMs)
      minute.durations[at] = (minute.durations[at] ?? 0) + 1
    } else {
      minute.failed += 1
      kept.lastError = { atMs: nowMs, cause }
    }
  }

  /** The minutes of a channel, the oldest first; the last one is the current minute. */
  of(name: string): readonly MinuteFigures[] {
    const kept = this.#channels.get(name)
    const last = minuteOf(this.#now())
    return Array.from({ length: KEPT_MINUTES }, (_, index) => {
      const number = last - KEPT_MINUTES + 1 + index
      const minute = kept?.minutes[number % KEPT_MINUTES]
      return minute?.number === number ? figuresOf(minute) : IDLE
    })
  }

  /** The last failed attempt at a channel; undefined if none has failed since the start. */
  lastError(name: string): LastError | undefined {
    return this.#channels.get(name)?.lastError
  }
}

function minuteOf(unixMs: number): number {
  return Math.floor(unixMs / 60_000)
}

function minuteAt({ minutes }: Kept, number: number): Minute {
  const slot = number % KEPT_MINUTES
  const found = minutes[slot]
  if (found?.number === number) return found
  const durations = found?.durations.fill(0) ?? new Uint32Array(COUNTS)
  const minute = { number, requests: 0, failed: 0, durations }
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
