/** A provider of LiteLLM, and the channel type that serves it. */
export interface LitellmProvider {
  /** Number of the channel type. */
  readonly type: number
  /**
   * Base URL for entries of `model_list` that state none. Absent if the channel type has a default, or if an
   * entry must state a base URL.
   */
  readonly address?: string
  /**
   * Whether the base URL of an entry is used unchanged, as LiteLLM does for servers compatible with OpenAI.
   */
  readonly keepsAddress?: true
  /** Name for the channels of this provider; the provider's name if absent. */
  readonly channel?: string
  /** Which members of an entry have its credentials; `api_key` alone if absent. */
  readonly credentials?: 'azure' | 'bedrock' | 'vertex' | undefined
}

/** The channel type for servers that speak chat completions at any address. */
const CUSTOM = 8

const compatible = (address?: string): LitellmProvider => ({
  type: CUSTOM,
  keepsAddress: true,
  ...(address !== undefined && { address }),
})

const OPENAI: LitellmProvider = { type: 1, keepsAddress: true }
const OLLAMA: LitellmProvider = { type: 4, channel: 'ollama' }
const VERTEX: LitellmProvider = { type: 41, channel: 'vertex_ai', credentials: 'vertex' }
const COHERE = compatible('https://api.cohere.ai/compatibility/v1')

/** The providers whose protocol this gateway supports, by the first part of `litellm_params.model`. */
const PROVIDERS: ReadonlyMap<string, LitellmProvider> = new Map([
  ['openai', OPENAI],
  ['text-completion-openai', { ...OPENAI, channel: 'openai' }],
  ['azure', { type: 3, credentials: 'azure' }],
  ['azure_ai', compatible()],
  ['anthropic', { type: 14 }],
  ['gemini', { type: 24 }],
  ['vertex_ai', VERTEX],
  ['vertex_ai_beta', VERTEX],
  ['bedrock', { type: 33, credentials: 'bedrock' }],
  ['mistral', { type: 42, keepsAddress: true }],
  ['deepseek', { type: 43 }],
  ['openrouter', { type: 20, keepsAddress: true }],
  ['xai', { type: 48, keepsAddress: true }],
  ['perplexity', { type: 27, keepsAddress: true }],
  ['moonshot', { type: 25, keepsAddress: true }],
  ['dashscope', { type: 17, keepsAddress: true }],
  ['volcengine', { type: 45, keepsAddress: true }],
  ['ollama', OLLAMA],
  ['ollama_chat', OLLAMA],
  ['cohere', COHERE],
  ['cohere_chat', { ...COHERE, channel: 'cohere' }],
  ['jina_ai', compatible('https://api.jina.ai/v1')],
  ['groq', compatible('https://api.groq.com/openai/v1')],
  ['together_ai', compatible('https://api.together.xyz/v1')],
  ['fireworks_ai', compatible('https://api.fireworks.ai/inference/v1')],
  ['cerebras', compatible('https://api.cerebras.ai/v1')],
  ['deepinfra', compatible('https://api.deepinfra.com/v1/openai')],
  ['sambanova', compatible('https://api.sambanova.ai/v1')],
  ['nvidia_nim', compatible('https://integrate.api.nvidia.com/v1')],
  ['minimax', compatible('https://api.minimax.io/v1')],
  ['zai', compatible('https://api.z.ai/api/paas/v4')],
  ['custom_openai', compatible()],
  ['openai_like', compatible()],
  ['hosted_vllm', compatible()],
  ['vllm', compatible()],
  ['lm_studio', compatible()],
  ['llamafile', compatible()],
  ['xinference', compatible()],
  ['litellm_proxy', compatible()],
])

/** The provider of a model name without a prefix, guessed as LiteLLM does. */
const GUESSES: readonly (readonly [RegExp, string])[] = [
  [/^(?:gpt-|chatgpt-|o\d|text-embedding-|dall-e|whisper-|tts-|omni-moderation|text-moderation)/, 'openai'],
  [/^claude/, 'anthropic'],
  [/^gemini/, 'vertex_ai'],
  [/^(?:command|embed-)/, 'cohere'],
  [/^(?:anthropic|amazon|meta|mistral|cohere|ai21)\.[a-z]/, 'bedrock'],
]

/** Prefixes between provider and model in LiteLLM's model names, which select an API of the provider. */
const ROUTES = /^(?:converse|invoke|converse_like|responses|chat|v1|maas)\//

/**
 * The parts of a LiteLLM model name: its provider, the name for the channel, and the provider's name of the
 * model.
 */
export interface LitellmModelParts {
  readonly provider: LitellmProvider
  readonly channel: string
  readonly upstream: string
}

/**
 * Splits `litellm_params.model`. `stated` is `custom_llm_provider`. Returns `unknown` with the provider's
 * name if this gateway cannot call that provider.
 */
export function splitModel(
  model: string,
  stated: string | undefined,
): LitellmModelParts | { readonly unknown: string } {
  const [first = '', ...rest] = model.split('/')
  const isPrefix = rest.length > 0 && (stated === undefined ? PROVIDERS.has(first) : stated === first)
  const guess = GUESSES.find(([pattern]) => pattern.test(model))?.[1]
  const name = stated ?? (isPrefix ? first : rest.length > 0 ? first : (guess ?? ''))
  const provider = PROVIDERS.get(name)
  if (!provider) return { unknown: name === '' ? model : name }
  const upstream = (isPrefix ? rest.join('/') : model).replace(ROUTES, '')
  return { provider, channel: provider.channel ?? name, upstream }
}
