import { CACHE_BREAKS } from '../domain/cache-break.ts'
import { retirementTimeMs, type ModelRetirement } from '../domain/model-retirement.ts'
import type { Metric, Sample } from './series.ts'

/** Functions and values that are read when metrics are requested. */
export interface MetricSources {
  readonly channels: () => Iterable<string>
  readonly connections: { readonly open: number; readonly refused: number; readonly displaced: number }
  readonly openStreams: () => number
  readonly openWebSockets: () => number
  readonly openCalls: () => number
  readonly openHolds: () => number
  readonly openBatches: () => number
  readonly openBreakers: () => number
  readonly missingModels: () => Iterable<{ readonly channel: string; readonly model: string }>
  readonly providerLimits: () => Iterable<Omit<Sample, 'name'>>
  readonly modelEnds: () => readonly { readonly model: string; readonly end: ModelRetirement }[]
  readonly pendingWrites: () => number
  readonly isStorageOk: () => boolean
  /** Whether there is enough disk space to store data for users. */
  readonly isKeeping: () => boolean
  readonly isDegraded: () => boolean
  readonly droppedLines: () => number
  readonly droppedMessages: () => number
  /** Whether the Redis server responds; undefined if none is configured. */
  readonly isRedisReachable: (() => boolean) | undefined
  /** Delay of the event loop at a percentile, in seconds. */
  readonly loopDelay: (percentile: number) => number
}

/** How a metric is defined and read: a row of `METRICS`. */
export interface MetricRow extends Omit<Metric, 'samples'> {
  readonly labels?: readonly string[]
  /** Values of the only label that are exported as 0 from the start: only then is the first event seen as growth. */
  readonly values?: (sources: MetricSources) => Iterable<string>
  /** Reads the current value or samples; if absent, the metric is counted in memory. */
  readonly read?: (sources: MetricSources) => number | Omit<Sample, 'name'>[]
  /** Whether this gateway has the metric; if absent, every gateway has it. */
  readonly isPresent?: (sources: MetricSources) => boolean
}

/**
 * All metrics by their internal names, in the order in which they are output. `docs/operations.md: Metrics`.
 */
