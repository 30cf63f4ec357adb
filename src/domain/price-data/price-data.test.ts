import { findProvider, type ModelInfo, type ModelPrice } from '@pydantic/genai-prices'
import { describe, expect, test } from 'vitest'
import { decimalText } from '../decimal.ts'
import { TOKEN_KINDS } from '../token-kinds.ts'
import { LISTED_TOOLS } from '../tool-price.ts'
import { ANTHROPIC } from './anthropic.ts'
import { BEDROCK } from './bedrock.ts'
import { CONTEXT_LENGTHS } from './context-lengths.ts'
import { GOOGLE } from './google.ts'
import { vendorServiceOfChannel } from './index.ts'
import { MEDIA_PRICES } from './media-prices.ts'
import { OPENAI } from './openai.ts'
import { RETIREMENTS } from './retired-models.ts'
import type { DataSource } from './vendor-service.ts'

const SERVICES = { openai: OPENAI, anthropic: ANTHROPIC, google: GOOGLE, bedrock: BEDROCK }

const modelsOf = (vendor: string): readonly ModelInfo[] => findProvider({ providerId: vendor })?.models ?? []
const pricesOf = ({ prices }: ModelInfo): ModelPrice[] =>
  (Array.isArray(prices) ? prices : [{ prices }]).map((one: { prices: ModelPrice }) => one.prices)
/** A price of a unit, which genai-prices may state by size of the prompt. */
const baseOf = (value: ModelPrice[string]): number | undefined =>
  typeof value === 'object' ? value.base : value

describe('entries of the price data', () => {
  const entries: [string, DataSource][] = [
    ...Object.entries(SERVICES),
    ...Object.entries(MEDIA_PRICES),
    ...RETIREMENTS,
    ...CONTEXT_LENGTHS,
    ...LISTED_TOOLS.map((tool): [string, DataSource] => [`${tool.vendor} ${tool.kind}`, tool]),
  ]
  test.each(entries)(
    'the built-in price entry of %s names its source and its date',
    (_, { source, date }) => {
      expect(source).not.toBe('')
      expect(date).toMatch(/^\d{4}-\d\d-\d\d$/)
      expect(Date.parse(date)).not.toBeNaN()
    },
  )
})

/** The value of an entry and that of genai-prices. If they differ, the entry must state a reason. */
interface Comparison {
  readonly of: string
  readonly ours: unknown
  readonly theirs: unknown
  readonly differs: string | undefined
}

/** Tools by their keys in genai-prices: USD per thousand. */
const TOOL_KEYS = { web_search: 'web_searches_kcount', file_search: 'storage_searches_kcount' } as const

function toolComparisons(): Comparison[] {
  return LISTED_TOOLS.flatMap(({ vendor, kind, models, price, differs }) => {
    const key = TOOL_KEYS[kind as keyof typeof TOOL_KEYS]
    return modelsOf(vendor)
      .filter(({ id }) => key !== undefined && (models?.test(id) ?? true))
      .flatMap((model) =>
        pricesOf(model).flatMap((one) => {
          const theirs = baseOf(one[key])
          return theirs === undefined
            ? []
            : [{ of: `${kind} of ${model.id}`, ours: Number(price) * 1_000, theirs, differs }]
        }),
      )
  })
}

/** Prices of recordings and speech, by their keys in genai-prices: USD per hour. */
function mediaComparisons(): Comparison[] {
  return Object.entries(MEDIA_PRICES).flatMap(([vendor, { models, differs }]) =>
    modelsOf(vendor).flatMap((model) => {
      const ours = models[model.id]?.second
      return pricesOf(model).flatMap((one) => {
        const theirs = baseOf(one['input_audio_hours'] ?? one['audio_hours'])
        if (!ours || theirs === undefined) return []
        return [{ of: `a second of ${model.id}`, ours: Number(decimalText(ours)) * 3_600, theirs, differs }]
      })
    }),
  )
}

function contextComparisons(): Comparison[] {
  return [...CONTEXT_LENGTHS].flatMap(([vendor, { models, differs }]) =>
    modelsOf(vendor).flatMap(({ id, context_window: theirs }) => {
      const ours = models.get(id)
      return ours === undefined || theirs === undefined
        ? []
        : [{ of: `the context length of ${id}`, ours, theirs, differs }]
    }),
  )
}

/** Models that genai-prices calls deprecated have an end in our list. */
function endComparisons(): Comparison[] {
  return [...RETIREMENTS].flatMap(([vendor, { models, differs }]) =>
    modelsOf(vendor)
      .filter(({ deprecated }) => deprecated)
      .map(({ id }) => ({
        of: `the end of ${id}`,
        ours: models.some((one) => one.models.test(id)),
        theirs: true,
        differs: KEPT.get(id) ?? differs,
      })),
  )
}

