import type { UpstreamErrorText } from '@sluice/wire/upstream-error'

/** Codes and types of refusals of requests that are longer than the model's context. */
const TOO_LONG_CODES: ReadonlySet<string> = new Set([
  // OpenAI, Azure, Groq, OpenRouter, vLLM, Together, Fireworks
  'context_length_exceeded',
  // llama.cpp
  'exceed_context_size_error',
])

/**
 * Beginnings of such refusals of providers that give them no code. What a request itself contains does not
 * count.
 */
const TOO_LONG_WORDS: readonly RegExp[] = [
  // Anthropic, and Claude at Bedrock and Vertex
  /^prompt is too long\b/i,
  /^input length and `max_tokens` exceed context limit/,
  // Google
  /^The input token count (?:\(\d+\) )?exceeds the maximum number of tokens allowed/,
  /^Unable to submit request because the input token count is \d+ but model only supports up to/,
  // Bedrock
  /^Input is too long for requested model/,
  /^The model returned the following errors: (?:Input is too long|prompt is too long)/,
  // OpenAI's words, which DeepSeek, Moonshot, vLLM and others repeat
  /^This model's maximum (?:context|prompt) length is \d+/,
  // Mistral
  /^Prompt contains \d+ tokens? .{0,80}too large for model/,
  // Cohere
  /^too many tokens: /,
  // Alibaba
  /^(?:<\d+> InternalError\.Algo\.InvalidParameter: )?Range of input length should be/,
]

/** Codes and types of refusals because of the content of a request, before anything was generated. */
const FILTERED_CODES: ReadonlySet<string> = new Set([
  // Azure
  'content_filter',
  'ResponsibleAIPolicyViolation',
  // OpenAI
  'content_policy_violation',
  'moderation_blocked',
  'invalid_prompt',
  // Alibaba
  'data_inspection_failed',
  'DataInspectionFailed',
  // Zhipu, MiniMax
  '1301',
  '1026',
  // Volcengine
  'SensitiveContentDetected',
  'InputTextSensitiveContentDetected',
  'InputImageSensitiveContentDetected',
])

/** Whether an upstream refuses a request because it is longer than the model's context. */
export function isTooLongRequest(
  { code, type, message = '' }: UpstreamErrorText,
  isInRequest: (text: string) => boolean,
): boolean {
  if (TOO_LONG_CODES.has(code ?? '') || TOO_LONG_CODES.has(type ?? '')) return true
  const words = TOO_LONG_WORDS.map((pattern) => pattern.exec(message)?.[0]).find((one) => one !== undefined)
  return words !== undefined && !isInRequest(words)
}

/** Finish reasons of answers that were filtered, in all protocols. */
const FILTERED_ENDS: ReadonlySet<string | undefined> = new Set([
  'content_filter',
  'content_filtered',
  'guardrail_intervened',
  'refusal',
  'sensitive',
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
])

/** Whether these finish reasons say that the answer was filtered. */
export function isFilteredEnd(reasons: readonly (string | undefined)[]): boolean {
  return reasons.length > 0 && reasons.every((reason) => FILTERED_ENDS.has(reason))
}

/** Whether an upstream refuses a request because of its content. */
export function isFilteredRequest({ code, type }: UpstreamErrorText): boolean {
  return FILTERED_CODES.has(code ?? '') || FILTERED_CODES.has(type ?? '')
}
