import { findProvider } from '@pydantic/genai-prices'
import { describe, expect, test } from 'vitest'
import { ANTHROPIC } from './anthropic.ts'
import { BEDROCK } from './bedrock.ts'
import { GOOGLE } from './google.ts'
import { OPENAI } from './openai.ts'
import type { VendorServicePrices } from './vendor-service.ts'

const has = ({ tiers }: VendorServicePrices, tier: string, model: string): boolean =>
  tiers.some((one) => one.tier === tier && one.has.test(model))

/** Models that the vendors' pages list for a tier, and models that they leave out. */
const STATED: readonly (readonly [
  string,
  VendorServicePrices,
  string,
  readonly string[],
  readonly string[],
])[] = [
  [
    'OpenAI',
    OPENAI,
    'fast',
    [
      'gpt-5.4',
      'gpt-5.4-mini',
      'gpt-5.2',
      'gpt-5.1',
      'gpt-5.1-codex',
      'gpt-5',
      'gpt-5-mini',
      'gpt-5-codex',
      'gpt-4.1',
      'gpt-4.1-mini',
      'gpt-4.1-nano',
      'gpt-4o-2024-11-20',
      'gpt-4o-mini',
      'o3',
      'o3-2025-04-16',
      'o4-mini',
      'gpt-6-astra',
      'gpt-6.1-sol',
      'gpt-6-sol',
      'gpt-6-luna',
      'gpt-5.6-sol',
      'gpt-5.6-terra',
    ],
    [
      'gpt-5.4-nano',
      'gpt-5-nano',
      'gpt-5-pro',
      'gpt-5.5-pro',
      'gpt-5-image',
      'o3-mini',
      'o3-pro',
      'o3-deep-research',
      'o4-mini-deep-research',
      'gpt-4o-audio-preview',
      'gpt-4o-mini-tts',
      'gpt-4-turbo',
      'gpt-4o-search-preview',
      'gpt-oss-120b',
      'text-embedding-3-small',
      'o1',
      'gpt-image-2',
    ],
  ],
  [
    'OpenAI',
    OPENAI,
    'ultrafast',
    ['gpt-6-astra', 'gpt-6.2-astra', 'gpt-6.2-sol', 'gpt-6.1-sol', 'gpt-5.6-sol'],
    ['gpt-6-sol', 'gpt-6-luna', 'gpt-5.6-terra', 'gpt-5.4', 'gpt-4o'],
  ],
  [
    'OpenAI',
    OPENAI,
    'flex',
    ['o3', 'o4-mini', 'gpt-5', 'gpt-5.6-sol', 'gpt-6-astra'],
    ['o3-pro', 'gpt-4o', 'o1'],
  ],
  [
    'Anthropic',
    ANTHROPIC,
    'fast',
    [
      'claude-opus-4-6',
      'claude-opus-4-7',
      'claude-opus-4-8',
      'claude-opus-5',
      'claude-opus-5-5',
      'claude-fable-5-2',
    ],
    ['claude-opus-4-5', 'claude-opus-4-1-20250805', 'claude-sonnet-4-6', 'claude-haiku-4-5'],
  ],
  [
    'Google',
    GOOGLE,
    'fast',
    ['gemini-2.5-pro', 'gemini-2.5-flash-lite', 'gemini-3.1-pro-preview', 'gemini-3-flash-preview'],
    [
      'gemini-2.0-flash',
      'gemini-2.5-flash-tts',
      'gemini-3.1-flash-live-preview',
      'gemini-embedding-001',
      'claude-opus-5',
    ],
  ],
  [
    'Bedrock',
    BEDROCK,
    'fast',
    [
      'openai.gpt-oss-120b-1:0',
      'qwen.qwen3-coder-480b-a35b-v1:0',
      'deepseek.v3-v1:0',
      'us.amazon.nova-pro-v1:0',
      'amazon.nova-premier-v1:0',
      'global.amazon.nova-2-lite-v1:0',
      'mistral.ministral-3-8b-instruct',
    ],
    [
      'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
      'meta.llama3-8b-instruct-v1:0',
      'amazon.nova-lite-v1:0',
      'amazon.titan-text-express-v1',
      'amazon.nova-micro-v1:0',
      'deepseek.r1-v1:0',
    ],
  ],
]

describe('the tiers that models have', () => {
  test.each(STATED)(
    "a service tier has a price only for the models that the vendor's page lists: %s",
    (_, vendor, tier, with_, without) => {
      expect(with_.filter((model) => !has(vendor, tier, model))).toEqual([])
      expect(without.filter((model) => has(vendor, tier, model))).toEqual([])
    },
  )

  test("Anthropic's regional price factors apply only to models from Opus 4.6 and Sonnet 4.6 on", () => {
    const priced = (model: string): boolean => ANTHROPIC.regions.some((region) => region.has.test(model))
    const models = findProvider({ providerId: 'anthropic' })?.models.map(({ id }) => id) ?? []
    expect(models.filter((model) => !priced(model)).toSorted()).toEqual(
      models.filter((model) => /claude-(?:v?[123]|(?:opus|sonnet|haiku)-4-[015])/.test(model)).toSorted(),
    )
  })
})
