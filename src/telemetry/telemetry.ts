import type { AnswerNames } from '@sluice/wire/answer-names'
import type { AttemptEntry } from '../domain/call-detail.ts'
import type { HoldFacts, Settlement } from '../domain/records/usage.ts'
import type { ExportCounts } from './export-counts.ts'
import type { Metrics } from './metrics.ts'
import { readTelemetrySettings } from './telemetry-settings.ts'

/** A request other than a call: scalars only, never the text of a prompt or a key. */
export interface TracedRequest {
  readonly id: string
  readonly method: string
  /** Path of the route; undefined if none matched. */
  readonly route: string | undefined
  readonly status: number
  /** Unix milliseconds. */
  readonly startedMs: number
  readonly endedMs: number
  /** Trace of the client, as sent in `traceparent`. */
  readonly traceparent: string | undefined
  /** The model that a refused call requested. */
  readonly model?: string | undefined
  /** Code of the gateway's error. */
  readonly failure?: string | undefined
}

/** Address of an upstream, without a path and without credentials. */
export interface ServerAddress {
  readonly address: string
  readonly port: number
}

/** Values of `gen_ai.request.*` that a request states. */
export type RequestParameters = Readonly<Record<string, string | number>>

/** A request of a call to an upstream. */
export interface TracedAttempt extends Omit<AttemptEntry, 'message'> {
  readonly server: ServerAddress | undefined
}

/** Bytes of a call whose content is kept, as its client sent and got them. */
export interface CallContent {
  readonly request: Buffer
  /** Undefined if the client got nothing. */
  readonly answer: Buffer | undefined
}

/** A settled call. Only the names of models, channels and sessions are texts of an operator or a client. */
export interface TracedCall {
  readonly facts: HoldFacts
  readonly settlement: Settlement
  readonly userId: number
  readonly tokenId: number
  /** Trace of the client, as sent in `traceparent`. */
  readonly traceparent: string | undefined
  /** `gen_ai.provider.name` of the channel. */
  readonly provider: string
  /** Address of the channel that answered; undefined if none did, or if the channel is gone. */
  readonly server: ServerAddress | undefined
  readonly quotaPerUnit: number
  /** The session's name, or else the digest in the row; empty if the call has no session. */
  readonly conversation: string
  /** Whether tokens of the call may be audio or images. */
  readonly mayHaveMedia: boolean
  readonly parameters: RequestParameters
  /** What the answer states about itself; undefined if nothing is known. */
  readonly names: AnswerNames | undefined
  readonly attempts: readonly TracedAttempt[]
  /** Milliseconds between two reads of the stream, in their order. */
  readonly chunkGapsMs: readonly number[]
  /** Whether `content` is called for it, once the client has got its answer. */
  readonly awaitsContent: boolean
}

/** Exports spans and metrics. */
export interface Telemetry {
  readonly counts: ExportCounts
  /** Whether the content of calls is exported, where it is kept. */
  readonly takesContent: boolean
  /** Records a request that is not a call. */
  request(traced: TracedRequest): void
  /** Records a call, once it is settled. */
  call(traced: TracedCall): void
  /** Adds what was said in a call that awaits it; undefined if that was not kept after all. */
  content(id: string, content: CallContent | undefined): void
  /** Sends what has not been sent. Never rejects. */
  close(): Promise<void>
}

/** Services that telemetry needs. */
export interface TelemetryServices {
  readonly metrics: Pick<Metrics, 'add'>
  readonly warn: (fields: object, sentence: string) => void
  /** Name of the worker among the processes of a gateway; undefined in a gateway of one process. */
  readonly worker: string | undefined
}

/**
 * Starts telemetry if the environment names a collector in OpenTelemetry's own variables; otherwise returns
 * undefined, and nothing of OpenTelemetry is loaded. `docs/telemetry.md: Variables`.
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
