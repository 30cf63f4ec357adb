import { cacheWriteTokens, promptTokens, type Usage } from '@sluice/wire/usage'
import type { CallKind } from '../domain/endpoints.ts'
import { FAILED_REASONS } from '../domain/call-outcome.ts'
import type { TracedCall } from './telemetry.ts'

// Names and values of the OpenTelemetry conventions for generative AI, which are under development: repository
// open-telemetry/semantic-conventions-genai at commit 024a4f944a1291fcb627c9c47da69e79868dd15e.
// docs/telemetry.md: Conventions

/** Values of attributes; undefined ones are left out. */
export type AttributeValues = Readonly<Record<string, string | number | boolean | string[] | undefined>>

/** A row of `OPERATIONS`. */
interface Operation {
  /** `gen_ai.operation.name`: a well-known name where the conventions have one. */
  readonly name: string
  /** What the client wants to get; absent if it depends on the request. */
  readonly output?: 'image' | 'speech' | 'text'
  /** Whether a model writes an answer, which ends for a reason. */
  readonly isGenerated?: true
}

/** Operations by endpoint. `docs/telemetry.md: Operations`. */
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
  '': { name: 'chat' },
}

/** Number of tokens of one modality. */
export type Modalities = Readonly<Partial<Record<'text' | 'audio' | 'image' | 'unknown', number>>>

/** Tokens of a call as the conventions count them; details are contained in their wholes. */
export interface TokenCounts {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly reasoning: number
  readonly inputBy: Modalities
  readonly outputBy: Modalities
  readonly cacheReadBy: Modalities
  /** Whether the provider told tokens of audio or images apart. */
  readonly isSplit: boolean
}

/**
 * Counts tokens by modality. If the provider does not tell them apart, the tokens of a call that may have media
 * are of an unknown modality, and all others are text.
 */
export function tokenCounts(usage: Usage, mayHaveMedia: boolean): TokenCounts {
  const { audioCacheRead = 0, imageCacheRead = 0, cacheRead, output } = usage
  const input = promptTokens(usage)
  const audio = usage.audioInput + audioCacheRead
  const image = usage.imageInput + imageCacheRead
  const isSplit = audio + image + usage.audioOutput + usage.imageOutput > 0
  const rest = mayHaveMedia && !isSplit ? 'unknown' : 'text'
  const split = (whole: number, sound: number, pictures: number): Modalities => ({
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

/** `error.type` of a call: the cause in its row; undefined unless it failed. */
export function errorType({ settlement: { reason, cause } }: TracedCall): string | undefined {
  return FAILED.has(reason) ? cause || reason : undefined
}

/** USD for a charge. A charge is an integer of quota units, so that sums of spans are those of rows. */
export function costOf({ settlement: { quota }, quotaPerUnit }: TracedCall): number {
  return quota / quotaPerUnit
}
