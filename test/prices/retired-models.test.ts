import { expect, test } from 'vitest'
import { builtInPrices } from '../../src/config/built-in-prices.ts'
import { isRetired } from '../../src/domain/price-data/retired-models.ts'
import { VENDORS } from '../../src/config/vendors.ts'

const TODAY = new Date('2026-11-21T12:00:00Z')

test.each([
  ['openai', 'gpt-4o', '2027-01-13', false],
  ['openai', 'gpt-4o', '2027-01-14', true],
  ['openai', 'ada', '2026-11-21', true],
  ['openai', 'o3-mini-2025-01-31', '2026-11-21', true],
  ['openai', 'dall-e-3', '2026-05-12', true],
  ['openai', 'gpt-image-1', '2026-10-23', true],
  ['openai', 'gpt-image-1.5-2025-12-16', '2026-11-30', false],
  ['openai', 'gpt-image-1-mini', '2026-12-01', true],
  ['openai', 'gpt-image-2', '2026-12-01', false],
  ['openai', 'gpt-6-sol', '2027-06-01', false],
  ['anthropic', 'claude-opus-4-20250514', '2026-11-21', true],
  ['anthropic', 'claude-opus-4-5', '2026-11-21', false],
  ['google', 'gemini-2.0-flash-lite', '2026-11-21', true],
  ['x-ai', 'grok-4-fast-reasoning', '2026-11-21', true],
  ['x-ai', 'grok-4.3', '2026-11-21', false],
  ['mistral', 'mistral-tiny', '2026-11-21', true],
  ['mistral', 'mistral-large-2512', '2026-11-21', false],
  ['groq', 'llama-3.3-70b-versatile', '2026-08-15', false],
  ['groq', 'llama-3.3-70b-versatile', '2026-08-16', true],
  ['groq', 'llama3-70b-8192', '2026-11-21', true],
  ['groq', 'openai/gpt-oss-120b', '2026-11-21', false],
  ['openrouter', 'ada', '2026-11-21', false],
])(
  'the built-in prices treat a model as retired from its shutdown day on: %s %s on %s: %s',
  (vendor, model, day, retired) => {
    expect(isRetired(vendor, model, new Date(`${day}T00:00:00Z`))).toBe(retired)
  },
)

test('an OpenAI key in the environment creates a channel for the models that can be called today', () => {
  const openai = VENDORS.find(({ id }) => id === 'openai')
  const names = openai ? builtInPrices(() => TODAY).namesOf(openai) : []
  expect(names).toEqual(
    expect.arrayContaining([
      'text-embedding-3-small',
      'omni-moderation-latest',
      'gpt-4o',
      'gpt-4o-mini',
      'gpt-5.6',
      'gpt-6-sol',
      'gpt-audio',
      'o3',
    ]),
  )
  for (const name of ['gpt-image-1.5', 'gpt-image-2', 'tts-1', 'whisper-1', 'gpt-4o-transcribe'])
    expect(names).toContain(name)
  for (const name of [
    'ada',
    'gpt-4',
    'gpt-3.5-turbo',
    'o1',
    'gpt-35-turbo',
    'gpt-5-1',
    'gpt-5.2-codex',
    'gpt-5.5-pro',
    'dall-e-3',
    'gpt-image-1',
  ])
    expect(names).not.toContain(name)
  expect(names.filter((name) => /gpt-\d.*-image|realtime|text-moderation/.test(name))).toEqual([])
})

test.each(VENDORS.map((vendor) => [vendor.id, vendor.protocol, vendor] as const))(
  'a key of %s (%s) in the environment creates a channel without models that are shut down',
  (id, _, vendor) => {
    const names = builtInPrices(() => TODAY).namesOf(vendor)
    expect(names.filter((name) => isRetired(id, name, TODAY))).toEqual([])
  },
)

test("a Groq key in the environment creates a channel for Groq's current models, without those that were shut down", () => {
  const groq = VENDORS.find(({ id }) => id === 'groq')
  const names = groq ? builtInPrices(() => TODAY).namesOf(groq) : []
  expect(names).toEqual(
    expect.arrayContaining(['openai/gpt-oss-120b', 'openai/gpt-oss-20b', 'qwen/qwen3-32b']),
  )
  for (const name of ['llama-3.1-8b-instant', 'mixtral-8x7b-32768', 'gemma2-9b-it', 'llama3-8b-8192'])
    expect(names).not.toContain(name)
})
