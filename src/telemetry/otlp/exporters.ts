import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import type { LogRecordExporter, ReadableLogRecord } from '@opentelemetry/sdk-logs'
import type { PushMetricExporter, ResourceMetrics } from '@opentelemetry/sdk-metrics'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { ExportCounts } from '../export-counts.ts'
import type { ExportEncoding, Signal, SignalSettings } from '../telemetry-settings.ts'

/**
 * Options of the exporters. All other options are read by the exporters from OpenTelemetry's environment
 * variables.
 */
interface ExporterOptions {
  readonly timeoutMillis: number
}

// The packages of a protocol are imported only if the protocol is used.
const SPAN_EXPORTERS: Readonly<Record<ExportEncoding, (options: ExporterOptions) => Promise<SpanExporter>>> =
  {
    'http/protobuf': async (options) =>
      new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter(options),
    'http/json': async (options) =>
      new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter(options),
  }

const METRIC_EXPORTERS: Readonly<
  Record<ExportEncoding, (options: ExporterOptions) => Promise<PushMetricExporter>>
> = {
  'http/protobuf': async (options) =>
    new (await import('@opentelemetry/exporter-metrics-otlp-proto')).OTLPMetricExporter(options),
  'http/json': async (options) =>
    new (await import('@opentelemetry/exporter-metrics-otlp-http')).OTLPMetricExporter(options),
}

const LOG_EXPORTERS: Readonly<
  Record<ExportEncoding, (options: ExporterOptions) => Promise<LogRecordExporter>>
> = {
  'http/protobuf': async (options) =>
    new (await import('@opentelemetry/exporter-logs-otlp-proto')).OTLPLogExporter(options),
  'http/json': async (options) =>
    new (await import('@opentelemetry/exporter-logs-otlp-http')).OTLPLogExporter(options),
}

/** Creates an exporter of events. `onHandedOver` is called with the records that leave the queue. */
export async function logExporter(
  { protocol, timeoutMs }: SignalSettings,
  counts: ExportCounts,
  onHandedOver: (records: readonly ReadableLogRecord[]) => void,
): Promise<LogRecordExporter> {
  const exporter = await LOG_EXPORTERS[protocol]({ timeoutMillis: timeoutMs })
  return {
    export(records: ReadableLogRecord[], done: (result: ExportResult) => void): void {
      onHandedOver(records)
      exporter.export(records, counted(counts, 'LOGS', records.length, done))
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  }
}

/** Creates an exporter of spans. `onHandedOver` is called with the spans that leave the queue. */
export async function spanExporter(
  { protocol, timeoutMs }: SignalSettings,
  counts: ExportCounts,
  onHandedOver: (spans: readonly ReadableSpan[]) => void,
): Promise<SpanExporter> {
  const exporter = await SPAN_EXPORTERS[protocol]({ timeoutMillis: timeoutMs })
  return {
    export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
      onHandedOver(spans)
      exporter.export(spans, counted(counts, 'TRACES', spans.length, done))
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  }
}

export async function metricExporter(
  { protocol, timeoutMs }: SignalSettings,
  counts: ExportCounts,
): Promise<PushMetricExporter> {
  const exporter = await METRIC_EXPORTERS[protocol]({ timeoutMillis: timeoutMs })
  const send = exporter.export.bind(exporter)
  exporter.export = (batch: ResourceMetrics, done: (result: ExportResult) => void) =>
    send(batch, counted(counts, 'METRICS', pointsOf(batch), done))
  return exporter
}

function counted(
  counts: ExportCounts,
  signal: Signal,
  count: number,
  done: (result: ExportResult) => void,
): (result: ExportResult) => void {
  return (result) => {
    const isSent = result.code === ExportResultCode.SUCCESS
    counts.exported(signal, count, isSent ? undefined : (result.error ?? new Error('not sent')))
    done(result)
  }
}

function pointsOf({ scopeMetrics }: ResourceMetrics): number {
  return scopeMetrics.reduce(
    (sum, { metrics }) => sum + metrics.reduce((points, { dataPoints }) => points + dataPoints.length, 0),
    0,
  )
}
