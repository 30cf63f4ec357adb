/** What a trace tells of a request. Scalars only: never a word of a prompt or a key. */
export interface TracedRequest {
  readonly id: string
  readonly method: string
  /** The route's path; undefined where nothing is. */
  readonly route: string | undefined
  readonly status: number
  readonly startedMs: number
  readonly endedMs: number
  /** The caller's own trace, as it came in `traceparent`. */
  readonly traceparent: string | undefined
  readonly model: string | undefined
  readonly upstreamModel: string | undefined
  readonly channel: string | undefined
  readonly stream: boolean | undefined
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly quota: number | undefined
  readonly reason: string | undefined
  readonly failure: string | undefined
}

/** Sends what happened to whoever collects traces. */
export interface Tracing {
  request(traced: TracedRequest): void
  /** Sends what has gathered. Never rejects. */
  close(): Promise<void>
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']

/**
 * Tracing, where the environment names an exporter in OpenTelemetry's own variables; else undefined, and
 * nothing of it is loaded. `docs/operations.md: Traces`.
 */
export async function openTracing(variables: ReadonlyMap<string, string>): Promise<Tracing | undefined> {
  if (!ENDPOINTS.some((name) => variables.get(name))) return undefined
  const { otlpTracing } = await import('./otlp.ts')
  return otlpTracing(variables)
}
