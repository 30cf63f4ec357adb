import type { AnswerMetadata } from '@sluice/wire/answer-metadata'
import type { AttemptEntry } from '../domain/call-detail.ts'
import type { HoldFacts, Settlement } from '../domain/records/usage.ts'
import type { ExportCounts } from './export-counts.ts'
import type { Metrics } from './metrics.ts'
import { readTelemetrySettings } from './telemetry-settings.ts'

/**
 * A request that is not a call of a model. It contains only short values, never the text of a prompt or a
 * key.
 */
export interface TracedRequest {
  readonly id: string
  readonly method: string
  /** Path of the route; undefined if none matched. */
  readonly route: string | undefined
  readonly status: number
  /** Start of the request in Unix milliseconds; `endedMs` has the same unit. */
  readonly startedMs: number
  readonly endedMs: number
  /** The client's header `traceparent`. */
  readonly traceparent: string | undefined
  /** The requested model, if the request was a refused call. */
  readonly model?: string | undefined
  /** Error code, if the gateway answered with an error. */
  readonly failure?: string | undefined
}

/** Address of an upstream, without a path and without credentials. */
export interface ServerAddress {
  readonly address: string
  readonly port: number
}

/** Parameters of a request by their `gen_ai.request.*` attributes. */
export type RequestParameters = Readonly<Record<string, string | number>>

/** One attempt of a call: a request to an upstream. */
export interface TracedAttempt extends Omit<AttemptEntry, 'message'> {
  readonly server: ServerAddress | undefined
}

/** Request and response of a call whose content is stored, as exchanged with the client. */
export interface CallContent {
  readonly request: Buffer
  /** The response's bytes; undefined if the client received nothing. */
  readonly answer: Buffer | undefined
}

/** A settled call. Its only texts from an operator or a client are names of models, channels and sessions. */
export interface TracedCall {
  readonly facts: HoldFacts
  readonly settlement: Settlement
  readonly userId: number
  readonly tokenId: number
  /** The client's header `traceparent`. */
  readonly traceparent: string | undefined
  /** Value of `gen_ai.provider.name` for the channel. */
  readonly provider: string
  /** Address of the channel that answered; undefined if none answered or the channel was deleted. */
  readonly server: ServerAddress | undefined
  readonly quotaPerUnit: number
  /** Name of the session, or the digest that the usage log has instead; empty if the call has no session. */
  readonly conversation: string
  /** Whether tokens of the call may represent audio or images. */
  readonly mayHaveMedia: boolean
  readonly parameters: RequestParameters
  /** Id, model and finish reasons that the response states; undefined if unknown. */
  readonly names: AnswerMetadata | undefined
  readonly attempts: readonly TracedAttempt[]
  /** Milliseconds between consecutive reads of the stream, in order. */
  readonly chunkGapsMs: readonly number[]
  /** Whether `Telemetry.content` is called for this call, after the client has received its response. */
  readonly awaitsContent: boolean
}

/** Exports spans and metrics. */
export interface Telemetry {
  readonly counts: ExportCounts
  /** Whether the content of calls is exported. This concerns only calls whose content is stored. */
  readonly takesContent: boolean
  /** Records a request that is not a call. */
  request(traced: TracedRequest): void
  /** Records a settled call. */
  call(traced: TracedCall): void
  /** Whether content of this size can be exported now. */
  hasRoomFor(content: CallContent): boolean
  /**
   * Adds the content of a call that was recorded with `awaitsContent`; undefined if the content was not
   * stored after all.
   */
  content(id: string, content: CallContent | undefined): void
  /** Exports everything that is still queued. Never rejects. */
  close(): Promise<void>
}

/** Services that telemetry needs. */
export interface TelemetryServices {
  readonly metrics: Pick<Metrics, 'add'>
  readonly warn: (fields: object, sentence: string) => void
}

/**
 * Starts telemetry if OpenTelemetry's environment variables name a collector. Otherwise returns undefined,
 * and no package of OpenTelemetry is loaded. `docs/telemetry.md: Variables`.
 */
export async function openTelemetry(
  variables: ReadonlyMap<string, string>,
  services: TelemetryServices,
): Promise<Telemetry | undefined> {
  const settings = readTelemetrySettings(variables, services.warn)
  if (settings.signals.size === 0) return undefined
  const { otlpTelemetry } = await import('./otlp/open-otlp.ts')
  return otlpTelemetry(settings, services)
}
