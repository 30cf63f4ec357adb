import { describe, expect, test } from 'vitest'
import { asRecord } from './json/record.ts'
import type { ProtocolName } from './protocols.ts'
import { hiddenThinking } from './hidden-thinking.ts'

const of = (
  model: string,
  fields: Readonly<Record<string, unknown>> = {},
  dialect: ProtocolName = 'chat',
  requested = model,
) =>
  hiddenThinking(
    {
      dialect,
      model,
      value: (name) => fields[name],
      names: () => Object.keys(fields),
      isObject: (name) => asRecord(fields[name]) !== undefined,
    },
    requested,
  )

const WHOLE = { budget: undefined }

describe('models that think unseen unless a request switches it off', () => {
  test.each([
    'o1',
    'o3-mini',
    'o4-mini-deep-research',
    'gpt-5',
    'gpt-5.2-codex',
    'openai/gpt-5.6',
    'codex-mini-latest',
  ])(
    'for a model that may think without showing it, quota is held for its whole maximum of output tokens: %s',
    (model) => {
      expect(of(model)).toEqual(WHOLE)
    },
  )
  test.each([
    'gemini-2.5-flash',
    'gemini-2.5-pro',
    'gemini-3-pro-preview',
    'google/gemini-3.1-flash',
    'gemini-flash-latest',
  ])(
    'for a model that may think without showing it, quota is held for its whole maximum of output tokens: %s',
    (model) => {
      expect(of(model, {}, 'gemini')).toEqual(WHOLE)
    },
  )
  test.each(['claude-mythos-1', 'claude-opus-5-5', 'claude-sonnet-4-5-thinking'])(
    'for a model that may think without showing it, quota is held for its whole maximum of output tokens: %s',
    (model) => {
      expect(of(model, {}, 'messages')).toEqual(WHOLE)
    },
  )
})

test.each([
  'gpt-4o',
  'gpt-5-chat-latest',
  'chatgpt-4o-latest',
  'gpt-oss-120b',
  'gemini-2.0-flash',
  'claude-sonnet-4-5',
  'claude-opus-4-7',
  'claude-3-5-haiku-latest',
  'deepseek-reasoner',
  'qwen3-235b',
  'qwq-32b',
  'kimi-k2-thinking',
  'glm-4.6',
  'MiniMax-M2',
  'm',
])('a model that shows all its thinking holds nothing for hidden thoughts: %s', (model) => {
  expect(of(model)).toBeUndefined()
})

test.each([
  ['gpt-5.2', { reasoning_effort: 'none' }, 'chat'],
  ['gpt-5.2', { reasoning: { effort: 'none' } }, 'responses'],
  ['gemini-2.5-flash', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, 'gemini'],
  ['gemini-2.5-flash', { reasoning_effort: 'none' }, 'chat'],
  ['claude-sonnet-4-5-thinking', { thinking: { type: 'disabled' } }, 'messages'],
] as const)(
  'a model whose thinking is turned off holds nothing for hidden thoughts: %s with %j',
  (model, fields, dialect) => {
    expect(of(model, fields, dialect)).toBeUndefined()
  },
)

test.each([
  ['gpt-5', { reasoning_effort: 'none' }, 'chat'],
  ['gpt-5.2', { reasoning_effort: 'minimal' }, 'chat'],
  ['gemini-2.5-pro', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, 'gemini'],
  ['gemini-3-pro', { generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } }, 'gemini'],
  ['claude-mythos-1', { thinking: { type: 'disabled' } }, 'messages'],
  ['claude-opus-4-7', { thinking: { type: 'adaptive' } }, 'messages'],
  ['claude-sonnet-4-5', { reasoning_effort: 'high' }, 'chat'],
  ['gemini-2.5-flash', { generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }, 'gemini'],
  // The switch is that of servers of other models.
  ['gemini-2.5-pro', { enable_thinking: true, thinking_budget: 1 }, 'chat'],
  ['claude-sonnet-4-5', { chat_template_kwargs: { thinking: true, thinking_budget: 500 } }, 'chat'],
] as const)(
  'a model that may think without a limit holds the whole maximum: %s with %j',
  (model, fields, dialect) => {
    expect(of(model, fields, dialect)).toEqual(WHOLE)
  },
)

test.each([
  ['claude-sonnet-4-5', { thinking: { type: 'enabled', budget_tokens: 2048 } }, 'messages', 2048],
  [
    'claude-sonnet-4-5',
    { additionalModelRequestFields: { thinking: { budget_tokens: 3000 } } },
    'converse',
    3000,
  ],
  ['claude-sonnet-4-5', { reasoning: { max_tokens: 500 }, reasoning_effort: 'low' }, 'chat', 500],
  ['gemini-2.5-pro', { generationConfig: { thinkingConfig: { thinkingBudget: 700 } } }, 'gemini', 700],
  ['gemini-2.5-pro', { generation_config: { thinking_config: { thinking_budget: 700 } } }, 'gemini', 700],
  ['gemini-2.5-pro', { extra_body: { google: { thinking_config: { thinking_budget: 9 } } } }, 'chat', 9],
] as const)(
  'a model with a thinking budget holds that budget: %s with %j',
  (model, fields, dialect, budget) => {
    expect(of(model, fields, dialect)).toEqual({ budget })
  },
)

test("if the upstream's model name is unknown, the name in the request decides whether quota for hidden thinking is held", () => {
  expect(of('my-deployment', {}, 'chat', 'gpt-5')).toEqual(WHOLE)
  expect(of('my-deployment', {}, 'chat', 'deepseek-r1')).toBeUndefined()
})

