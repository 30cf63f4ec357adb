import type { StopReason } from './reply.ts'

/** What a reason that a provider reports says about its answer. */
export type EndClass = 'good' | 'length' | 'filtered' | 'refused' | 'failed'

/**
 * Who caused an end that is a failure: the upstream (its server broke off), the model (it wrote a call that
 * cannot be read), or the request.
 */
export type FailureCulprit = 'upstream' | 'model' | 'request'

/** The meaning of a reported reason. */
export type EndReason =
  | { readonly class: Exclude<EndClass, 'failed'>; readonly stop: StopReason }
  | { readonly class: 'failed'; readonly culprit: FailureCulprit }

/** A reason that means that the answer failed. */
export type FailedEnd = Extract<EndReason, { class: 'failed' }>

const MEANINGS = {
  end: { class: 'good', stop: 'end' },
  toolCalls: { class: 'good', stop: 'tool-calls' },
  stopSequence: { class: 'good', stop: 'stop-sequence' },
  pause: { class: 'good', stop: 'pause' },
  length: { class: 'length', stop: 'length' },
  filtered: { class: 'filtered', stop: 'refusal' },
  refused: { class: 'refused', stop: 'refusal' },
  failed: { class: 'failed', culprit: 'upstream' },
  badAnswer: { class: 'failed', culprit: 'model' },
  badRequest: { class: 'failed', culprit: 'request' },
} as const satisfies Readonly<Record<string, EndReason>>

/** The reasons of one provider or server. */
export interface ReasonsOfProvider {
  readonly provider: string
  /** The page or source file that lists the reasons. */
  readonly source: string
  readonly reasons: { readonly [Meaning in keyof typeof MEANINGS]?: readonly string[] }
}

/**
 * All known reasons of all protocols. Because servers of one protocol pass on the reasons of models that they
 * reach by another one, a reason means the same in each protocol; upper and lower case do not matter.
 */
