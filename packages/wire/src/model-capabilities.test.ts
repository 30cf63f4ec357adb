import { describe, expect, test } from 'vitest'
import {
  type Capabilities,
  capabilitiesOf,
  claudeVersion,
  geminiVersion,
  gptVersion,
  isSince,
  kimiVersion,
} from './model-capabilities.ts'

const by = (name: string): Capabilities => capabilitiesOf(name, name)

const ADAPTIVE = { sampling: 'none', thinking: 'adaptive', takesPrefill: false } as const
const REASONS = { sampling: 'none', maximumField: 'max_completion_tokens' } as const

describe('the capabilities of a model by the version in its name', () => {
  test.each<[string, Partial<Capabilities>]>([
    ['claude-2.1', { thinking: 'none', sampling: 'all' }],
    ['claude-3-5-sonnet-20241022', { thinking: 'none', sampling: 'all' }],
    ['claude-3-7-sonnet-latest', { thinking: 'budget', sampling: 'all' }],
    ['claude-sonnet-4-20250514', { thinking: 'budget', sampling: 'all' }],
    ['claude-opus-4-1-20250805', { thinking: 'budget', sampling: 'no-top-p-beside-temperature' }],
    ['claude-haiku-4-5', { thinking: 'budget', takesPrefill: true }],
    ['claude-sonnet-4-5', { thinking: 'budget', sampling: 'no-top-p-beside-temperature' }],
    ['claude-opus-4-6', { thinking: 'budget', sampling: 'no-top-p-beside-temperature', takesPrefill: false }],
    ['claude-opus-4-7', { ...ADAPTIVE, alwaysThinks: false }],
    ['us.anthropic.claude-opus-4-8-v1:0', { ...ADAPTIVE, alwaysThinks: false }],
    ['claude-opus-5', { ...ADAPTIVE, alwaysThinks: false }],
    ['claude-haiku-5-5', { ...ADAPTIVE, alwaysThinks: false }],
    ['claude-opus-5-5', { ...ADAPTIVE, alwaysThinks: true }],
    ['claude-sonnet-6', { ...ADAPTIVE, alwaysThinks: true }],
    ['claude-fable-5', { ...ADAPTIVE, alwaysThinks: true }],
    ['claude-mythos-preview', { ...ADAPTIVE, alwaysThinks: true }],
    ['gpt-3.5-turbo', { thinking: 'none', sampling: 'all', maximumField: 'max_tokens' }],
    ['gpt-35-turbo', { thinking: 'none', sampling: 'all', maximumField: 'max_tokens' }],
    ['openai/gpt-4o-mini', { thinking: 'none', sampling: 'all', maximumField: 'max_tokens' }],
    ['gpt-4.1', { thinking: 'none', sampling: 'all', maximumField: 'max_tokens' }],
    ['chatgpt-4o-latest', { thinking: 'none', sampling: 'all', maximumField: 'max_tokens' }],
    ['gpt-5-chat-latest', { thinking: 'none', sampling: 'all', maximumField: 'max_tokens' }],
    ['o1-mini', { ...REASONS, thinking: 'none' }],
    ['o3', REASONS],
    ['openai/o4-mini', REASONS],
    ['ft:o4-mini:org::x', { ...REASONS, efforts: ['low', 'medium', 'high'] }],
    ['azure-o3', { ...REASONS, efforts: ['low', 'medium', 'high'] }],
    ['azure_o1-mini', { ...REASONS, thinking: 'none' }],
    ['gpt-5', REASONS],
    ['gpt-5.3-codex', REASONS],
    ['gpt-6-sol', REASONS],
    ['gpt-17', REASONS],
  ])('the capabilities of a model depend on the version in its name: %s', (name, expected) => {
    expect(by(name)).toMatchObject(expected)
  })

  test.each([
    'm',
    'claude',
    'gpt-oss-120b',
    'llama-4',
    'glm-5',
    'command-o1x',
    'foo3',
    'gpt4o3',
    'my-deployment',
  ])('an unknown model is assumed to support everything: %s', (name) => {
    expect(by(name)).toMatchObject({
      sampling: 'all',
      takesPenalties: true,
      thinking: 'budget',
      alwaysThinks: false,
      takesPrefill: true,
      efforts: undefined,
      toolsNeedNoEffort: false,
      takesSchema: true,
      maximumField: 'max_tokens',
      gemini: {
        levels: undefined,
        budgets: [1, 24_576],
        canStopThinking: true,
        requiresSignatures: true,
        mixesTools: true,
        takesSystem: true,
      },
    })
  })
})

