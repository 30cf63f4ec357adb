import { cacheWriteTokens, promptTokens, type Usage } from '@sluice/wire/usage'
import type { CallKind } from '../domain/endpoints.ts'
import { FAILED_REASONS } from '../domain/call-outcome.ts'
import type { TracedCall } from './telemetry.ts'

// Names and values of the OpenTelemetry conventions for generative AI, which are still under development:
// repository open-telemetry/semantic-conventions-genai at commit 024a4f944a1291fcb627c9c47da69e79868dd15e.
// docs/telemetry.md: Conventions

/** Attributes and their values. Attributes with the value undefined are left out. */
export type AttributeValues = Readonly<Record<string, string | number | boolean | string[] | undefined>>

/** How the calls of an endpoint are described: a row of `OPERATIONS`. */
interface Operation {
  /** Value of `gen_ai.operation.name`: the well-known name if the OpenTelemetry conventions define one. */
  readonly name: string
  /** Type of the output; absent if it depends on the request. */
  readonly output?: 'image' | 'speech' | 'text'
  /** Whether a model generates the response, so that it has a finish reason. */
  readonly isGenerated?: true
}

/** How the calls of each endpoint are described. `docs/telemetry.md: Operations`. */
export const OPERATIONS: Readonly<Record<CallKind, Operation>> = {
  chat: { name: 'chat', isGenerated: true },
  messages: { name: 'chat', isGenerated: true },
  responses: { name: 'chat', isGenerated: true },
  gemini: { name: 'generate_content', isGenerated: true },
  completions: { name: 'text_completion', isGenerated: true },
  embeddings: { name: 'embeddings' },
  images: { name: 'generate_content', output: 'image' },
  speech: { name: 'generate_content', output: 'speech' },
  transcriptions: { name: 'generate_content', output: 'text' },
  moderations: { name: 'moderation' },
  rerank: { name: 'rerank' },
  tool: { name: 'execute_tool' },
  '': { name: 'chat' },
}

export type TokensByModality = Readonly<Partial<Record<'text' | 'audio' | 'image' | 'unknown', number>>>

/**
 * Numbers of tokens of a call, as the OpenTelemetry conventions define them. `input` and `output` include all
 * other numbers.
 */
export interface TokenCounts {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly reasoning: number
  readonly inputBy: TokensByModality
  readonly outputBy: TokensByModality
  readonly cacheReadBy: TokensByModality
  /** Whether the provider states tokens of audio or images separately. */
  readonly isSplit: boolean
}

/**
 * Counts tokens by modality. If the provider does not state audio or images separately, all tokens are text,
 * or of an unknown modality if the call may contain media.
 */
export function tokenCounts(usage: Usage, mayHaveMedia: boolean): TokenCounts {
  const { audioCacheRead = 0, imageCacheRead = 0, cacheRead, output } = usage
  const input = promptTokens(usage)
  const audio = usage.audioInput + audioCacheRead
  const image = usage.imageInput + imageCacheRead
  const isSplit = audio + image + usage.audioOutput + usage.imageOutput > 0
  const rest = mayHaveMedia && !isSplit ? 'unknown' : 'text'
  const split = (whole: number, sound: number, pictures: number): TokensByModality => ({
    ...(sound > 0 && { audio: sound }),
    ...(pictures > 0 && { image: pictures }),
    [rest]: Math.max(0, whole - sound - pictures),
  })
  return {
    input,
    output,
    cacheRead,
    cacheWrite: cacheWriteTokens(usage),
    reasoning: usage.reasoning,
    inputBy: split(input, audio, image),
    outputBy: split(output, usage.audioOutput, usage.imageOutput),
    cacheReadBy: split(cacheRead, audioCacheRead, imageCacheRead),
    isSplit,
  }
}

/** Attributes that spans and metrics of a call have in common. */
export function commonAttributes({ facts, provider, server }: TracedCall): AttributeValues {
  return {
    'gen_ai.operation.name': OPERATIONS[facts.kind].name,
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': facts.requested_model || facts.model,
    'server.address': server?.address,
    'server.port': server?.port,
  }
}

const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)

/** Value of `error.type` for a call: the cause stored in the usage log; undefined unless the call failed. */
export function errorType({ settlement: { reason, cause } }: TracedCall): string | undefined {
  return FAILED.has(reason) ? cause || reason : undefined
}

/**
 * Cost of a call in USD. It is computed from the charge in whole quota units, so that sums over spans equal
 * sums over the usage log.
 */
export function costInUsd({ settlement: { quota }, quotaPerUnit }: TracedCall): number {
  return quota / quotaPerUnit
}
