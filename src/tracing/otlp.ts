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

/** How long spans gather before they are sent. */
const GATHER_MS = 1_000
/** How long sending may take, tries after failures included, where OpenTelemetry's variables name no time. */
const SENDING_MS = 3_000
const TIMEOUTS = ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT']

/**
 * Spans by OTLP over HTTP. The exporter reads its address, headers and time-outs from OpenTelemetry's own
 * variables. A span is made when its request is over, from the times that were noted: a request that is
 * traced is no slower for it.
 */
export function otlpTracing(variables: ReadonlyMap<string, string>): Tracing {
  const exporter = new OTLPTraceExporter(
    TIMEOUTS.some((name) => variables.get(name)) ? {} : { timeoutMillis: SENDING_MS },
  )
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'sluice' }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: GATHER_MS })],
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
    // A collector that is gone loses what had gathered, and keeps nobody from stopping.
    close: () => provider.shutdown().catch(() => {}),
  }
}

// The names are OpenTelemetry's: HTTP's, and those for generative AI.
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
