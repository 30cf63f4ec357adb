import {
  type DocumentedExample,
  converse,
  chat,
  gemini,
  message,
  MILLION,
  modality,
  type PricedCall,
  response,
  webSearches,
} from './priced-call.ts'

const ANTHROPIC = 'platform.claude.com/docs/en/about-claude/pricing'
const GEMINI = 'ai.google.dev/gemini-api/docs/pricing'
const VERTEX = 'cloud.google.com/vertex-ai/generative-ai/pricing'
const BEDROCK = 'aws.amazon.com/bedrock/pricing'
const DEEPSEEK = 'api-docs.deepseek.com/quick_start/pricing'

const written = (fiveMinutes: number, hour: number): object => ({
  cache_creation_input_tokens: fiveMinutes + hour,
  cache_creation: { ephemeral_5m_input_tokens: fiveMinutes, ephemeral_1h_input_tokens: hour },
})

/** Prices of November 2026. */
export const ANTHROPIC_EXAMPLES: readonly Omit<DocumentedExample, 'provider'>[] = [
  {
    example: 'Opus 5: a session of 50,000 in and 15,000 out',
    page: ANTHROPIC,
    usd: 0.25 + 0.375,
    call: message('claude-opus-5', { input_tokens: 50_000, output_tokens: 15_000 }),
  },
  {
    example: 'Opus 5: the same session with 40,000 of its tokens read from the cache',
    page: ANTHROPIC,
    usd: 0.05 + 0.02 + 0.375,
    call: message('claude-opus-5', {
      input_tokens: 10_000,
      cache_read_input_tokens: 40_000,
      output_tokens: 15_000,
    }),
  },
  {
    example: 'Opus 4.8: 3,000 written for 5 minutes, 10,000 for an hour, 50,000 read',
    page: ANTHROPIC,
    usd: (2_000 * 5 + 3_000 * 6.25 + 10_000 * 10 + 50_000 * 0.5 + 1_500 * 25) / MILLION,
    call: message('claude-opus-4-8', {
      input_tokens: 2_000,
      ...written(3_000, 10_000),
      cache_read_input_tokens: 50_000,
      output_tokens: 1_500,
    }),
  },
  {
    example: 'Fable 5.1: cache reads at $0.25, a fortieth of input',
    page: ANTHROPIC,
    usd: (1_000 * 10 + 100_000 * 0.25 + 2_000 * 50) / MILLION,
    call: message('claude-fable-5-1', {
      input_tokens: 1_000,
      cache_read_input_tokens: 100_000,
      output_tokens: 2_000,
    }),
  },
  {
    example: 'Opus 4.8 in the region us: 1.1 times every kind, cache writes for an hour included',
    page: ANTHROPIC,
    usd: ((2_000 * 5 + 10_000 * 10 + 50_000 * 0.5 + 1_000 * 25) * 1.1) / MILLION,
    call: message('claude-opus-4-8', {
      input_tokens: 2_000,
      ...written(0, 10_000),
      cache_read_input_tokens: 50_000,
      output_tokens: 1_000,
      inference_geo: 'us',
    }),
    region: 'us',
  },
  {
    example: 'Opus 4.6, fast mode: $30 and $150',
    page: ANTHROPIC,
    usd: (10_000 * 30 + 1_000 * 150) / MILLION,
    call: message('claude-opus-4-6', { input_tokens: 10_000, output_tokens: 1_000, speed: 'fast' }),
    tier: 'fast',
  },
  {
    example: 'Opus 4.8, fast mode: $10 and $50',
    page: ANTHROPIC,
    usd: (10_000 * 10 + 1_000 * 50) / MILLION,
    call: message('claude-opus-4-8', { input_tokens: 10_000, output_tokens: 1_000, speed: 'fast' }),
    tier: 'fast',
  },
  {
    example: 'Opus 4.8, fast mode in the region us with 10,000 written for an hour: all multiply',
    page: ANTHROPIC,
    usd: ((2_000 * 10 + 10_000 * 20 + 1_000 * 50) * 1.1) / MILLION,
    call: message('claude-opus-4-8', {
      input_tokens: 2_000,
      ...written(0, 10_000),
      output_tokens: 1_000,
      speed: 'fast',
      inference_geo: 'us',
    }),
    tier: 'fast',
    region: 'us',
  },
  {
    example: 'Opus 4.8, batch: $2.50 and $12.50',
    page: ANTHROPIC,
    usd: (10_000 * 2.5 + 1_000 * 12.5) / MILLION,
    call: message('claude-opus-4-8', { input_tokens: 10_000, output_tokens: 1_000, service_tier: 'batch' }),
    tier: 'batch',
  },
  {
    example: 'Opus 4.8 with three web searches at $10 per 1,000',
    page: ANTHROPIC,
    usd: (10_000 * 5 + 1_000 * 25) / MILLION + (3 * 10) / 1_000,
    call: message(
      'claude-opus-4-8',
      { input_tokens: 10_000, output_tokens: 1_000, server_tool_use: { web_search_requests: 3 } },
      { fields: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] } },
    ),
  },
  {
    example: 'Opus 4.8 with a container of code execution at $0.05 an hour',
    page: ANTHROPIC,
    usd: (10_000 * 5 + 1_000 * 25) / MILLION + 0.05,
    call: message(
      'claude-opus-4-8',
      { input_tokens: 10_000, output_tokens: 1_000, server_tool_use: { code_execution_requests: 2 } },
      { fields: { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] } },
    ),
  },
  {
    example: 'Sonnet 4.5: more than 200,000 in, cached or not, at $6 and $22.50',
    page: ANTHROPIC,
    usd: (100_000 * 6 + 150_000 * 0.6 + 1_000 * 22.5) / MILLION,
    call: message('claude-sonnet-4-5', {
      input_tokens: 100_000,
      cache_read_input_tokens: 150_000,
      output_tokens: 1_000,
    }),
  },
]