describe('a model of which nothing is known', () => {
  test.each<[ProtocolName, object, number | undefined]>([
    ['chat', { reasoning_effort: 'high' }, undefined],
    ['chat', { reasoning: { effort: 'low' } }, undefined],
    ['chat', { reasoning: { enabled: true } }, undefined],
    ['chat', { reasoning: { max_tokens: 500 } }, 500],
    ['chat', { thinking: { type: 'enabled' } }, undefined],
    ['chat', { thinking: { type: 'enabled', budget_tokens: 100_000 } }, 100_000],
    ['chat', { enable_thinking: true }, undefined],
    ['chat', { thinking_budget: 9_000 }, 9_000],
    ['chat', { chat_template_kwargs: { enable_thinking: true } }, undefined],
    ['chat', { extra_body: { google: { thinking_config: { thinking_budget: 700 } } } }, 700],
    ['gemini', { generationConfig: { thinkingConfig: { thinkingBudget: 100_000 } } }, 100_000],
    ['gemini', { generation_config: { thinking_config: { thinking_budget: 700 } } }, 700],
    ['gemini', { generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }, undefined],
    ['gemini', { generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } }, undefined],
    ['messages', { thinking: { type: 'enabled', budget_tokens: 100_000 } }, 100_000],
    ['messages', { thinking: { type: 'adaptive' } }, undefined],
    ['messages', { output_config: { effort: 'high' } }, undefined],
    ['responses', { reasoning: { effort: 'medium' } }, undefined],
    ['responses', { reasoning: { summary: 'auto' } }, undefined],
    ['converse', { additionalModelRequestFields: { thinking: { budget_tokens: 3_000 } } }, 3_000],
    ['converse', { additionalModelRequestFields: { reasoningConfig: { type: 'enabled' } } }, undefined],
    // Objects of settings that servers and clients have invented.
    ['chat', { vllm_xargs: { thinking: true } }, undefined],
    ['chat', { nvext: { max_thinking_tokens: 5 } }, 5],
    ['chat', { parameters: { thinking: true } }, undefined],
    ['chat', { template_kwargs: { enable_thinking: true } }, undefined],
    ['chat', { tokenizer_kwargs: { reasoning: 'high' } }, undefined],
    ['chat', { providerOptions: { anthropic: { thinking: { budgetTokens: 12 } } } }, 12],
    ['gemini', { settings: { a: { b: { thinkingBudget: 7 } } } }, 7],
    ['messages', { vllm_xargs: { thinking: true } }, undefined],
    ['responses', { nvext: { max_thinking_tokens: 5 } }, 5],
    ['converse', { performance: { reasoningEffort: 'low' } }, undefined],
    // A server that knows one of them alone is not limited by the other.
    ['chat', { reasoning_effort: 'high', thinking_budget: 1 }, undefined],
    ['chat', { thinking_budget: 5, reasoning: { max_tokens: 7 } }, 7],
  ])('holds what it may think unseen if %s requests switch thinking on: %j', (dialect, fields, budget) => {
    expect(of('my-deployment', { ...fields }, dialect)).toEqual({ budget })
  })

  test.each<[ProtocolName, object]>([
    ['chat', {}],
    ['chat', { max_tokens: 5, metadata: { reasoning: 'yes' }, verbosity: 'high' }],
    ['chat', { reasoning_effort: 'none', enable_thinking: false, thinking: { type: 'disabled' } }],
    ['chat', { reasoning: null, chat_template_kwargs: { enable_thinking: false } }],
    ['gemini', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }],
    ['messages', { thinking: { type: 'disabled' }, output_config: { format: {} } }],
    ['responses', { reasoning: { effort: 'none' } }],
    ['chat', { vllm_xargs: { thinking: false }, providerOptions: { a: { thinking: { type: 'disabled' } } } }],
    // Words of the caller, and names that the caller chose.
    ['chat', { response_format: { json_schema: { schema: { properties: { reasoning: {} } } } } }],
    ['chat', { extra_body: { guided_json: { properties: { thinking: {} } } } }],
    ['chat', { structured_outputs: { json: { properties: { thinking: {} } } }, labels: { effort: 'x' } }],
    ['responses', { text: { format: { schema: { properties: { reasoning: {} } } } } }],
    ['responses', { prompt: { id: 'p', variables: { reasoning: 'x' } }, metadata: { thinking: 'x' } }],
    ['gemini', { generationConfig: { responseSchema: { properties: { reasoning: {} } } } }],
    ['gemini', { systemInstruction: { thinking: 'x' }, toolConfig: { reasoning: 'x' } }],
    ['converse', { toolConfig: { reasoning: 'x' }, requestMetadata: { thinking: 'x' } }],
  ])('holds nothing for hidden thoughts without that: %s %j', (dialect, fields) => {
    expect(of('my-deployment', { ...fields }, dialect)).toBeUndefined()
  })

  test('which shows its thoughts by the name in the request holds nothing for hidden ones', () => {
    expect(of('my-deployment', { reasoning_effort: 'high' }, 'chat', 'deepseek-r1')).toBeUndefined()
  })
})

test('no quota for hidden thinking is held for a model that is declared not to think', () => {
  const sent = {
    dialect: 'chat',
    model: 'gpt-5',
    value: () => undefined,
    names: () => [],
    isObject: () => false,
  } as const
  expect(hiddenThinking(sent, 'gpt-5', { thinking: 'none' })).toBeUndefined()
})
