import { randomUUID } from 'node:crypto'
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { attemptAttributes, callAttributes, finishReasons, requestAttributes } from '../call-attributes.ts'
import { ExportCounts } from '../export-counts.ts'
import { errorType } from '../gen-ai.ts'
import type { SamplerSettings, TelemetrySettings } from '../telemetry-settings.ts'
import type { CallContent, Telemetry, TelemetryServices, TracedCall, TracedRequest } from '../telemetry.ts'
import { CallEvents } from './call-events.ts'
import { CallMetrics } from './call-metrics.ts'
import { metricExporter, spanExporter } from './exporters.ts'
import { definedAttributes } from './defined-attributes.ts'
import { lengthOfContent, type MessageAttributes, messageAttributesOf } from './message-attributes.ts'
import { SpanQueueLimit } from './span-queue-limit.ts'

/**
 * Number of calls that are converted to spans before the event loop continues with other work, and bytes of their
 * content after which it does so earlier: to convert a megabyte may take 100 ms.
 */
const CALLS_AT_A_TIME = 16
const CONTENT_AT_A_TIME = 65_536

/**
 * Exports spans and metrics by OTLP over HTTP. Calls are added after they were charged. They are converted to
 * spans and measurements later, when the process has time, so that calls do not wait for this.
 */
export async function otlpTelemetry(
  settings: TelemetrySettings,
  services: TelemetryServices,
): Promise<Telemetry> {
  const counts = new ExportCounts(settings.signals, services.metrics, services.warn)
  const resource = resourceOf()
  const room = new SpanQueueLimit(settings.maxQueueSize, (spans) => counts.dropped('TRACES', spans))
  const tracing = await openTracing(settings, resource, counts, room)
  const metering = await openMetering(settings, resource, counts)
  const logging = settings.signals.get('LOGS')
  const events = logging && (await CallEvents.open(logging, settings.events, resource, counts))
  const waiting: FinishedCall[] = []
  /** Calls that wait until their content is added, by id. */
  const awaiting = new Map<string, TracedCall>()
  let isScheduled = false

  const convert = (call: FinishedCall): void => {
    metering?.calls.record(call)
    const said = call.content && messageAttributesOf(call.facts.kind, call.content, finishReasons(call))
    if (said) room.giveContent(contentBytes(call))
    const context = tracing && traceCall(tracing.tracer, room, call, said)
    // If the trace of a call is not sampled, its event is not exported either.
    if (said && events && (context || !tracing))
      events.add(
        definedAttributes(callAttributes(call)),
        said,
        call.settlement.ended_ms,
        context ?? ROOT_CONTEXT,
      )
  }
  const take = (call: FinishedCall): void => {
    try {
      convert(call)
    } catch {
      // Nothing above would catch it, and a call that cannot be exported must not end the process.
      counts.dropped('TRACES', 1)
    }
  }
  const takeSome = (): void => {
    let count = 0
    for (let bytes = 0; count < CALLS_AT_A_TIME && bytes < CONTENT_AT_A_TIME; count += 1) {
      const call = waiting[count]
      if (!call) break
      bytes += contentBytes(call)
    }
    for (const call of waiting.splice(0, count)) take(call)
    isScheduled = waiting.length > 0
    if (isScheduled) setImmediate(takeSome)
  }
  const add = (call: FinishedCall): void => {
    // If the queue is full, the call is converted immediately, because the memory for waiting calls must have
    // a limit.
    if (waiting.length >= settings.maxQueueSize) return take(call)
    waiting.push(call)
    if (isScheduled) return
    isScheduled = true
    setImmediate(takeSome)
  }
  return {
    counts,
    takesContent: settings.takesContent && (tracing ?? events) !== undefined,
    request(traced) {
      if (tracing) traceRequest(tracing.tracer, room, traced)
    },
    call(traced) {
      if (traced.awaitsContent && awaiting.size < settings.maxQueueSize) awaiting.set(traced.facts.id, traced)
      else add(traced)
    },
    hasRoomFor: (content) => room.hasContentRoom(contentBytes({ content })),
    content(id, content) {
      const call = awaiting.get(id)
      if (!call) return
      awaiting.delete(id)
      if (!content || !room.takeContent(contentBytes({ content }))) add(call)
      else add({ ...call, content })
    },
    // If the collector is unreachable, the last spans are lost: the timeout of an export is short, so that
    // the gateway stops quickly.
    async close() {
      for (const call of [...waiting.splice(0), ...awaiting.values()]) take(call)
      awaiting.clear()
      await Promise.allSettled([
        tracing?.provider.shutdown(),
        metering?.provider.shutdown(),
        events?.shutdown(),
      ])
    },
  }
}

/** A call, with its content if that is exported. */
type FinishedCall = TracedCall & { readonly content?: CallContent }

/**
 * Attributes that identify this process. Each process has a separate id; otherwise a backend would merge the
 * series of several nodes.
 */
