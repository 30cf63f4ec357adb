import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Settlement } from '../domain/records/usage.ts'
import { WHOLE_KINDS } from '../domain/token-kinds.ts'
import { Counter, Gauge, Histogram, type Metric, LabelSetGauge } from './series.ts'

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900]

/** Sampling interval of the event loop's delay, which is included in each sample. */
const SAMPLE_MS = 100

/** Counts of a usage that are kinds of `sluice_tokens_total`. */
const COUNTS = [...WHOLE_KINDS.map(({ count }) => count), 'reasoning'] as const

/** Sources of values that are read when metrics are requested. */
export interface Gauges {
  readonly connections: { readonly open: number; readonly refused: number; readonly displaced: number }
  readonly openStreams: () => number
  readonly openCalls: () => number
  readonly openHolds: () => number
  readonly coolingChannels: () => number
  readonly missingModels: () => Iterable<{ readonly channel: string; readonly model: string }>
  readonly pendingWrites: () => number
  readonly isStorageOk: () => boolean
  readonly isDegraded: () => boolean
  readonly droppedLines: () => number
  readonly droppedMessages: () => number
  /** Undefined if no Redis server is configured. */
  readonly isRedisReachable: (() => boolean) | undefined
}

/**
 * Metrics for the operator. Sums, labelled by values that the configuration bounds, so that a call costs a
 * few additions. `docs/operations.md: Metrics` lists them.
 */
export class Metrics {
  readonly requests = new Counter('sluice_requests_total', 'Requests answered.', ['path', 'status'])
  readonly callSeconds = new Histogram(
    'sluice_call_duration_seconds',
    'From the request to its charge.',
    ['model', 'channel', 'stream'],
    SECONDS,
  )
  readonly firstByteSeconds = new Histogram(
    'sluice_first_byte_seconds',
    'From the request to the first byte of the upstream.',
    ['model', 'channel', 'stream'],
    SECONDS,
  )
  readonly tokens = new Counter('sluice_tokens_total', 'Tokens charged, by kind.', [
    'model',
    'channel',
    'kind',
  ])
  readonly quota = new Counter('sluice_quota_total', 'Quota units charged.', ['model', 'channel'])
  readonly holdExceeded = new Counter(
    'sluice_hold_exceeded_total',
    'Calls that were charged more than they held.',
    ['model', 'channel'],
  )
  readonly settlements = new Counter('sluice_settlements_total', 'Settlements, by reason.', ['reason'])
  readonly upstreamErrors = new Counter(
    'sluice_upstream_errors_total',
    'Attempts that failed, before or during a response.',
    ['channel', 'cause'],
  )
  readonly unsolicitedBytes = new Counter(
    'sluice_upstream_unasked_total',
    'Connections on which an upstream sent unrequested bytes.',
    ['channel'],
  )
  readonly lostResponses = new Counter(
    'sluice_kept_responses_lost_total',
    'Kept responses that could not be stored.',
    [],
  )
  readonly signatures = new Counter(
    'sluice_signatures_total',
    'Signatures of turns: kept, found again, and not written.',
    ['result'],
  )
  readonly alerts = new Counter('sluice_alerts_total', 'Attempts to deliver alerts, by result.', ['result'])
  readonly reloads = new Counter('sluice_config_reloads_total', 'Readings of the configuration.', ['result'])
  readonly limitsAlone = new Counter(
    'sluice_limits_alone_total',
    'Requests whose limits were counted without the other nodes.',
    [],
  )
  /** Reads the texts of the other workers, given that of this one; undefined for a gateway of one process. */
  ofOthers: ((own: string) => Promise<readonly string[]>) | undefined
  /** Tells whether there is room for what is kept for users. */
  isKeeping: () => boolean = () => true
  readonly #gauges: readonly Metric[]
  readonly #loopDelay: ReturnType<typeof monitorEventLoopDelay>

