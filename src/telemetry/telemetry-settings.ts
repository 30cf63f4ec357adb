/** Signals that are exported, as named in OpenTelemetry's environment variables. */
const SIGNALS = ['TRACES', 'METRICS', 'LOGS'] as const

/** A signal that is exported. */
export type Signal = (typeof SIGNALS)[number]

/** Encoding in which data is sent to the collector. */
export type ExportEncoding = 'http/protobuf' | 'http/json'

/** Rules for which traces are sampled. */
export interface SamplerSettings {
  readonly root: 'on' | 'off' | 'ratio'
  /** Fraction of the traces that `ratio` samples, from 0 to 1. */
  readonly ratio: number
  /** Whether the decision in a client's `traceparent` header is followed. */
  readonly isParentBased: boolean
}

/** How one signal is exported. */
export interface SignalSettings {
  /**
   * Host and port of the collector. The rest of the collector's address is left out, because it may contain a
   * secret.
   */
  readonly host: string
  readonly protocol: ExportEncoding
  readonly timeoutMs: number
}

/** The queue of a signal that is sent in batches. */
export interface QueueSettings {
  /** Maximum number of entries that wait; further ones are dropped. */
  readonly maxQueueSize: number
  readonly maxBatchSize: number
  readonly batchDelayMs: number
}

/**
 * Settings from OpenTelemetry's environment variables. Addresses, headers and compression are read by its
 * exporters, and only checked here: the exporters would replace an invalid address by `http://localhost:4318`.
 */
export interface TelemetrySettings extends QueueSettings {
  readonly signals: ReadonlyMap<Signal, SignalSettings>
  readonly sampler: SamplerSettings
  /** The queue of events. The inherited settings are those of the queue of spans. */
  readonly events: QueueSettings
  readonly metricIntervalMs: number
  readonly metricTimeoutMs: number
  /** Whether the content of calls is exported. This concerns only calls whose content is stored. */
  readonly takesContent: boolean
}

/**
 * Timeout of an export including retries, in milliseconds, unless an environment variable sets one. The
 * gateway's stop waits at most as long.
 */
const EXPORT_TIMEOUT_MS = 3_000
const MAX_MS = 3_600_000