/** Gemini 3.1 Pro's answer with two searches. */
const GROUNDED = { groundingMetadata: { webSearchQueries: ['one', 'two'] } }
const SEARCHING = { tools: [{ googleSearch: {} }] }

export const GEMINI_EXAMPLES: readonly Omit<DocumentedExample, 'provider'>[] = [
  {
    example: 'Gemini 2.5 Flash: 1,000 tokens of text and 2,000 of audio in, 200 out with 300 of thoughts',
    page: GEMINI,
    usd: (1_000 * 0.3 + 2_000 * 1 + (200 + 300) * 2.5) / MILLION,
    call: gemini('gemini-2.5-flash', {
      prompt: 3_000,
      output: 200,
      thoughts: 300,
      promptTokensDetails: [modality('TEXT', 1_000), modality('AUDIO', 2_000)],
    }),
  },
  {
    example: 'Gemini 2.5 Flash: cached text at $0.03, cached audio at $0.10',
    page: GEMINI,
    usd: (1_000 * 0.3 + 4_000 * 0.03 + 5_000 * 0.1 + 200 * 2.5) / MILLION,
    call: gemini('gemini-2.5-flash', {
      prompt: 10_000,
      output: 200,
      promptTokensDetails: [modality('TEXT', 5_000), modality('AUDIO', 5_000)],
      cachedContentTokenCount: 9_000,
      cacheTokensDetails: [modality('TEXT', 4_000), modality('AUDIO', 5_000)],
    }),
  },
  {
    example: 'Gemini 2.5 Pro, 150,000 in: $1.25 and $10',
    page: GEMINI,
    usd: (150_000 * 1.25 + 2_000 * 10) / MILLION,
    call: gemini('gemini-2.5-pro', { prompt: 150_000, output: 2_000 }),
  },
  {
    example: 'Gemini 2.5 Pro, 250,000 in, flex: half of the long-context price, $1.25 and $7.50',
    page: GEMINI,
    usd: (250_000 * 1.25 + 2_000 * 7.5) / MILLION,
    call: gemini('gemini-2.5-pro', { prompt: 250_000, output: 2_000, serviceTier: 'flex' }),
    tier: 'flex',
  },
  {
    example:
      'Gemini 2.5 Flash, batch: half price, but cached text at $0.03 and cached audio at $0.10 as ever',
    page: 'ai.google.dev/gemini-api/docs/batch-api',
    usd: (1_000 * 0.15 + 4_000 * 0.03 + 5_000 * 0.1 + 200 * 1.25) / MILLION,
    call: gemini('gemini-2.5-flash', {
      prompt: 10_000,
      output: 200,
      promptTokensDetails: [modality('TEXT', 5_000), modality('AUDIO', 5_000)],
      cachedContentTokenCount: 9_000,
      cacheTokensDetails: [modality('TEXT', 4_000), modality('AUDIO', 5_000)],
      serviceTier: 'batch',
    }),
    tier: 'batch',
  },
  {
    example: 'Gemini 2.5 Flash, priority: $0.54 and $4.50',
    page: GEMINI,
    usd: (10_000 * 0.54 + 1_000 * 4.5) / MILLION,
    call: gemini('gemini-2.5-flash', { prompt: 10_000, output: 1_000, serviceTier: 'priority' }),
    tier: 'fast',
  },
  {
    example: 'Gemini 2.5 Flash, asked for priority and served standard',
    page: GEMINI,
    usd: (10_000 * 0.3 + 1_000 * 2.5) / MILLION,
    call: gemini(
      'gemini-2.5-flash',
      { prompt: 10_000, output: 1_000, serviceTier: 'standard' },
      { fields: { serviceTier: 'priority' } },
    ),
  },
  {
    example: 'Gemini 3.1 Pro with two Google searches at $14 per 1,000',
    page: GEMINI,
    usd: (10_000 * 2 + 1_000 * 12) / MILLION + (2 * 14) / 1_000,
    call: gemini(
      'gemini-3.1-pro-preview',
      { prompt: 10_000, output: 1_000 },
      { candidate: GROUNDED, fields: SEARCHING },
    ),
  },
  {
    example: 'Gemini 2.5 Flash with two Google searches: one prompt with grounding, $35 per 1,000',
    page: GEMINI,
    usd: (10_000 * 0.3 + 1_000 * 2.5) / MILLION + 35 / 1_000,
    call: gemini(
      'gemini-2.5-flash',
      { prompt: 10_000, output: 1_000 },
      { candidate: GROUNDED, fields: SEARCHING },
    ),
  },
  {
    example: 'Gemini 2.5 Flash Image: a picture of 1,290 tokens at $30 per million',
    page: GEMINI,
    usd: (100 * 0.3 + 1_290 * 30) / MILLION,
    call: gemini('gemini-2.5-flash-image', {
      prompt: 100,
      output: 1_290,
      candidatesTokensDetails: [modality('IMAGE', 1_290)],
    }),
  },
]