export const METRICS = {
  requests: counter('sluice_requests_total', 'Requests answered.', 'path', 'status'),
  callSeconds: histogram('sluice_call_duration_seconds', 'From the request to its charge.'),
  firstByteSeconds: histogram(
    'sluice_first_byte_seconds',
    'From the request to the first byte of the upstream.',
  ),
  tokens: counter('sluice_tokens_total', 'Tokens charged, by kind.', 'model', 'channel', 'kind'),
  quota: counter('sluice_quota_total', 'Quota units charged.', 'model', 'channel'),
  holdExceeded: counter(
    'sluice_hold_exceeded_total',
    'Calls that were charged more than they held.',
    'model',
    'channel',
  ),
  batchLines: counterOf('sluice_batch_lines_total', 'Lines of batches that have ended, by how.', 'outcome', [
    'completed',
    'failed',
    'expired',
    'cancelled',
  ]),
  batchResultsIgnored: counterOf(
    'sluice_batch_results_ignored_total',
    'Results of batches of providers that belong to no line, or arrived twice.',
    'reason',
    ['unknown', 'duplicate'],
  ),
  promptsKnown: counterOf(
    'sluice_known_prompts_total',
    'Conversations, by whether they continue a remembered one.',
    'result',
    ['found', 'none'],
  ),
  untrustedEntries: counterOf(
    'sluice_untrusted_entries_total',
    'Entries and announcements of other nodes that were ignored because their seal was not valid, by kind.',
    'kind',
    ['prompt', 'session', 'previous', 'limits'],
  ),
  sessionCalls: counterOf(
    'sluice_session_calls_total',
    'Calls of sessions: kept at the account that has the cache, moved to another one, and new ones.',
    'result',
    ['kept', 'moved', 'new'],
  ),
  guardVerdicts: counter(
    'sluice_guard_verdicts_total',
    'Calls that guards have checked, by what they decided.',
    'guard',
    'verdict',
  ),
  mcpCalls: counter('sluice_mcp_calls_total', 'Calls of tools, by server and outcome.', 'server', 'outcome'),
  cacheBreaks: counterOf(
    'sluice_cache_breaks_total',
    'Calls of sessions that missed the prompt cache of the previous call, by reason.',
    'reason',
    CACHE_BREAKS,
  ),
  answerCache: counterOf(
    'sluice_answer_cache_total',
    'Calls with the answer cache on: hits, misses, those that bypass it, and answers that were kept or not.',
    'result',
    ['hit', 'miss', 'bypass', 'kept', 'not_kept'],
  ),
  settlements: counter('sluice_settlements_total', 'Settlements, by reason.', 'reason'),
  upstreamErrors: counter(
    'sluice_upstream_errors_total',
    'Attempts that failed, before or during a response.',
    'channel',
    'cause',
  ),
  unsolicitedBytes: {
    ...counter(
      'sluice_upstream_unasked_total',
      'Connections on which an upstream sent unrequested bytes.',
      'channel',
    ),
    values: ({ channels }: MetricSources) => channels(),
  },
  contentDropped: counterOf(
    'sluice_content_dropped_total',
    'Calls whose content was to be kept and is not: no memory was left, or it could not be written.',
    'reason',
    ['full', 'failed', 'unscreened'],
  ),
  lostResponses: counter('sluice_kept_responses_lost_total', 'Kept responses that could not be stored.'),
  idempotency: counterOf(
    'sluice_idempotency_total',
    'Calls with an idempotency key: answers kept, not kept, replayed, attached to, left by their client, and refused.',
    'result',
    ['kept', 'not_kept', 'replayed', 'attached', 'left', 'conflict', 'refused'],
  ),
  signatures: counterOf(
    'sluice_signatures_total',
    'Signatures of turns: kept, found again, and not written.',
    'result',
    ['kept', 'found', 'unwritten'],
  ),
  alerts: counterOf('sluice_alerts_total', 'Attempts to deliver alerts, by result.', 'result', [
    'delivered',
    'failed',
    'given_up',
  ]),
  telemetry: counter(
    'sluice_telemetry_exported_total',
    'Spans, events and data points: sent to the collector, refused by it, and dropped for want of room.',
    'signal',
    'result',
  ),
  modelLists: counterOf(
    'sluice_model_lists_read_total',
    'Readings of the model lists of upstreams, by result.',
    'result',
    ['read', 'failed'],
  ),
  reloads: counterOf('sluice_config_reloads_total', 'Readings of the configuration.', 'result', [
    'applied',
    'refused',
  ]),
  limitsAlone: counter(
    'sluice_limits_alone_total',
    'Requests whose limits were counted without the other nodes.',
  ),
  openConnections: gauge('sluice_open_connections', 'Connections of clients.', {
    read: ({ connections }) => connections.open,
  }),
  refusedConnections: gauge(
    'sluice_connections_refused_total',
    'Connections, and requests of a client behind proxies, that were refused above the limits.',
    { read: ({ connections }) => connections.refused, type: 'counter' },
  ),
  displacedConnections: gauge(
    'sluice_connections_displaced_total',
    'Idle connections that were closed to make room.',
    { read: ({ connections }) => connections.displaced, type: 'counter' },
  ),
  openStreams: gauge('sluice_open_streams', 'Streams under way.', {
    read: ({ openStreams }) => openStreams(),
  }),
  openWebSockets: gauge('sluice_websockets_open', 'WebSockets of clients.', {
    read: ({ openWebSockets }) => openWebSockets(),
  }),
  closedWebSockets: counter(
    'sluice_websockets_closed_total',
    'WebSockets that were closed, by the code of the side that closed first.',
    'code',
  ),
  openCalls: gauge('sluice_open_calls', 'Requests whose response is not complete.', {
    read: ({ openCalls }) => openCalls(),
  }),
  openBatches: gauge('sluice_batches_open', 'Batches that this node works on.', {
    read: ({ openBatches }) => openBatches(),
  }),
  openHolds: gauge('sluice_open_holds', 'Holds that are not settled.', {
    read: ({ openHolds }) => openHolds(),
  }),
  openBreakers: gauge('sluice_resting_channels', 'Channels whose circuit breaker is open or half-open.', {
    read: ({ openBreakers }) => openBreakers(),
  }),
  missingModels: gauge(
    'sluice_missing_models',
    'Models that a channel responded 404 for, and is left out for.',
    {
      read: ({ missingModels }) =>
        [...missingModels()].map(({ channel, model }) => ({ labels: { channel, model }, value: 1 })),
      labels: ['channel', 'model'],
    },
  ),
  providerLimits: gauge(
    'sluice_provider_limit_remaining',
    'What providers state to be left of the limits of their keys.',
    {
      read: ({ providerLimits }) => [...providerLimits()],
      labels: ['channel', 'key', 'model', 'kind'],
    },
  ),
  modelEnds: gauge('sluice_model_shutdown_timestamp_seconds', 'Times at which models end.', {
    read: ({ modelEnds }) =>
      modelEnds().map(({ model, end }) => ({ labels: { model }, value: retirementTimeMs(end) / 1000 })),
    labels: ['model'],
  }),
  ledgerLag: gauge('sluice_ledger_lag', 'Writes that are not durable yet.', {
    read: ({ pendingWrites }) => pendingWrites(),
  }),
  droppedLines: gauge('sluice_log_lines_dropped_total', 'Lines of the log that were not read in time.', {
    read: ({ droppedLines }) => droppedLines(),
    type: 'counter',
  }),
  degraded: gauge('sluice_degraded', 'Whether a helper thread is missing.', {
    read: ({ isDegraded }) => Number(isDegraded()),
  }),
  storageOk: gauge('sluice_storage_ok', 'Whether calls can be charged.', {
    read: ({ isStorageOk }) => Number(isStorageOk()),
  }),
  keepingOk: gauge(
    'sluice_keeping_ok',
    'Whether the file system of DATA_DIR has room for what is kept for users.',
    { read: ({ isKeeping }) => Number(isKeeping()) },
  ),
  droppedMessages: gauge(
    'sluice_node_messages_dropped_total',
    'Messages in the name of other nodes that were too long or not signed.',
    { read: ({ droppedMessages }) => droppedMessages(), type: 'counter' },
  ),
  loopDelayP50: loopDelay('sluice_event_loop_delay_p50_seconds', 50),
  loopDelayP99: loopDelay('sluice_event_loop_delay_p99_seconds', 99),
  loopDelayMax: loopDelay('sluice_event_loop_delay_max_seconds', 100),
  redisConnected: gauge('sluice_redis_connected', 'Whether the Redis server responds.', {
    read: ({ isRedisReachable }) => Number(isRedisReachable?.()),
    isPresent: ({ isRedisReachable }) => isRedisReachable !== undefined,
  }),
  residentMemory: gauge('sluice_resident_memory_bytes', 'Resident memory.', {
    read: () => process.memoryUsage.rss(),
  }),
}

function counter<const Labels extends readonly string[]>(name: string, help: string, ...labels: Labels) {
  return { name, type: 'counter', help, labels } as const
}

/** A counter whose label has only these values. */
function counterOf<const Label extends string>(
  name: string,
  help: string,
  label: Label,
  values: readonly string[],
) {
  return { ...counter(name, help, label), values: () => values }
}

function histogram(name: string, help: string) {
  return { name, type: 'histogram', help, labels: ['model', 'channel', 'stream'] } as const
}

function gauge(
  name: string,
  help: string,
  row: Omit<MetricRow, 'name' | 'help' | 'type'> & { readonly type?: 'counter' },
) {
  return { type: 'gauge' as const, ...row, name, help }
}

function loopDelay(name: string, percentile: number) {
  return gauge(name, 'Delay of the event loop since the last scrape.', {
    read: (sources) => sources.loopDelay(percentile),
  })
}