/** Models that genai-prices calls deprecated, for which the vendor announced no day. */
const KEPT = new Map([
  ['grok-voice-think-fast-1.0', 'a voice agent, which the gateway cannot call'],
  ['mistral-ocr-2503', 'text recognition, which the gateway cannot call'],
  ['mistral-ocr-2505', 'text recognition, which the gateway cannot call'],
  ['devstral-small', 'the name of a later version, which Mistral still serves'],
])

/** What a cache costs by its lifetime if a price does not state it, as a multiple of input. */
function lifetimeComparisons(): Comparison[] {
  const defaults = new Map(
    TOKEN_KINDS.flatMap(({ data, byDefault }) =>
      data?.startsWith('cache_write') && byDefault?.of === 'input'
        ? [[data, Number(decimalText(byDefault.times))] as const]
        : [],
    ),
  )
  return ['openai', 'anthropic', 'aws'].flatMap((vendor) =>
    modelsOf(vendor).flatMap((model) =>
      pricesOf(model).flatMap((one) =>
        [...defaults].flatMap(([key, ours]) => {
          const [written, input] = [baseOf(one[key]), baseOf(one['input_mtok'])]
          if (written === undefined || !input) return []
          const theirs = Number((written / input).toFixed(9))
          return [{ of: `${key} of ${model.id}`, ours, theirs, differs: ROUNDED.get(model.id) }]
        }),
      ),
    ),
  )
}

const ROUNDED = new Map([['claude-3-haiku', 'Anthropic rounded 0.3125 to 0.30; the data are charged']])

/** Bedrock's names with a region cost as much more than the global ones as Anthropic's own region. */
function regionComparisons(): Comparison[] {
  const models = new Map(modelsOf('aws').map((model) => [model.id, model]))
  return [...models].flatMap(([id, model]) => {
    const global = models.get(id.replace(/^regional\./, 'global.'))
    const region = ANTHROPIC.regions.find(({ has }) => has.test(id))
    if (!id.startsWith('regional.anthropic.') || !global || !region) return []
    const [one, other] = [model, global].map((each) => baseOf(pricesOf(each)[0]?.['input_mtok']) ?? 0)
    return [
      {
        of: `the region of ${id}`,
        ours: Number(region.factor),
        theirs: Number(((one ?? 0) / (other ?? 1)).toFixed(9)),
        differs: ANTHROPIC.differs,
      },
    ]
  })
}

describe.each([
  ['tools', toolComparisons(), 30],
  ['media', mediaComparisons(), 0],
  ['context lengths', contextComparisons(), 0],
  ['ends', endComparisons(), 2],
  ['cache lifetimes', lifetimeComparisons(), 40],
  ['regions', regionComparisons(), 5],
] as const)('the price data and genai-prices on %s', (_, comparisons, least) => {
  test('every built-in price that differs from genai-prices states the reason', () => {
    const contradictions = comparisons.filter(
      ({ ours, theirs, differs }) => ours !== theirs && differs === undefined,
    )
    expect(contradictions).toEqual([])
    expect(comparisons.length).toBeGreaterThanOrEqual(least)
  })

  test('every stated reason for differing from genai-prices belongs to a built-in price that does differ', () => {
    const reasons = new Set(comparisons.map(({ differs }) => differs).filter((one) => one !== undefined))
    for (const reason of reasons)
      expect(
        comparisons.some(({ ours, theirs, differs }) => differs === reason && ours !== theirs),
        reason,
      ).toBe(true)
  })
})

test('the built-in price data state a context length only if genai-prices has none, or if they say why they differ', () => {
  for (const [vendor, { models, differs }] of CONTEXT_LENGTHS)
    for (const id of models.keys()) {
      const listed = modelsOf(vendor).find((model) => model.id === id)
      expect(listed?.id).toBe(id)
      if (differs === undefined) expect(listed?.context_window).toBeUndefined()
    }
})

test('genai-prices states no prices of service tiers, so that none of the built-in ones can be compared with it', () => {
  for (const vendor of ['openai', 'anthropic', 'google', 'aws', 'azure'])
    for (const model of modelsOf(vendor)) {
      expect(model.id).not.toMatch(/(?:^|[-_])(?:flex|batch|priority|ultrafast)(?:$|[-_])/)
      for (const one of pricesOf(model))
        expect(Object.keys(one).filter((key) => /flex|batch|priority/.test(key))).toEqual([])
    }
})

test.each(['eu-central-1.amazonaws.com', 'eusc-de-east-1.amazonaws.eu', 'cn-north-1.amazonaws.com.cn'])(
  "a channel at a host of Amazon has Bedrock's prices of service tiers: %s",
  (host) => {
    const channel = { provider: 'generic', base_url: `https://bedrock-runtime.${host}` } as const
    expect(vendorServiceOfChannel(channel)).toBe(BEDROCK)
  },
)
