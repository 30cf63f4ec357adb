import { describe, expect, test } from 'vitest'
import { readTelemetrySettings, type TelemetrySettings } from './telemetry-settings.ts'

interface Read extends TelemetrySettings {
  /** Variables that were reported. */
  readonly reported: readonly unknown[]
}

function read(variables: Readonly<Record<string, string>>): Read {
  const reported: unknown[] = []
  const settings = readTelemetrySettings(new Map(Object.entries(variables)), (fields) => {
    reported.push((fields as { variable: unknown }).variable)
  })
  return { ...settings, reported }
}

const ALL = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }
const signalsOf = (variables: Readonly<Record<string, string>>): string[] => [
  ...read(variables).signals.keys(),
]

describe('which signals are exported', () => {
  test.each<[string, Record<string, string>, string[]]>([
    ['none without an address', {}, []],
    ['none if the address is empty', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, []],
    ['all with an address for all', ALL, ['TRACES', 'METRICS']],
    ['one with an address for it', { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://m' }, ['METRICS']],
    [
      'events where they are asked for',
      { ...ALL, OTEL_LOGS_EXPORTER: 'otlp' },
      ['TRACES', 'METRICS', 'LOGS'],
    ],
    ['events with an address for them', { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://l' }, ['LOGS']],
    ['not one that is turned off', { ...ALL, OTEL_TRACES_EXPORTER: 'none' }, ['METRICS']],
    ['none if all is turned off', { ...ALL, OTEL_SDK_DISABLED: 'TRUE' }, []],
  ])('the OTEL_ variables decide which signals are exported: %s', (_, variables, signals) => {
    expect(signalsOf(variables)).toEqual(signals)
  })
})

test('an OTEL_ variable of one signal has priority over the variable for all signals', () => {
  const { signals } = read({
    ...ALL,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://user:secret@metrics.example.com/otlp?key=secret',
    OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: '7000',
  })
  expect(signals.get('TRACES')).toEqual({ host: 'collector:4318', protocol: 'http/json', timeoutMs: 3000 })
  expect(signals.get('METRICS')).toEqual({
    host: 'metrics.example.com',
    protocol: 'http/protobuf',
    timeoutMs: 7000,
  })
})

test.each([
  [undefined, undefined, { root: 'on', ratio: 1, isParentBased: true }],
  ['always_off', undefined, { root: 'off', ratio: 0, isParentBased: false }],
  ['traceidratio', '0.25', { root: 'ratio', ratio: 0.25, isParentBased: false }],
  ['parentbased_traceidratio', undefined, { root: 'ratio', ratio: 1, isParentBased: true }],
  ['always_on', '0.25', { root: 'on', ratio: 1, isParentBased: false }],
])(
  'the sampler of traces follows from its OTEL_ variables: %s with the argument %s',
  (name, argument, sampler) => {
    const { sampler: read_, reported } = read({
      ...(name !== undefined && { OTEL_TRACES_SAMPLER: name }),
      ...(argument !== undefined && { OTEL_TRACES_SAMPLER_ARG: argument }),
    })
    expect(read_).toEqual(sampler)
    expect(reported).toEqual([])
  },
)

test('unknown values of OTEL_ variables are reported and ignored', () => {
  const settings = read({
    ...ALL,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_METRICS_EXPORTER: 'prometheus',
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_BSP_MAX_QUEUE_SIZE: '-1',
    OTEL_METRIC_EXPORT_INTERVAL: '1.5',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'sum',
  })
  expect(settings.reported).toEqual([
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE',
    'OTEL_METRICS_EXPORTER',
    'OTEL_METRIC_EXPORT_INTERVAL',
    'OTEL_BSP_MAX_QUEUE_SIZE',
    'OTEL_TRACES_SAMPLER',
  ])
  expect(settings).toMatchObject({ maxQueueSize: 2048, metricIntervalMs: 60_000 })
  expect(settings.signals.get('TRACES')?.protocol).toBe('http/protobuf')
})

test.each(['collector.internal', 'collector:4318', '127.0.0.1:4318', 'grpc://collector', 'http://'])(
  'a signal whose OTEL_ address is none is reported and not exported anywhere: %s',
  (address) => {
    const all = read({ OTEL_EXPORTER_OTLP_ENDPOINT: address })
    expect(all.reported).toEqual(['OTEL_EXPORTER_OTLP_ENDPOINT'])
    expect(all.signals.size).toBe(0)
    const one = read({ ...ALL, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address })
    expect(one.reported).toEqual(['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'])
    expect([...one.signals.keys()]).toEqual(['METRICS'])
  },
)

test.each([
  ['TIMEOUT', '3s'],
  ['TIMEOUT', '0'],
  ['COMPRESSION', 'zstd'],
  ['HEADERS', 'authorization'],
  ['HEADERS', 'a=1,authorization: Bearer x'],
  ['HEADERS', 'a='],
  ['HEADERS', 'a=50%'],
])('an unknown value of an OTEL_ variable that the exporters read is reported: %s of %s', (name, value) => {
  for (const variable of [`OTEL_EXPORTER_OTLP_${name}`, `OTEL_EXPORTER_OTLP_TRACES_${name}`]) {
    const { reported, signals } = read({ ...ALL, [variable]: value })
    expect(reported).toEqual([variable])
    expect(signals.get('TRACES')?.timeoutMs).toBe(3000)
  }
})

test('headers, compression and temporality as OpenTelemetry documents them are not reported', () => {
  const { reported } = read({
    ...ALL,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20YTpi==, x-tenant = acme one ,',
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'a=1;note',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'none',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'Delta',
  })
  expect(reported).toEqual([])
})

test('the OTEL_ export timeout of metrics is at most their interval, and a span batch at most as large as the queue', () => {
  expect(read({ OTEL_METRIC_EXPORT_INTERVAL: '200', OTEL_BSP_MAX_QUEUE_SIZE: '4' })).toMatchObject({
    metricIntervalMs: 200,
    metricTimeoutMs: 200,
    maxQueueSize: 4,
    maxBatchSize: 4,
  })
})