const onVertex = { upstream: 'vertex' } as const

export const VERTEX_EXAMPLES: readonly Omit<DocumentedExample, 'provider'>[] = [
  {
    example: 'Gemini 2.5 Pro on provisioned throughput: nothing, it is paid beforehand',
    page: VERTEX,
    usd: 0,
    call: gemini(
      'gemini-2.5-pro',
      { prompt: 250_000, output: 2_000, trafficType: 'PROVISIONED_THROUGHPUT' },
      onVertex,
    ),
    tier: 'provisioned',
  },
  {
    example: 'Gemini 2.5 Flash, flex: $0.15 and $1.25',
    page: VERTEX,
    usd: (10_000 * 0.15 + 1_000 * 1.25) / MILLION,
    call: gemini(
      'gemini-2.5-flash',
      { prompt: 10_000, output: 1_000, trafficType: 'ON_DEMAND_FLEX' },
      onVertex,
    ),
    tier: 'flex',
  },
  {
    example: 'Gemini 2.5 Pro, 250,000 in, priority: 1.8 times the long-context price, $4.50 and $27',
    page: VERTEX,
    usd: (250_000 * 4.5 + 2_000 * 27) / MILLION,
    call: gemini(
      'gemini-2.5-pro',
      { prompt: 250_000, output: 2_000, trafficType: 'ON_DEMAND_PRIORITY' },
      onVertex,
    ),
    tier: 'fast',
  },
]

