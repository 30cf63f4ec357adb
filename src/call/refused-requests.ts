import type { ProtocolName } from '@sluice/wire/protocols'
import type { UpstreamErrorText } from '@sluice/wire/upstream-error'

/** OpenAI's code for a request that is longer than the model's context. */
export const TOO_LONG_CODE = 'context_length_exceeded'

/** Codes and types of refusals of requests that are longer than the model's context. */
const TOO_LONG_CODES: ReadonlySet<string> = new Set([
  // OpenAI, Azure, Groq, Cerebras
  TOO_LONG_CODE,
  // GitHub Copilot
  'model_max_prompt_tokens_exceeded',
  // z.ai, https://docs.z.ai/api-reference/api-code
  '1261',
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
  /^(?:The model returned the following errors: )?Input Tokens Exceeded: Number of input tokens exceeds/,
  /^The model returned the following errors: (?:Input is too long|prompt is too long|This model's maximum)/,
  // OpenAI, where a proxy has left out the code
  /^Your input exceeds the context window of this model\b/,
  /^Input tokens exceed the configured limit of \d+ tokens\b/,
  // OpenAI's words, which DeepSeek, xAI, vLLM and others repeat; OpenRouter's own
  /^This (?:model|endpoint)'s maximum (?:context|prompt) length is \d+/,
  // vLLM (vllm/renderers/params.py, vllm/v1/engine/input_processor.py)
  /^You passed \d+ input \w+ and requested \d+ output tokens\. However, the model's context length is only \d+/,
  /^The (?:decoder )?prompt \(length \d+\) is longer than the maximum model length of \d+/,
  // SGLang (srt/managers/tokenizer_manager.py); Together
  /^The input \(\d+ tokens\) is longer than the model's context length \(\d+ tokens\)/,
  /^Requested token count exceeds the model's maximum context length of \d+ tokens/,
  // Text Generation Inference (router/src/validation.rs)
  /^(?:Input validation error: )?`inputs` (?:tokens \+ `max_new_tokens` must be <=|must have less than) \d+/,
  // llama.cpp, where a proxy has left out the type
  /^(?:the )?request (?:\(\d+ tokens\) )?exceeds the available context size\b/,
  // LM Studio
  /^(?:The number of tokens to keep|Trying to keep the first \d+ tokens)\b/,
  // Ollama; Fireworks too
  /^prompt too long; exceeded max context length\b/,
  /^The prompt is too long: \d+, model maximum context length: \d+/,
  // Groq
  /^Please reduce the length of the messages or completion\b/,
  // Moonshot
  /^(?:Invalid request: )?Your request exceeded model token limit: \d+/,
  // MiniMax
  /^invalid params, context window exceeds limit\b/,
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
  const said = message.replace(REPEATED_BY_OPENROUTER, '')
  const words = TOO_LONG_WORDS.map((pattern) => pattern.exec(said)?.[0]).find((one) => one !== undefined)
  return words !== undefined && !isInRequest(words)
}

/** OpenRouter's words before those of the provider behind it. */
const REPEATED_BY_OPENROUTER = /^Provider returned error: /

/** Whether an upstream refuses a request because of its content. */
export function isFilteredRequest({ code, type }: UpstreamErrorText): boolean {
  return FILTERED_CODES.has(code ?? '') || FILTERED_CODES.has(type ?? '')
}

/** Statuses that may speak of the account or of the request; what they say decides. */
const OF_ACCOUNT_OR_REQUEST: ReadonlySet<number> = new Set([402, 403])

/**
 * Sentences of refusals of a request with a status that usually speaks of the account. OpenRouter's moderation
 * (https://openrouter.ai/docs/api-reference/errors), xAI (https://docs.x.ai/developers/debugging).
 */
const MODERATION_WORDS: readonly RegExp[] = [
  /^\S+ requires moderation on .{1,60}\. Your input was flagged\b/,
  /^Your input was flagged\b/,
  /^Your chosen model requires moderation and your input was flagged\b/,
  /^Content violates usage guidelines\b/,
  /^Request blocked: prompt injection patterns detected\b/,
]

/** Whether an error with a status that usually speaks of the account refuses the request because of its content. */
export function isModeratedRequest(
  status: number,
  { code, type, message = '' }: UpstreamErrorText,
  isInRequest: (text: string) => boolean,
): boolean {
  if (!OF_ACCOUNT_OR_REQUEST.has(status)) return false
  if (isFilteredRequest({ code, type, message })) return true
  const words = MODERATION_WORDS.map((pattern) => pattern.exec(message)?.[0]).find((one) => one !== undefined)
  return words !== undefined && !isInRequest(words)
}

/** How clients of a dialect recognize that a request is too long for the model. */
interface TooLongForm {
  readonly code?: string
  /** What the message begins with, and the words that are put before another message. */
  readonly beginning?: string
  readonly words?: string
}

const BY_CODE: TooLongForm = { code: TOO_LONG_CODE }
const TOO_LONG_FORMS: Readonly<Partial<Record<ProtocolName, TooLongForm>>> = {
  chat: BY_CODE,
  responses: BY_CODE,
  messages: { beginning: 'prompt is too long:', words: 'prompt is too long: ' },
  gemini: {
    beginning: 'The input token count',
    words: 'The input token count exceeds the maximum number of tokens allowed: ',
  },
}

/**
 * Message and code of the error for a request that is too long, as clients of each dialect recognize it: they
 * then shorten the conversation.
 */
export function tooLongError(
  client: ProtocolName,
  message: string,
  code: string | undefined,
): { readonly message: string; readonly code: string | undefined } {
  const form = TOO_LONG_FORMS[client]
  const { beginning = '', words = '' } = form ?? {}
  return {
    message: message.startsWith(beginning) ? message : `${words}${message}`,
    code: form?.code ?? code,
  }
}
