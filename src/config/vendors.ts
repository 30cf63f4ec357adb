import type { ProtocolName } from '@sluice/wire/protocols'

/** A vendor that can be called with nothing but an API key: its address and protocol are known. */
export interface Vendor {
  /** The vendor's id in the built-in prices. */
  readonly id: string
  /** Environment variables that may contain the vendor's API key; the first one that is set is used. */
  readonly variables: readonly string[]
  readonly protocol: ProtocolName
  /** Base URL of the vendor's API, up to and including the version. */
  readonly baseUrl: string
  /**
   * Matches the models of the vendor's price list that are served at `baseUrl`; if absent, all of them are.
   */
  readonly served?: RegExp
  /**
   * Matches served models that the gateway nevertheless cannot call at `baseUrl`: names that resellers use,
   * and models of endpoints that the gateway does not have.
   */
  readonly uncallable?: RegExp
  /**
   * Models that are served at `baseUrl` but have no built-in price, because no page states one. They can be
   * called only if the operator declares a price.
   */
  readonly unpriced?: readonly string[]
}

/**
 * The known vendors, in order of preference: makers of models come before vendors that host them, so that a
 * model name gets its maker's price. The expressions exclude models that the price data lists under a vendor
 * but that its address does not serve: open weights, and other makers' models in the same cloud. OpenAI
 * serves `-pro`, `codex` and deep research models only through its Responses API.
 */
export const VENDORS: readonly Vendor[] = Object.freeze([
  {
    id: 'openai',
    variables: ['OPENAI_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.openai.com/v1',
    served: /^(?!gpt-oss|text-moderation)/i,
    uncallable:
      /^gpt-35|^gpt-\d-\d(?!\d)|^gpt-5[.\d]*-chat$|:|-high$|-pro(?:-\d|$)|codex|deep-research|computer-use|instruct|^gpt-\d.*-image/i,
  },
  {
    id: 'anthropic',
    variables: ['ANTHROPIC_API_KEY'],
    protocol: 'messages',
    baseUrl: 'https://api.anthropic.com/v1',
  },
  {
    id: 'google',
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    protocol: 'gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    served: /^(?!.*claude|.*-maas$)/,
    uncallable: /^imagen/,
  },
  { id: 'mistral', variables: ['MISTRAL_API_KEY'], protocol: 'chat', baseUrl: 'https://api.mistral.ai/v1' },
  {
    id: 'deepseek',
    variables: ['DEEPSEEK_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.deepseek.com/v1',
  },
  {
    id: 'x-ai',
    variables: ['XAI_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.x.ai/v1',
    uncallable: /^x-ai\//,
  },
  {
    id: 'cohere',
    variables: ['COHERE_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.cohere.ai/compatibility/v1',
    served: /^(?!rerank-)/,
  },
  {
    id: 'cohere',
    variables: ['COHERE_API_KEY'],
    protocol: 'rerank',
    baseUrl: 'https://api.cohere.com/v1',
    served: /^rerank-/,
  },
  {
    id: 'jina',
    variables: ['JINA_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.jina.ai/v1',
    unpriced: ['jina-embeddings-v3', 'jina-embeddings-v4'],
  },
  {
    id: 'jina',
    variables: ['JINA_API_KEY'],
    protocol: 'rerank',
    baseUrl: 'https://api.jina.ai/v1',
    unpriced: ['jina-reranker-v2-base-multilingual', 'jina-reranker-m0', 'jina-reranker-v3'],
  },
  {
    id: 'moonshotai',
    variables: ['MOONSHOT_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.moonshot.ai/v1',
  },
  { id: 'minimax', variables: ['MINIMAX_API_KEY'], protocol: 'chat', baseUrl: 'https://api.minimax.io/v1' },
  { id: 'zai', variables: ['ZAI_API_KEY'], protocol: 'chat', baseUrl: 'https://api.z.ai/api/paas/v4' },
  {
    id: 'perplexity',
    variables: ['PERPLEXITY_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.perplexity.ai',
  },
  { id: 'groq', variables: ['GROQ_API_KEY'], protocol: 'chat', baseUrl: 'https://api.groq.com/openai/v1' },
  {
    id: 'cerebras',
    variables: ['CEREBRAS_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.cerebras.ai/v1',
  },
  {
    id: 'together',
    variables: ['TOGETHER_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.together.xyz/v1',
  },
  {
    id: 'fireworks',
    variables: ['FIREWORKS_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    served: /^accounts\//,
  },
  {
    id: 'openrouter',
    variables: ['OPENROUTER_API_KEY'],
    protocol: 'chat',
    baseUrl: 'https://openrouter.ai/api/v1',
  },
])

/** All environment variables that may contain a vendor's API key. */
export const KEY_VARIABLES: ReadonlySet<string> = new Set(VENDORS.flatMap((vendor) => vendor.variables))
