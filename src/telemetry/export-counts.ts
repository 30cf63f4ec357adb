import type { Metrics } from './metrics.ts'
import type { ExportEncoding, Signal, TelemetrySettings } from './telemetry-settings.ts'

/**
 * What happened to spans and data points: sent, refused by the collector, or dropped because the queue was
 * full.
 */
const RESULTS = ['sent', 'failed', 'dropped'] as const

/** What happened to a span or a data point: a value of `RESULTS`. */
export type ExportResult = (typeof RESULTS)[number]

/** State of the exports of one signal since the start. */
export interface SignalState extends Record<ExportResult, number> {
  /** Host of the collector. */
  readonly host: string
  readonly protocol: ExportEncoding
  /** Unix milliseconds of the last export that succeeded; null if none has. */
  lastSentMs: number | null
  /** Why the last export failed, as one of a few fixed phrases; null if it succeeded. */
  lastError: string | null
}

/** Minimum milliseconds between two log lines about failed exports. */
const WARN_INTERVAL_MS = 60_000

/** Counts exported spans and data points by their result, and logs failures. */
export class ExportCounts {
  readonly #states: ReadonlyMap<Signal, SignalState>
  readonly #metrics: Pick<Metrics, 'add'>
  readonly #warn: (fields: object, sentence: string) => void
  #warnedAt = -WARN_INTERVAL_MS

  constructor(
    signals: TelemetrySettings['signals'],
    metrics: Pick<Metrics, 'add'>,
    warn: (fields: object, sentence: string) => void,
  ) {
    this.#metrics = metrics
    this.#warn = warn
    this.#states = new Map(
      [...signals].map(([signal, { host, protocol }]) => [
        signal,
        { host, protocol, sent: 0, failed: 0, dropped: 0, lastSentMs: null, lastError: null },
      ]),
    )
    // Every combination begins with 0, so that the first failure is visible as an increase.
    for (const signal of this.#states.keys()) for (const result of RESULTS) this.#count(signal, result, 0)
  }

  /** The exports of each signal since the start. */
  get states(): ReadonlyMap<Signal, Readonly<SignalState>> {
    return this.#states
  }

  /** Records that `count` spans or data points were dropped because the queue was full. */
  dropped(signal: Signal, count: number): void {
    this.#count(signal, 'dropped', count)
  }

  /** Records the outcome of an export; `error` is undefined if the collector accepted it. */
  exported(signal: Signal, count: number, error: unknown): void {
    const state = this.#states.get(signal)
    if (!state) return
    if (error === undefined) {
      this.#count(signal, 'sent', count)
      state.lastSentMs = Date.now()
      state.lastError = null
      return
    }
    this.#count(signal, 'failed', count)
    state.lastError = wordsOf(error)
    const nowMs = performance.now()
    if (nowMs - this.#warnedAt < WARN_INTERVAL_MS) return
    this.#warnedAt = nowMs
    const fields = { signal: signal.toLowerCase(), cause: state.lastError, failed: state.failed }
    this.#warn(fields, 'telemetry could not be sent')
  }

  #count(signal: Signal, result: ExportResult, count: number): void {
    const state = this.#states.get(signal)
    if (!state) return
    state[result] += count
    this.#metrics.add('telemetry', count, signal.toLowerCase(), result)
  }
}

/**
 * Why an export failed. Only a status or an error code is kept, because the collector's message may repeat
 * request headers with credentials.
 */
function wordsOf(error: unknown): string {
  const { code, name, message } = (error ?? {}) as { code?: unknown; name?: unknown; message?: unknown }
  if (typeof code === 'number') return `status ${code}`
  if (typeof code === 'string' && /^[A-Z_0-9]{1,40}$/.test(code)) return code
  return /time/i.test(`${String(name)} ${String(message)}`) ? 'timeout' : 'not sent'
}