function resourceOf(): Resource {
  return defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'sluice', 'service.instance.id': randomUUID() }))
    .merge(detectResources({ detectors: [envDetector] }))
}

async function openTracing(
  { signals, sampler, maxQueueSize, maxBatchSize, batchDelayMs }: TelemetrySettings,
  resource: Resource,
  counts: ExportCounts,
  room: SpanQueueLimit,
): Promise<{ readonly provider: TracerProvider; readonly tracer: Tracer } | undefined> {
  const options = signals.get('TRACES')
  if (!options) return undefined
  const exporter = await spanExporter(options, counts, (spans) => {
    room.leave(spans.length)
    room.giveContent(lengthOfContent(spans))
  })
  const provider = new TracerProvider({
    resource,
    sampler: samplerFor(sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        scheduledDelayMillis: batchDelayMs,
        maxExportBatchSize: maxBatchSize,
        maxQueueSize,
      }),
    ],
  })
  return { provider, tracer: provider.getTracer('sluice') }
}

async function openMetering(
  { signals, metricIntervalMs, metricTimeoutMs }: TelemetrySettings,
  resource: Resource,
  counts: ExportCounts,
): Promise<{ readonly provider: MeterProvider; readonly calls: CallMetrics } | undefined> {
  const options = signals.get('METRICS')
  if (!options) return undefined
  const reader = new PeriodicExportingMetricReader({
    exporter: await metricExporter(options, counts),
    exportIntervalMillis: metricIntervalMs,
    exportTimeoutMillis: metricTimeoutMs,
  })
  const provider = new MeterProvider({ resource, readers: [reader] })
  return { provider, calls: new CallMetrics(provider.getMeter('sluice')) }
}

const ROOTS: Readonly<Record<SamplerSettings['root'], (ratio: number) => Sampler>> = {
  on: () => new AlwaysOnSampler(),
  off: () => new AlwaysOffSampler(),
  ratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
}

function samplerFor({ root, ratio, isParentBased }: SamplerSettings): Sampler {
  const own = ROOTS[root](ratio)
  return isParentBased ? new ParentBasedSampler({ root: own }) : own
}

function contextOf(traceparent: string | undefined): Context {
  const parent = traceparent === undefined ? null : parseTraceParent(traceparent)
  return parent ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT
}

function traceRequest(tracer: Tracer, room: SpanQueueLimit, traced: TracedRequest): void {
  if (!room.has(1)) return
  const span = tracer.startSpan(
    `${traced.method} ${traced.route ?? 'unknown'}`,
    {
      kind: SpanKind.SERVER,
      startTime: traced.startedMs,
      attributes: definedAttributes(requestAttributes(traced)),
    },
    contextOf(traced.traceparent),
  )
  end(span, room, traced.endedMs, traced.status >= 500)
}

/**
 * Creates a span for the call with its usage, and below it a span for each request to an upstream. Returns
 * the context of the call's span; undefined if the span is not sampled or was dropped.
 */
function traceCall(
  tracer: Tracer,
  room: SpanQueueLimit,
  call: FinishedCall,
  said: MessageAttributes | undefined,
): Context | undefined {
  const { facts, settlement, attempts } = call
  if (!room.has(1 + attempts.length)) return undefined
  const attributes = definedAttributes(callAttributes(call))
  const parent = contextOf(call.traceparent)
  const span = tracer.startSpan(
    `${String(attributes['gen_ai.operation.name'])} ${String(attributes['gen_ai.request.model'])}`,
    { kind: SpanKind.CLIENT, startTime: facts.started_ms, attributes },
    parent,
  )
  const within = trace.setSpan(parent, span)
  if (span.isRecording())
    for (const attempt of attempts) {
      const startTime = facts.started_ms + attempt.started_ms
      const child = tracer.startSpan(
        'POST',
        { kind: SpanKind.CLIENT, startTime, attributes: definedAttributes(attemptAttributes(attempt)) },
        within,
      )
      end(child, room, startTime + attempt.duration_ms, attempt.cause !== null)
    }
  const isSampled = span.isRecording()
  if (said && isSampled) addContent(span, room, said)
  end(span, room, Math.max(settlement.ended_ms, facts.started_ms), errorType(call) !== undefined)
  return isSampled ? within : undefined
}

/**
 * Adds the messages of a call to its span. They count against the limit on queued content (`SpanQueueLimit`)
 * until the span is sent.
 */
function addContent(span: Span, room: SpanQueueLimit, said: MessageAttributes): void {
  for (const [name, value] of Object.entries(said)) {
    const text = JSON.stringify(value)
    if (room.takeContent(text.length)) span.setAttribute(name, text)
  }
}

function contentBytes({ content }: Pick<FinishedCall, 'content'>): number {
  return content ? content.request.length + (content.answer?.length ?? 0) : 0
}

function end(span: Span, room: SpanQueueLimit, endedMs: number, isFailed: boolean): void {
  if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
  if (span.isRecording()) room.enter(1)
  span.end(endedMs)
}