  constructor(gauges: Gauges) {
    this.#loopDelay = monitorEventLoopDelay({ resolution: SAMPLE_MS })
    this.#loopDelay.enable()
    const delay = (percentile: number) => (): number =>
      Math.max(0, this.#loopDelay.percentile(percentile) / 1e9 - SAMPLE_MS / 1000)
    const { connections } = gauges
    this.#gauges = [
      new Gauge('sluice_open_connections', 'Connections of clients.', () => connections.open),
      new Gauge(
        'sluice_connections_refused_total',
        'Connections, and requests of a client behind proxies, that were refused above the limits.',
        () => connections.refused,
        'counter',
      ),
      new Gauge(
        'sluice_connections_displaced_total',
        'Idle connections that were closed to make room.',
        () => connections.displaced,
        'counter',
      ),
      new Gauge('sluice_open_streams', 'Streams under way.', gauges.openStreams),
      new Gauge('sluice_open_calls', 'Requests whose response is not complete.', gauges.openCalls),
      new Gauge('sluice_open_holds', 'Holds that are not settled.', gauges.openHolds),
      new Gauge(
        'sluice_resting_channels',
        'Channels whose circuit breaker is open or half-open.',
        gauges.coolingChannels,
      ),
      new LabelSetGauge(
        'sluice_missing_models',
        'Models that a channel responded 404 for, and is left out for.',
        () => [...gauges.missingModels()].map(({ channel, model }) => ({ channel, model })),
      ),
      new Gauge('sluice_ledger_lag', 'Writes that are not durable yet.', gauges.pendingWrites),
      new Gauge(
        'sluice_log_lines_dropped_total',
        'Lines of the log that were not read in time.',
        gauges.droppedLines,
        'counter',
      ),
      new Gauge('sluice_degraded', 'Whether a worker or a helper thread is missing.', () =>
        gauges.isDegraded() ? 1 : 0,
      ),
      new Gauge('sluice_storage_ok', 'Whether calls can be charged.', () => (gauges.isStorageOk() ? 1 : 0)),
      new Gauge(
        'sluice_keeping_ok',
        'Whether the file system of DATA_DIR has room for what is kept for users.',
        () => (this.isKeeping() ? 1 : 0),
      ),
      new Gauge(
        'sluice_node_messages_dropped_total',
        'Messages in the name of other nodes that were too long or not signed.',
        gauges.droppedMessages,
        'counter',
      ),
      new Gauge(
        'sluice_event_loop_delay_p50_seconds',
        'Delay of the event loop since the last scrape.',
        delay(50),
      ),
      new Gauge(
        'sluice_event_loop_delay_p99_seconds',
        'Delay of the event loop since the last scrape.',
        delay(99),
      ),
      new Gauge(
        'sluice_event_loop_delay_max_seconds',
        'Delay of the event loop since the last scrape.',
        delay(100),
      ),
      ...(gauges.isRedisReachable ? [redisGauge(gauges.isRedisReachable)] : []),
      new Gauge('sluice_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss()),
    ]
  }

  /** Records a settled call; `held`: what its hold paid for, in quota units. */
  settled(model: string, stream: boolean, durationMs: number, settlement: Settlement, held: number): void {
    const { channel, usage, quota, reason, first_byte_ms = null } = settlement
    const streamed = stream ? 'true' : 'false'
    this.settlements.add(1, reason)
    this.callSeconds.record(durationMs / 1000, model, channel, streamed)
    if (first_byte_ms !== null) this.firstByteSeconds.record(first_byte_ms / 1000, model, channel, streamed)
    if (quota > 0) this.quota.add(quota, model, channel)
    if (quota > held) this.holdExceeded.add(1, model, channel)
    for (const kind of COUNTS) {
      const tokens = usage[kind] ?? 0
      if (tokens > 0) this.tokens.add(tokens, model, channel, kind)
    }
  }

  /** Yields all metrics, and resets the event loop's delay. */
  *read(): Iterable<Metric> {
    const properties: readonly unknown[] = Object.values(this)
    for (const one of properties) if (one instanceof Counter || one instanceof Histogram) yield one
    yield* this.#gauges
    this.#loopDelay.reset()
  }
}

function redisGauge(isReachable: () => boolean): Gauge {
  return new Gauge('sluice_redis_connected', 'Whether the Redis server responds.', () =>
    isReachable() ? 1 : 0,
  )
}
