import { chat, type DocumentedExample, MILLION, response, webSearches } from './priced-call.ts'

const OPENAI = {
  tokens: 'developers.openai.com/api/docs/pricing',
  caching: 'developers.openai.com/api/docs/guides/prompt-caching',
  fast: 'openai.com/api-fast-mode',
  ultrafast: 'developers.openai.com/api/docs/guides/ultrafast-mode',
  models: 'developers.openai.com/api/docs/models',
}
const AZURE = 'azure.microsoft.com/pricing/details/cognitive-services/openai-service'

/** Prices of November 2026. */
export const OPENAI_EXAMPLES: readonly Omit<DocumentedExample, 'provider'>[] = [
  {
    example: 'GPT-5.6 Sol: 10,000 in, 4,000 of them cached, 1,000 out',
    page: OPENAI.tokens,
    usd: (6_000 * 4 + 4_000 * 0.4 + 1_000 * 20) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      { prompt: 10_000, output: 1_000, promptDetails: { cached_tokens: 4_000 } },
      { tier: 'default' },
    ),
  },
  {
    example: 'GPT-5.6 Sol: 8,000 written to the cache for 30 minutes, at 1.25 × input',
    page: OPENAI.caching,
    usd: (2_000 * 4 + 8_000 * 4 * 1.25 + 1_000 * 20) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      { prompt: 10_000, output: 1_000, promptDetails: { cache_write_tokens: 8_000 } },
      { tier: 'default' },
    ),
  },
  {
    example: 'GPT-5.6 Sol: 5,000 written for 30 minutes, 3,000 for 12 hours, at 2 × input',
    page: OPENAI.caching,
    usd: (2_000 * 4 + 5_000 * 5 + 3_000 * 8 + 1_000 * 20) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      {
        prompt: 10_000,
        output: 1_000,
        promptDetails: {
          cache_write_tokens: 8_000,
          cache_write_tokens_details: { ttl_30m_tokens: 5_000, ttl_12h_tokens: 3_000 },
        },
      },
      { tier: 'default' },
    ),
  },
  {
    example: 'GPT-5.6 Sol, flex: half of every kind of tokens, cache writes included',
    page: OPENAI.tokens,
    usd: (2_000 * 2 + 4_000 * 0.2 + 4_000 * 2.5 + 1_000 * 10) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      { prompt: 10_000, output: 1_000, promptDetails: { cached_tokens: 4_000, cache_write_tokens: 4_000 } },
      { tier: 'flex', fields: { service_tier: 'flex' } },
    ),
    tier: 'flex',
  },
  {
    example: 'GPT-5.6 Luna, batch: half price',
    page: OPENAI.tokens,
    usd: (100_000 * 0.1 + 20_000 * 0.6) / MILLION,
    call: chat('gpt-5.6-luna', { prompt: 100_000, output: 20_000 }, { tier: 'batch' }),
    tier: 'batch',
  },
  {
    example: 'GPT-5.6 Sol, fast (stated as priority): twice the price, cache writes included',
    page: OPENAI.fast,
    usd: (2_000 * 8 + 8_000 * 10 + 1_000 * 40) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      { prompt: 10_000, output: 1_000, promptDetails: { cache_write_tokens: 8_000 } },
      { tier: 'priority', fields: { service_tier: 'priority' } },
    ),
    tier: 'fast',
  },
  {
    example: 'GPT-5.6 Sol, asked for fast and served standard: the standard price',
    page: OPENAI.fast,
    usd: (10_000 * 4 + 1_000 * 20) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      { prompt: 10_000, output: 1_000 },
      { tier: 'default', fields: { service_tier: 'priority' } },
    ),
  },
  {
    example: 'GPT-6 Astra, ultrafast: $60, $6 cached, $75 written, $300 out',
    page: OPENAI.ultrafast,
    usd: (1_000 * 60 + 5_000 * 6 + 2_000 * 75 + 500 * 300) / MILLION,
    call: response(
      'gpt-6-astra',
      { input: 8_000, output: 500, inputDetails: { cached_tokens: 5_000, cache_write_tokens: 2_000 } },
      { tier: 'ultrafast' },
    ),
    tier: 'ultrafast',
  },
  {
    example: 'GPT-5.4, 300,000 in: the long-context price of the whole call',
    page: OPENAI.tokens,
    usd: (300_000 * 5 + 2_000 * 22.5) / MILLION,
    call: chat('gpt-5.4', { prompt: 300_000, output: 2_000 }, { tier: 'default' }),
  },
  {
    example: 'GPT-5.4, 300,000 in, flex: half of the long-context price',
    page: OPENAI.tokens,
    usd: (300_000 * 2.5 + 2_000 * 11.25) / MILLION,
    call: chat('gpt-5.4', { prompt: 300_000, output: 2_000 }, { tier: 'flex' }),
    tier: 'flex',
  },
  {
    example: 'GPT-5.6 Sol with two web searches at $10 per 1,000',
    page: OPENAI.tokens,
    usd: (20_000 * 4 + 1_000 * 20) / MILLION + (2 * 10) / 1_000,
    call: response(
      'gpt-5.6-sol',
      { input: 20_000, output: 1_000 },
      {
        ...webSearches(2),
      },
    ),
  },
  {
    example: 'GPT-5.6 Sol, fast, with a web search: the tier does not multiply tools',
    page: OPENAI.fast,
    usd: (20_000 * 8 + 1_000 * 40) / MILLION + 10 / 1_000,
    call: response(
      'gpt-5.6-sol',
      { input: 20_000, output: 1_000 },
      {
        tier: 'priority',
        ...webSearches(1),
      },
    ),
    tier: 'fast',
  },
  {
    example:
      'GPT-5.6 Sol with a container of the code interpreter ($0.03) and a file search ($2.50 per 1,000)',
    page: OPENAI.tokens,
    usd: (5_000 * 4 + 1_000 * 20) / MILLION + 0.03 + 2.5 / 1_000,
    call: response(
      'gpt-5.6-sol',
      { input: 5_000, output: 1_000 },
      {
        tools: [
          { type: 'code_interpreter', container: { type: 'auto' } },
          { type: 'file_search', vector_store_ids: ['vs_1'] },
        ],
        items: [
          {
            id: 'ci',
            type: 'code_interpreter_call',
            status: 'completed',
            container_id: 'cntr_1',
            code: '1',
            outputs: [],
          },
          { id: 'fs', type: 'file_search_call', status: 'completed', queries: ['q'], results: null },
        ],
      },
    ),
  },
  {
    example: 'gpt-audio: 500 audio tokens and 100 of text in, 800 of audio and 50 of text out',
    page: `${OPENAI.models}/gpt-audio`,
    usd: (100 * 2.5 + 500 * 32 + 50 * 10 + 800 * 64) / MILLION,
    call: chat(
      'gpt-audio',
      {
        prompt: 600,
        output: 850,
        promptDetails: { cached_tokens: 0, audio_tokens: 500, text_tokens: 100 },
        outputDetails: { audio_tokens: 800, text_tokens: 50 },
      },
      { tier: 'default' },
    ),
  },
  {
    example: 'gpt-image-2: a picture of 1,056 tokens from 50 tokens of text and 300 of a picture',
    page: `${OPENAI.models}/gpt-image-2`,
    usd: (50 * 5 + 300 * 8 + 1_056 * 30) / MILLION,
    call: {
      upstream: 'api.openai.com',
      path: '/v1/images/generations',
      model: 'gpt-image-2',
      body: { model: 'gpt-image-2', prompt: 'a cat' },
      answer: {
        created: 7,
        data: [{ b64_json: 'QUJD' }],
        usage: {
          input_tokens: 350,
          input_tokens_details: { text_tokens: 50, image_tokens: 300 },
          output_tokens: 1_056,
          total_tokens: 1_406,
        },
      },
    },
  },
  {
    example: 'tts-1: 2,000 characters at $15 per million',
    page: `${OPENAI.models}/tts-1`,
    usd: (2_000 * 15) / MILLION,
    call: {
      upstream: 'api.openai.com',
      path: '/v1/audio/speech',
      model: 'tts-1',
      body: { model: 'tts-1', voice: 'alloy', input: 'a'.repeat(2_000) },
      answer: Buffer.from('ID3 some sound'),
      headers: { 'content-type': 'audio/mpeg' },
    },
  },
  {
    example: 'text-embedding-3-small: 50,000 tokens at $0.02 per million',
    page: `${OPENAI.models}/text-embedding-3-small`,
    usd: (50_000 * 0.02) / MILLION,
    call: {
      upstream: 'api.openai.com',
      path: '/v1/embeddings',
      model: 'text-embedding-3-small',
      body: { model: 'text-embedding-3-small', input: 'hi' },
      answer: {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
        model: 'text-embedding-3-small',
        usage: { prompt_tokens: 50_000, total_tokens: 50_000 },
      },
    },
  },
]

/** Azure has the prices and tiers of OpenAI. */
export const AZURE_EXAMPLES: readonly Omit<DocumentedExample, 'provider'>[] = [
  {
    example: 'GPT-5.6 Sol, priority processing: twice the price',
    page: AZURE,
    usd: (10_000 * 8 + 1_000 * 40) / MILLION,
    call: chat('gpt-5.6-sol', { prompt: 10_000, output: 1_000 }, { upstream: 'azure', tier: 'priority' }),
    tier: 'fast',
  },
  {
    example: 'GPT-5.6 Sol: 8,000 written to the cache for 30 minutes',
    page: AZURE,
    usd: (2_000 * 4 + 8_000 * 5 + 1_000 * 20) / MILLION,
    call: chat(
      'gpt-5.6-sol',
      { prompt: 10_000, output: 1_000, promptDetails: { cache_write_tokens: 8_000 } },
      { upstream: 'azure' },
    ),
  },
]