export const REASONS_OF_PROVIDERS: readonly ReasonsOfProvider[] = [
  {
    provider: 'OpenAI, Azure, xAI, Groq, Moonshot, Alibaba, Fireworks, Perplexity: chat completions',
    source: 'https://platform.openai.com/docs/api-reference/chat/object',
    reasons: {
      end: ['stop'],
      length: ['length'],
      toolCalls: ['tool_calls', 'function_call'],
      filtered: ['content_filter'],
    },
  },
  {
    provider: 'OpenAI: responses (statuses, and reasons of incomplete ones)',
    source: 'https://platform.openai.com/docs/api-reference/responses/object',
    reasons: {
      end: ['completed', 'in_progress', 'queued', 'cancelled', 'incomplete'],
      length: ['max_output_tokens', 'max_tool_calls'],
      filtered: ['content_filter'],
      failed: ['failed'],
    },
  },
  {
    provider: 'Anthropic',
    source: 'https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons',
    reasons: {
      end: ['end_turn'],
      length: ['max_tokens', 'model_context_window_exceeded'],
      stopSequence: ['stop_sequence'],
      toolCalls: ['tool_use'],
      pause: ['pause_turn', 'compaction'],
      refused: ['refusal'],
    },
  },
  {
    provider: 'Google Gemini and Vertex AI',
    source: 'https://ai.google.dev/api/generate-content#FinishReason',
    reasons: {
      end: ['STOP', 'OTHER', 'LANGUAGE', 'NO_IMAGE', 'IMAGE_OTHER'],
      // A client whose call is converted has no token with which to continue the answer.
      length: ['MAX_TOKENS', 'CONTINUATION'],
      filtered: [
        'SAFETY',
        'RECITATION',
        'BLOCKLIST',
        'PROHIBITED_CONTENT',
        'SPII',
        'IMAGE_SAFETY',
        'IMAGE_PROHIBITED_CONTENT',
        'IMAGE_RECITATION',
        'MODEL_ARMOR',
        // Reasons why a prompt is blocked.
        'JAILBREAK',
        'BLOCKED_REASON_UNSPECIFIED',
      ],
      badAnswer: [
        'MALFORMED_FUNCTION_CALL',
        'UNEXPECTED_TOOL_CALL',
        'TOO_MANY_TOOL_CALLS',
        'MALFORMED_RESPONSE',
      ],
      badRequest: ['MISSING_THOUGHT_SIGNATURE'],
    },
  },
  {
    provider: 'Amazon Bedrock',
    source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html',
    reasons: {
      end: ['end_turn'],
      toolCalls: ['tool_use'],
      length: ['max_tokens', 'model_context_window_exceeded'],
      stopSequence: ['stop_sequence'],
      filtered: ['guardrail_intervened', 'content_filtered'],
      badAnswer: ['malformed_model_output', 'malformed_tool_use'],
    },
  },
  {
    provider: 'Mistral',
    source: 'https://docs.mistral.ai/api/endpoint/chat',
    reasons: { length: ['model_length'], failed: ['error'] },
  },
  {
    provider: 'DeepSeek',
    source: 'https://api-docs.deepseek.com/api/create-chat-completion',
    reasons: { failed: ['insufficient_system_resource'] },
  },
  {
    provider: 'z.ai',
    source: 'https://docs.z.ai/api-reference/llm/chat-completion',
    reasons: {
      filtered: ['sensitive'],
      length: ['model_context_window_exceeded'],
      failed: ['network_error'],
    },
  },
  {
    provider: 'OpenRouter',
    source: 'https://openrouter.ai/docs/api-reference/overview',
    reasons: { failed: ['error'] },
  },
  {
    provider: 'Cohere',
    source: 'https://github.com/cohere-ai/cohere-python/blob/main/src/cohere/types/chat_finish_reason.py',
    reasons: {
      end: ['COMPLETE'],
      toolCalls: ['TOOL_CALL'],
      length: ['MAX_TOKENS'],
      stopSequence: ['STOP_SEQUENCE'],
      failed: ['TIMEOUT', 'ERROR'],
    },
  },
  {
    provider: 'Cohere, version 1',
    source: 'https://github.com/cohere-ai/cohere-python/blob/main/src/cohere/types/finish_reason.py',
    reasons: { end: ['USER_CANCEL'], length: ['ERROR_LIMIT'], filtered: ['ERROR_TOXIC'] },
  },
  {
    provider: 'Together',
    source: 'https://github.com/togethercomputer/together-python/blob/main/src/together/types/common.py',
    reasons: { end: ['eos'] },
  },
  {
    provider: 'vLLM',
    source: 'https://github.com/vllm-project/vllm/blob/main/vllm/v1/request.py',
    reasons: { failed: ['abort', 'error'], end: ['repetition'] },
  },
  {
    provider: 'SGLang',
    source:
      'https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py',
    reasons: { failed: ['abort'] },
  },
  {
    provider: 'Text Generation Inference',
    source: 'https://github.com/huggingface/text-generation-inference/blob/main/router/src/lib.rs',
    reasons: { end: ['eos_token'], stopSequence: ['stop_sequence'] },
  },
  {
    provider: 'IBM watsonx',
    source:
      'https://ibm.github.io/watsonx-ai-node-sdk/enums/1_7_x.WatsonXAI.TextChatResultChoice.Constants.FinishReason.html',
    reasons: { end: ['cancelled'], length: ['time_limit'], failed: ['error'] },
  },
]

const BY_REASON: ReadonlyMap<string, EndReason> = new Map(
  REASONS_OF_PROVIDERS.flatMap(({ reasons }) =>
    (Object.keys(reasons) as (keyof typeof MEANINGS)[]).flatMap((meaning) =>
      (reasons[meaning] ?? []).map((reason) => [reason.toLowerCase(), MEANINGS[meaning]] as const),
    ),
  ),
)

/** The meaning of a reported reason; undefined if it is not known, which counts as a good end. */
export function endReasonOf(reason: string): EndReason | undefined {
  return BY_REASON.get(reason) ?? BY_REASON.get(reason.toLowerCase())
}

/** The failure that a reason means; undefined for any other value. */
export function failedEndOf(reason: unknown): FailedEnd | undefined {
  const end = typeof reason === 'string' ? endReasonOf(reason) : undefined
  return end?.class === 'failed' ? end : undefined
}

/** Whether all these reasons say that the answer was filtered or refused. */
export function areFilteredEnds(reasons: readonly (string | undefined)[]): boolean {
  return (
    reasons.length > 0 &&
    reasons.every((reason) => {
      const end = reason === undefined ? undefined : endReasonOf(reason)
      return end?.class === 'filtered' || end?.class === 'refused'
    })
  )
}
