import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { TracedRequest, Tracing } from './tracing.ts'

/** Delay before a batch of spans is sent. */
const BATCH_DELAY_MS = 1_000
/** Timeout of an export including retries, unless an OpenTelemetry variable sets one. */
const EXPORT_TIMEOUT_MS = 3_000
const TIMEOUT_VARIABLES = ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT']

/**
 * Exports spans by OTLP over HTTP, with address, headers and timeouts from OpenTelemetry's own variables. A
 * span is created from recorded times after its request has ended, so that tracing does not slow the request.
 */
export function otlpTracing(variables: ReadonlyMap<string, string>): Tracing {
  const exporter = new OTLPTraceExporter(
    TIMEOUT_VARIABLES.some((name) => variables.get(name)) ? {} : { timeoutMillis: EXPORT_TIMEOUT_MS },
  )
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'sluice' }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: BATCH_DELAY_MS })],
  })
  const tracer = provider.getTracer('sluice')
  return {
    request(traced) {
      const parent = traced.traceparent === undefined ? null : parseTraceParent(traced.traceparent)
      const span = tracer.startSpan(
        traced.model === undefined ? `${traced.method} ${traced.route ?? 'unknown'}` : `chat ${traced.model}`,
        { kind: SpanKind.SERVER, startTime: traced.startedMs, attributes: attributesOf(traced) },
        parent ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT,
      )
      if (traced.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end(traced.endedMs)
    },
    // With an unreachable collector the last spans are lost, but the stop is not delayed.
    close: () => provider.shutdown().catch(() => {}),
  }
}

// Names follow OpenTelemetry's conventions for HTTP and for generative AI.
function attributesOf(traced: TracedRequest): Attributes {
  const attributes: Record<string, string | number | boolean | undefined> = {
    'http.request.method': traced.method,
    'http.route': traced.route,
    'http.response.status_code': traced.status,
    'error.type': traced.status >= 400 ? (traced.failure ?? String(traced.status)) : undefined,
    'gen_ai.operation.name': traced.model === undefined ? undefined : 'chat',
    'gen_ai.request.model': traced.model,
    'gen_ai.response.model': traced.upstreamModel,
    'gen_ai.usage.input_tokens': traced.inputTokens,
    'gen_ai.usage.output_tokens': traced.outputTokens,
    'sluice.request_id': traced.id,
    'sluice.channel': traced.channel,
    'sluice.stream': traced.stream,
    'sluice.quota': traced.quota,
    'sluice.settlement': traced.reason,
  }
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}