test.each<[string, Partial<Capabilities['gemini']>]>([
  ['gemini-1.5-pro', { levels: undefined, requiresSignatures: false, mixesTools: false }],
  ['gemini-2.5-flash', { levels: undefined, canStopThinking: true, requiresSignatures: false }],
  ['gemini-2.5-flash-lite', { levels: undefined, budgets: [512, 24_576], canStopThinking: true }],
  ['models/gemini-2.5-pro', { levels: undefined, budgets: [128, 32_768], canStopThinking: false }],
  ['gemini-3-pro-preview', { levels: ['low', 'high'], requiresSignatures: true, mixesTools: true }],
  ['gemini-3-flash-preview', { levels: ['minimal', 'low', 'medium', 'high'] }],
  ['gemini-3.1-pro', { levels: ['low', 'medium', 'high'] }],
  ['gemini-3.1-flash-lite', { levels: ['minimal', 'low', 'medium', 'high'] }],
  ['gemini-3.1-flash-lite-image', { levels: ['minimal', 'high'] }],
  ['gemini-3.6-flash', { levels: ['low', 'medium', 'high'] }],
  ['gemini-4-pro', { levels: ['low', 'medium', 'high'] }],
  ['gemini-flash-latest', { levels: undefined, requiresSignatures: true }],
  ['gemma-3-27b-it', { takesSystem: false, requiresSignatures: false }],
])('the capabilities of %s at the Gemini API depend on its version, too', (name, expected) => {
  expect(by(name).gemini).toMatchObject(expected)
})

test.each([
  ['gemini-2.0-flash', true],
  ['gemini-2.5-flash', false],
  ['gemini-2.5-flash-lite', false],
  ['gemini-2.5-pro', false],
  ['gemini-3-pro-preview', false],
  ['gemini-3.6-flash', false],
  ['gemini-4-pro', false],
  ['gemma-3-27b-it', true],
  ['gpt-4o', true],
  ['gpt-5', false],
  ['o3', false],
])('whether %s supports penalties is %s, unless the operator configures it', (name, takes) => {
  expect(by(name).takesPenalties).toBe(takes)
  for (const sampling of [true, false])
    expect(capabilitiesOf(name, name, { sampling }).takesPenalties).toBe(sampling)
})

test.each([
  ['o1', true],
  ['o3', false],
  ['openai/o4-mini', false],
  ['gpt-4.1', true],
  ['gpt-5-mini', false],
  ['gpt-5-chat-latest', true],
  ['gpt-5.3-codex', false],
  ['gpt-5.4', false],
  ['gpt-5.5', true],
  ['gpt-5.5-pro', true],
  ['gpt-6-sol', true],
  ['claude-opus-5', true],
  ['m', true],
])('whether %s supports stop sequences is %s, unless the operator configures its sampling', (name, takes) => {
  expect(by(name).takesStop).toBe(takes)
  expect(capabilitiesOf(name, name, { sampling: true }).takesStop).toBe(true)
  expect(capabilitiesOf(name, name, { sampling: false }).takesStop).toBe(takes)
})

test.each([
  ['o3', 'none'],
  ['gpt-5', 'none'],
  ['gpt-5.3-codex', 'none'],
  ['gpt-5.2', 'without-thinking'],
  ['gpt-6-sol', 'without-thinking'],
  ['gpt-4o', 'all'],
  ['m', 'all'],
])(
  'the log probabilities that %s supports, unless the operator configures its sampling: %s',
  (name, known) => {
    expect(by(name).logprobs).toBe(known)
    expect(capabilitiesOf(name, name, { sampling: true }).logprobs).toBe('all')
  },
)

test.each([
  ['kimi-k2.5', 'none'],
  ['kimi-k2.7-code', 'none'],
  ['kimi-k3', 'none'],
  ['kimi-k2-0905-preview', 'all'],
  ['moonshotai/kimi-k2.5', 'all'],
  ['moonshot-v1-128k', 'all'],
])('the sampling that %s supports: %s', (name, sampling) => {
  expect(by(name)).toMatchObject({ sampling, takesPenalties: sampling === 'all' })
})

test.each([
  ['deepseek-v4-pro', true],
  ['deepseek/deepseek-chat:free', true],
  ['gpt-5', false],
  ['kimi-k2.6', true],
  ['kimi-k2-thinking', true],
  ['moonshotai/kimi-k3', true],
  ['kimi-for-coding', true],
])('whether %s requires thoughts beside tool calls is %s', (name, requires) => {
  expect(by(name).requiresThoughts).toBe(requires)
})

test.each([
  ['claude-3-5-haiku-20241022', false],
  ['claude-opus-4-1-20250805', false],
  ['claude-sonnet-4-5', true],
  ['claude-opus-5', true],
  ['claude', true],
])('whether %s supports a schema for its text is %s', (name, takes) => {
  expect(by(name).takesSchema).toBe(takes)
})

describe('the name that determines the capabilities', () => {
  test("the upstream's name of a model determines its capabilities if this name contains a version", () => {
    expect(capabilitiesOf('claude-opus-4-8', 'gpt-4o')).toEqual(by('claude-opus-4-8'))
    expect(capabilitiesOf('gpt-4o', 'claude-opus-4-8')).toEqual(by('gpt-4o'))
  })

  test("the client's name of a model determines its capabilities if the upstream's name contains no version", () => {
    expect(capabilitiesOf('my-deployment', 'gpt-6-sol')).toEqual(by('gpt-6-sol'))
  })
})