const COMPRESSIONS: ReadonlySet<string> = new Set(['gzip', 'none'])
const TEMPORALITIES: readonly string[] = ['cumulative', 'delta', 'lowmemory']
/** One header in a list of them. A `;` begins what the exporters leave out. */
const HEADER = /^\s*[!#$%&'*+.^`|~\w-]+\s*=(?!\s*(?:;|$))(?:[^%;]|%[\da-f]{2})+(?:;.*)?$/i

const PROTOCOLS: ReadonlyMap<string, ExportEncoding> = new Map([
  ['http/protobuf', 'http/protobuf'],
  ['http/json', 'http/json'],
])

const ALWAYS = { root: 'on', ratio: 1 } as const
const NEVER = { root: 'off', ratio: 0 } as const

/** Possible values of `OTEL_TRACES_SAMPLER`, and the rules that each stands for. */
const SAMPLERS: ReadonlyMap<string, SamplerSettings> = new Map([
  ['always_on', { ...ALWAYS, isParentBased: false }],
  ['always_off', { ...NEVER, isParentBased: false }],
  ['traceidratio', { root: 'ratio', ratio: 1, isParentBased: false }],
  ['parentbased_always_on', { ...ALWAYS, isParentBased: true }],
  ['parentbased_always_off', { ...NEVER, isParentBased: true }],
  ['parentbased_traceidratio', { root: 'ratio', ratio: 1, isParentBased: true }],
])

/**
 * Environment variables of each signal. The names are written in full, so that a search in the sources finds
 * them.
 */
const OF_SIGNAL = {
  TRACES: {
    exporter: 'OTEL_TRACES_EXPORTER',
    endpoint: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    protocol: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
    timeout: 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT',
    headers: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
    compression: 'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION',
  },
  METRICS: {
    exporter: 'OTEL_METRICS_EXPORTER',
    endpoint: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    protocol: 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL',
    timeout: 'OTEL_EXPORTER_OTLP_METRICS_TIMEOUT',
    headers: 'OTEL_EXPORTER_OTLP_METRICS_HEADERS',
    compression: 'OTEL_EXPORTER_OTLP_METRICS_COMPRESSION',
  },
  LOGS: {
    exporter: 'OTEL_LOGS_EXPORTER',
    endpoint: 'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
    protocol: 'OTEL_EXPORTER_OTLP_LOGS_PROTOCOL',
    timeout: 'OTEL_EXPORTER_OTLP_LOGS_TIMEOUT',
    headers: 'OTEL_EXPORTER_OTLP_LOGS_HEADERS',
    compression: 'OTEL_EXPORTER_OTLP_LOGS_COMPRESSION',
  },
} as const

/**
 * Reads OpenTelemetry's environment variables. As its specification demands, an unknown value is reported by
 * `warn` and then ignored, so that telemetry never prevents a start. `docs/telemetry.md: Variables`.
 */
export function readTelemetrySettings(
  variables: ReadonlyMap<string, string>,
  warn: (fields: object, sentence: string) => void,
): TelemetrySettings {
  const given = (name: string): string | undefined => variables.get(name)?.trim() || undefined
  const ignored = (variable: string, expected: string): undefined => {
    warn({ variable, expected }, 'a variable of OpenTelemetry has an unknown value and is ignored')
  }
  const number = (name: string, fallback: number, max: number): number => {
    const text = given(name)
    if (text === undefined) return fallback
    const value = Number(text)
    if (Number.isInteger(value) && value > 0 && value <= max) return value
    ignored(name, `a whole number from 1 to ${max}`)
    return fallback
  }
  const protocolOf = (name: string): ExportEncoding | undefined => {
    const text = given(name)
    if (text === undefined) return undefined
    return PROTOCOLS.get(text.toLowerCase()) ?? ignored(name, 'http/protobuf or http/json')
  }
  /** Null if the variable names no address. */
  const addressOf = (name: string): URL | null | undefined => {
    const text = given(name)
    if (text === undefined) return undefined
    const url = URL.parse(text)
    if (url && /^https?:$/.test(url.protocol)) return url
    ignored(name, 'an address that begins with http:// or https://')
    return null
  }
  const check = (headers: string, compression: string): void => {
    const isHeaders = given(headers)
      ?.split(',')
      .every((one) => one.trim() === '' || HEADER.test(one))
    if (isHeaders === false) ignored(headers, 'name=value, percent-encoded, separated by commas')
    if (!COMPRESSIONS.has(given(compression) ?? 'none')) ignored(compression, 'gzip or none')
  }
  const isOff = given('OTEL_SDK_DISABLED')?.toLowerCase() === 'true'
  const shared = addressOf('OTEL_EXPORTER_OTLP_ENDPOINT')
  const protocol = protocolOf('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf'
  const timeout = number('OTEL_EXPORTER_OTLP_TIMEOUT', EXPORT_TIMEOUT_MS, MAX_MS)
  check('OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_COMPRESSION')
  const temporality = 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE'
  if (!TEMPORALITIES.includes((given(temporality) ?? 'cumulative').toLowerCase()))
    ignored(temporality, TEMPORALITIES.join(', '))
  const wanted = SIGNALS.flatMap((signal) => {
    const { exporter, endpoint } = OF_SIGNAL[signal]
    // Events repeat the content of spans, so they are exported only if an endpoint for them is set.
    const usual = signal === 'LOGS' && given(endpoint) === undefined ? 'none' : 'otlp'
    const named = given(exporter)?.toLowerCase() ?? usual
    if (named !== 'otlp' && named !== 'none') ignored(exporter, 'otlp or none')
    const own = addressOf(endpoint)
    const address = own === undefined ? shared : own
    return !isOff && named !== 'none' && address ? [{ signal, host: address.host }] : []
  })
  const interval = number('OTEL_METRIC_EXPORT_INTERVAL', 60_000, MAX_MS)
  const maxQueueSize = number('OTEL_BSP_MAX_QUEUE_SIZE', 2_048, 1_000_000)
  const maxEvents = number('OTEL_BLRP_MAX_QUEUE_SIZE', 2_048, 1_000_000)
  return {
    signals: new Map(
      wanted.map(({ signal, host }) => {
        const own = OF_SIGNAL[signal]
        check(own.headers, own.compression)
        const timeoutMs = number(own.timeout, timeout, MAX_MS)
        return [signal, { host, protocol: protocolOf(own.protocol) ?? protocol, timeoutMs }] as const
      }),
    ),
    sampler: samplerOf(given, ignored),
    maxQueueSize,
    maxBatchSize: Math.min(number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 100_000), maxQueueSize),
    batchDelayMs: number('OTEL_BSP_SCHEDULE_DELAY', 1_000, MAX_MS),
    events: {
      maxQueueSize: maxEvents,
      maxBatchSize: Math.min(number('OTEL_BLRP_MAX_EXPORT_BATCH_SIZE', 512, 100_000), maxEvents),
      batchDelayMs: number('OTEL_BLRP_SCHEDULE_DELAY', 1_000, MAX_MS),
    },
    metricIntervalMs: interval,
    takesContent: given('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT')?.toLowerCase() === 'true',
    metricTimeoutMs: Math.min(number('OTEL_METRIC_EXPORT_TIMEOUT', 30_000, MAX_MS), interval),
  }
}

function samplerOf(
  given: (name: string) => string | undefined,
  ignored: (name: string, expected: string) => undefined,
): SamplerSettings {
  const fallback = { ...ALWAYS, isParentBased: true }
  const named = given('OTEL_TRACES_SAMPLER')?.toLowerCase()
  if (named === undefined) return fallback
  const sampler = SAMPLERS.get(named)
  if (!sampler) return ignored('OTEL_TRACES_SAMPLER', [...SAMPLERS.keys()].join(', ')) ?? fallback
  const argument = given('OTEL_TRACES_SAMPLER_ARG')
  if (sampler.root !== 'ratio' || argument === undefined) return sampler
  const ratio = Number(argument)
  if (ratio >= 0 && ratio <= 1) return { ...sampler, ratio }
  return ignored('OTEL_TRACES_SAMPLER_ARG', 'a number from 0 to 1') ?? sampler
}
