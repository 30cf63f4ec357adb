/** Traced properties of a request: scalars only, never the text of a prompt or a key. */
export interface TracedRequest {
  readonly id: string
  readonly method: string
  /** Path of the route; undefined if none matched. */
  readonly route: string | undefined
  readonly status: number
  readonly startedMs: number
  readonly endedMs: number
  /** Trace of the client, as sent in `traceparent`. */
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

/** Exporter of traces. */
export interface Tracing {
  request(traced: TracedRequest): void
  /** Sends the last batch. Never rejects. */
  close(): Promise<void>
}

const ENDPOINT_VARIABLES = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']

/**
 * Starts tracing if the environment names an exporter in OpenTelemetry's own variables; otherwise returns
 * undefined, and no tracing code is loaded. `docs/operations.md: Traces`.
 */
export async function openTracing(variables: ReadonlyMap<string, string>): Promise<Tracing | undefined> {
  if (!ENDPOINT_VARIABLES.some((name) => variables.get(name))) return undefined
  const { otlpTracing } = await import('./otlp.ts')
  return otlpTracing(variables)
}
