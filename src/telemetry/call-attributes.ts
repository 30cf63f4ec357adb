import { secondsToFirstByte } from '../domain/records/usage.ts'
import {
  type AttributeValues,
  commonAttributes,
  costInUsd,
  errorType,
  type TokensByModality,
  OPERATIONS,
  type TokenCounts,
  tokenCounts,
} from './gen-ai.ts'
import type { TracedAttempt, TracedCall, TracedRequest } from './telemetry.ts'

/** Attributes of the span of a call. `docs/telemetry.md: Attributes of a call`. */
export function callAttributes(call: TracedCall): AttributeValues {
  const { facts, settlement, names } = call
  const { stream } = facts
  const { output, isGenerated } = OPERATIONS[facts.kind]
  const counts = tokenCounts(settlement.usage, call.mayHaveMedia)
  return {
    ...commonAttributes(call),
    'gen_ai.conversation.id': call.conversation || undefined,
    'gen_ai.output.type': output,
    'gen_ai.request.stream': stream || undefined,
    ...call.parameters,
    'gen_ai.response.id': names?.id,
    'gen_ai.response.model': (names?.model ?? settlement.upstream_model) || undefined,
    'gen_ai.response.finish_reasons': isGenerated && finishReasons(call),
    'gen_ai.response.time_to_first_chunk': stream ? secondsToFirstByte(settlement) : undefined,
    ...usageAttributes(counts),
    'gen_ai.usage.cost.amount': costInUsd(call),
    'gen_ai.usage.cost.currency': 'USD',
    'gen_ai.usage.cost.source': 'local',
    ...langfuseAttributes(counts, costInUsd(call)),
    'error.type': errorType(call),
    'user.id': String(call.userId),
    'sluice.request_id': facts.id,
    'sluice.token_id': call.tokenId,
    'sluice.endpoint': facts.kind || undefined,
    'sluice.model': settlement.model,
    'sluice.upstream_model': settlement.upstream_model || undefined,
    'sluice.group': settlement.group || undefined,
    'sluice.channel': settlement.channel || undefined,
    'sluice.quota': settlement.quota,
    'sluice.settlement': settlement.reason,
    'sluice.service_tier': settlement.service_tier || undefined,
    'sluice.attempts': call.attempts.length,
    'sluice.cache': settlement.cache || undefined,
  }
}

/** Why each choice of the response ended; `error` for a choice without a regular end. */
export function finishReasons({ names, settlement }: Pick<TracedCall, 'names' | 'settlement'>): string[] {
  const reasons = names?.reasons ?? []
  const isWhole = settlement.reason === 'complete' || settlement.reason === 'estimated'
  if (reasons.length === 0) return isWhole ? [] : ['error']
  return reasons.map((reason) => reason ?? 'error')
}

function usageAttributes(counts: TokenCounts): AttributeValues {
  const { isSplit, inputBy, outputBy, cacheReadBy } = counts
  return {
    'gen_ai.usage.input_tokens': counts.input,
    'gen_ai.usage.output_tokens': counts.output,
    'gen_ai.usage.cache_read.input_tokens': counts.cacheRead || undefined,
    'gen_ai.usage.cache_write.input_tokens': counts.cacheWrite || undefined,
    // Until August 2026 the attribute had this name, which Phoenix still reads.
    'gen_ai.usage.cache_creation.input_tokens': counts.cacheWrite || undefined,
    'gen_ai.usage.reasoning.output_tokens': counts.reasoning || undefined,
    ...(isSplit && {
      ...modalityAttributes(inputBy, 'input_tokens'),
      ...modalityAttributes(outputBy, 'output_tokens'),
      ...modalityAttributes(cacheReadBy, 'cache_read.input_tokens'),
    }),
  }
}

function modalityAttributes(counts: TokensByModality, kind: string): AttributeValues {
  return Object.fromEntries(
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([modality, count]) => [`gen_ai.usage.${modality}.${kind}`, count]),
  )
}

/**
 * Usage and cost in the format that Langfuse prefers. Otherwise Langfuse would treat every number under
 * `gen_ai.usage.` as a count of tokens, and add them all up.
 */
function langfuseAttributes(counts: TokenCounts, cost: number): AttributeValues {
  const { input, output, cacheRead, cacheWrite, reasoning } = counts
  const usage = {
    input: Math.max(0, input - cacheRead - cacheWrite),
    output: Math.max(0, output - reasoning),
    ...(cacheRead > 0 && { input_cached_tokens: cacheRead }),
    ...(cacheWrite > 0 && { input_cache_creation: cacheWrite }),
    ...(reasoning > 0 && { output_reasoning_tokens: reasoning }),
    total: input + output,
  }
  return {
    'langfuse.observation.usage_details': JSON.stringify(usage),
    'langfuse.observation.cost_details': JSON.stringify({ total: cost }),
  }
}

/**
 * Attributes of the span of an attempt, one request to an upstream. They describe only the HTTP request, so
 * that tools do not count the attempt as another model call.
 */
export function attemptAttributes(attempt: TracedAttempt): AttributeValues {
  return {
    'http.request.method': 'POST',
    'http.response.status_code': attempt.status ?? undefined,
    'server.address': attempt.server?.address,
    'server.port': attempt.server?.port,
    'error.type': attempt.cause ?? undefined,
    'sluice.channel': attempt.channel,
    'sluice.key_index': attempt.key_index,
  }
}

/** Attributes of the span of an HTTP request that is not a call of a model. */
export function requestAttributes(traced: TracedRequest): AttributeValues {
  const { status, failure } = traced
  return {
    'http.request.method': traced.method,
    'http.route': traced.route,
    'http.response.status_code': status,
    'error.type': status >= 400 ? (failure ?? String(status)) : undefined,
    'sluice.request_id': traced.id,
    'sluice.model': traced.model,
  }
}