describe('configured capabilities', () => {
  test('the configured sampling of a model overrides what its name implies', () => {
    expect(capabilitiesOf('claude-opus-5', 'm', { sampling: true }).sampling).toBe('all')
    expect(capabilitiesOf('claude-opus-4-5', 'm', { sampling: true }).sampling).toBe('all')
    expect(capabilitiesOf('m', 'm', { sampling: false }).sampling).toBe('none')
    expect(capabilitiesOf('gpt-6-sol', 'm', { sampling: true }).maximumField).toBe('max_completion_tokens')
  })

  test.each(['adaptive', 'budget', 'none'] as const)(
    'the configured thinking of a model overrides what its name implies: %s',
    (thinking) => {
      for (const name of ['m', 'claude-opus-4-8', 'gpt-4o', 'gpt-6-sol'])
        expect(capabilitiesOf(name, 'm', { thinking }).thinking).toBe(thinking)
    },
  )

  test('a model that is configured to think within budgets can be called without thinking, unlike an adaptive one', () => {
    expect(capabilitiesOf('claude-opus-5-5', 'm', { thinking: 'budget' }).alwaysThinks).toBe(false)
    expect(capabilitiesOf('claude-opus-5-5', 'm', { thinking: 'adaptive' }).alwaysThinks).toBe(true)
  })

  test('a model that is configured to think also thinks in calls with tools', () => {
    expect(by('gpt-6-sol').toolsNeedNoEffort).toBe(true)
    expect(capabilitiesOf('gpt-6-sol', 'm', { thinking: 'adaptive' }).toolsNeedNoEffort).toBe(false)
  })
})

describe('the version of a Claude model', () => {
  test.each([
    ['claude-3-opus-20240229', 3, 0],
    ['claude-3-5-sonnet-20241022', 3, 5],
    ['claude-3.7-sonnet', 3, 7],
    ['claude-sonnet-4-20250514', 4, 0],
    ['claude-opus-4-1-20250805', 4, 1],
    ['claude-sonnet-4-5', 4, 5],
    ['anthropic/claude-opus-4.7', 4, 7],
    ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 4, 5],
    ['claude-haiku-4-5@20251001', 4, 5],
    ['claude-opus-4-10', 4, 10],
    ['claude-opus-5', 5, 0],
    ['claude-opus-4-7-thinking', 4, 7],
    ['anthropic/claude-4.7-opus', 4, 7],
    ['team-opus-4-7', 4, 7],
  ])('the version of the Claude model %s is %i.%i', (name, major, minor) => {
    expect(claudeVersion(name)).toEqual({ major, minor })
  })

  test.each(['claude-instant', 'demo-claude', 'claude', 'my-deployment'])(
    'the name of a Claude model without a version number gives no version: %s',
    (name) => {
      expect(claudeVersion(name)).toBeUndefined()
    },
  )
})

describe('the version of a GPT model', () => {
  test.each([
    ['gpt-3.5-turbo', 3, 5],
    ['gpt-35-turbo-16k', 3, 5],
    ['gpt-4o-mini', 4, 0],
    ['gpt-4.1-nano', 4, 1],
    ['gpt-4-0613', 4, 0],
    ['gpt-5.2-codex', 5, 2],
    ['gpt-6-sol', 6, 0],
    ['openai/gpt-5', 5, 0],
  ])('the version of the OpenAI model %s is %i.%i', (name, major, minor) => {
    expect(gptVersion(name)).toEqual({ major, minor })
  })

  test.each(['gpt-oss-120b', 'chatgpt-4o-latest', 'o3'])(
    'the name of an OpenAI model without a version number gives no version: %s',
    (name) => {
      expect(gptVersion(name)).toBeUndefined()
    },
  )
})

test('the version of a Gemini model is read after its family name', () => {
  expect(geminiVersion('models/gemini-2.5-pro')).toEqual({ major: 2, minor: 5 })
  expect(geminiVersion('gemini-3-pro-preview')).toEqual({ major: 3, minor: 0 })
  expect(geminiVersion('gemini-flash-latest')).toBeUndefined()
})

test('the version of a Kimi model is read after its letter, and a date is not read as a version', () => {
  expect(kimiVersion('kimi-k2.6')).toEqual({ major: 2, minor: 6 })
  expect(kimiVersion('kimi-k2.7-code-highspeed')).toEqual({ major: 2, minor: 7 })
  expect(kimiVersion('moonshotai/kimi-k3')).toEqual({ major: 3, minor: 0 })
  expect(kimiVersion('kimi-k2-0905-preview')).toEqual({ major: 2, minor: 0 })
  expect(kimiVersion('kimi-latest')).toBeUndefined()
})

test('versions of models are compared by their major number, then by their minor number', () => {
  expect(isSince({ major: 4, minor: 7 }, 4, 7)).toBe(true)
  expect(isSince({ major: 5, minor: 0 }, 4, 7)).toBe(true)
  expect(isSince({ major: 4, minor: 10 }, 4, 7)).toBe(true)
  expect(isSince({ major: 4, minor: 6 }, 4, 7)).toBe(false)
})