export const BEDROCK_EXAMPLES: readonly Omit<DocumentedExample, 'provider'>[] = [
  {
    example: 'Nova Pro: $0.80 and $3.20',
    page: BEDROCK,
    usd: (10_000 * 0.8 + 1_000 * 3.2) / MILLION,
    call: converse('amazon.nova-pro-v1:0', 10_000, 1_000),
  },
  {
    example: 'Nova Pro, priority: 75 % more, $1.40 and $5.60',
    page: BEDROCK,
    usd: (10_000 * 1.4 + 1_000 * 5.6) / MILLION,
    call: converse('amazon.nova-pro-v1:0', 10_000, 1_000, 'priority'),
    tier: 'fast',
  },
  {
    example: 'Nova Pro, flex: half, $0.40 and $1.60',
    page: BEDROCK,
    usd: (10_000 * 0.4 + 1_000 * 1.6) / MILLION,
    call: converse('amazon.nova-pro-v1:0', 10_000, 1_000, 'flex'),
    tier: 'flex',
  },
]

const fromDeepSeek = { upstream: 'api.deepseek.com' } as const
/** The names that DeepSeek has for tokens of the cache. */
const HITS = { prompt: 10_000, output: 1_000, promptDetails: { cached_tokens: 8_000 } }

export const OTHER_EXAMPLES: readonly DocumentedExample[] = [
  {
    provider: 'DeepSeek',
    example: 'V4 Flash off-peak: $0.007 for a cache hit, $0.22 for a miss, $0.66 out',
    page: DEEPSEEK,
    usd: (8_000 * 0.007 + 2_000 * 0.22 + 1_000 * 0.66) / MILLION,
    call: chat('deepseek-v4-flash', HITS, { ...fromDeepSeek, hour: 12 }),
  },
  {
    provider: 'DeepSeek',
    example: 'V4 Flash at the peak (01:00 to 04:00 UTC): twice as much',
    page: DEEPSEEK,
    usd: (8_000 * 0.014 + 2_000 * 0.44 + 1_000 * 1.32) / MILLION,
    call: chat('deepseek-v4-flash', HITS, { ...fromDeepSeek, hour: 2 }),
  },
  {
    provider: 'xAI',
    example: 'Grok 4.5: 4,000 of 10,000 cached, two web searches at $5 per 1,000',
    page: 'docs.x.ai/developers/pricing.md',
    usd: (6_000 * 2 + 4_000 * 0.3 + 1_000 * 6) / MILLION + (2 * 5) / 1_000,
    call: response(
      'grok-4.5',
      { input: 10_000, output: 1_000, inputDetails: { cached_tokens: 4_000 } },
      {
        upstream: 'api.x.ai',
        ...webSearches(2),
      },
    ),
  },
  {
    provider: 'Cohere',
    example: 'rerank-v3.5: three search units at $2 per 1,000',
    page: 'cohere.com/pricing',
    usd: (3 * 2) / 1_000,
    call: rerank(3),
  },
]

function rerank(units: number): PricedCall {
  const model = 'rerank-v3.5'
  return {
    upstream: 'api.cohere.com',
    path: '/v1/rerank',
    model,
    body: { model, query: 'q', documents: ['d'] },
    answer: {
      id: 'r',
      results: [{ index: 0, relevance_score: 0.5 }],
      meta: { billed_units: { search_units: units } },
    },
  }
}
