import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')))
})
afterAll(() => fixture?.close())

const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } }
const message = { role: 'user', content: 'hi' }

/** Values that break the rule of their field, by the field's name. */
const WRONG: Record<string, unknown[]> = {
  model: [undefined, null, 5, '', ['m'], {}],
  messages: [
    undefined,
    null,
    [],
    'hi',
    {},
    [5],
    [null],
    [[]],
    [{ content: 'no role' }],
    [{ role: 7, content: 'hi' }],
    [{ role: 'user', content: 5 }],
    [message, { role: 'assistant', content: { type: 'text', text: 'hi' } }],
  ],
  max_tokens: ['10', 1.5, -2, true, {}, []],
  max_completion_tokens: ['10', 1.5, -2, false],
  stream: ['true', 1, {}],
  stream_options: ['x', 5, [], { include_usage: 'yes' }, { include_usage: 1 }],
  n: [0, 129, 1.5, '2', -1, []],
  stop: [5, true, {}, ['a', 'b', 'c', 'd', 'e'], [1], ['a', null]],
  temperature: [-0.1, 2.1, '1', true, []],
  top_p: [-0.1, 1.1, '1', []],
  top_k: ['5', 1.5, {}],
  seed: [1.5, '7', {}],
  presence_penalty: [-2.1, 2.1, '0'],
  frequency_penalty: [-2.1, 2.1, '0'],
  logit_bias: ['x', [], 5, { '50256': 101 }, { '50256': -101 }, { '50256': '1' }],
  logprobs: ['true', 1],
  tools: ['x', {}, [5], [null], 5],
  tool_choice: [5, true, []],
  parallel_tool_calls: ['true', 1],
  response_format: ['json', 5, [], { type: 5 }, {}],
  function_call: [5, true, []],
  functions: ['x', {}, [5]],
  prediction: ['x', 5, []],
  reasoning_effort: [5, true, {}],
  verbosity: [5, true, {}],
  modalities: ['text', 5, {}, [5]],
  audio: ['alloy', 5, []],
  web_search_options: ['x', 5, [], { search_context_size: 5 }],
  prompt_cache_key: [5, {}, true],
  prompt_cache_retention: [5, {}],
  store: ['true', 1],
  metadata: ['x', [], 5, { a: 1 }, { a: null }],
  user: [5, {}, true],
  safety_identifier: [5, {}],
  service_tier: [5, {}],
}

describe('wrong values of fields', () => {
  const cases = Object.entries(WRONG).flatMap(([field, values]) =>
    values.map((value): [string, unknown] => [field, value]),
  )
  test.each(cases)(
    'a chat request with a wrong value is a 400 that names its field: %s = %j',
    async (field, value) => {
      fixture.upstream.script('m', { kind: 'whole' })
      const answer = await fixture.chat('ann', { ...ask('m'), [field]: value })
      expect(answer.status, answer.text).toBe(400)
      const { error } = answer.json()
      expect(error.type).toBe('invalid_request_error')
      expect(error.code).toBeTypeOf('string')
      expect(error.message).toContain(field)
      expect(error.message).toMatch(/\(request id: [^()\s]+\)$/)
      expect(fixture.upstream.received('m')).toHaveLength(0)
    },
  )

  test.each([21, -1, 1.5, '3'])(
    'a chat request with a wrong value is a 400 that names its field: top_logprobs = %j',
    async (value) => {
      const answer = await fixture.chat('ann', ask('m', { logprobs: true, top_logprobs: value }))
      expect(answer.status, answer.text).toBe(400)
      expect(answer.json().error.message).toContain('top_logprobs')
    },
  )
  test.each([undefined, false, null])(
    'a chat request with top_logprobs but without logprobs: true is a 400 that names logprobs (%j)',
    async (logprobs) => {
      const answer = await fixture.chat('ann', ask('m', { logprobs, top_logprobs: 3 }))
      expect(answer.status, answer.text).toBe(400)
      expect(answer.json().error.message).toContain('logprobs')
    },
  )
})

/** Values at the limits of the rules, and values that the rules do not restrict. */
const RIGHT: Record<string, unknown[]> = {
  messages: [
    [{ role: 'system', content: 's' }, { role: 'developer', content: 'd' }, message],
    [
      message,
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'r' },
    ],
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 't' },
          { type: 'part_of_tomorrow', x: 1 },
        ],
      },
    ],
  ],
  max_tokens: [1, 100_000],
  max_completion_tokens: [1],
  stream: [false],
  n: [1, 128],
  stop: ['a', ['a'], ['a', 'b', 'c', 'd'], []],
  temperature: [0, 2, 0.7],
  top_p: [0, 1],
  top_k: [1, 40],
  seed: [-5, 0, 2 ** 40],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  logit_bias: [{}, { '50256': -100, '1': 100 }],
  logprobs: [true, false],
  tools: [[], [tool], [{ type: 'custom', custom: { name: 'c' } }]],
  tool_choice: ['auto', 'none', { type: 'function', function: { name: 'f' } }],
  parallel_tool_calls: [true, false],
  response_format: [
    { type: 'text' },
    { type: 'json_object' },
    { type: 'json_schema', json_schema: { name: 'n', schema: {} } },
  ],
  function_call: ['auto', { name: 'f' }],
  functions: [[{ name: 'f', parameters: {} }]],
  prediction: [{ type: 'content', content: 'x' }],
  reasoning_effort: ['minimal', 'low', 'medium', 'high', 'a-level-of-tomorrow'],
  verbosity: ['low', 'medium', 'high', 'a-level-of-tomorrow'],
  modalities: [['text'], ['text', 'audio']],
  audio: [{ voice: 'alloy', format: 'mp3' }],
  web_search_options: [{}, { search_context_size: 'low' }],
  prompt_cache_key: ['k'],
  prompt_cache_retention: ['in_memory', '24h', 'a-value-of-tomorrow'],
  store: [true, false],
  metadata: [{}, { a: 'b' }],
  user: ['u'],
  safety_identifier: ['s'],
  service_tier: ['auto', 'a-tier-of-tomorrow'],
  a_field_of_tomorrow: [1, 'x', { deep: [null] }],
}

test.each(Object.entries(RIGHT))(
  'a field of a chat request is accepted with each valid value: %s',
  async (field, values) => {
    for (const value of values) {
      const answer = await fixture.chat('ann', { ...ask('m'), [field]: value })
      expect(answer.status, `${JSON.stringify(value)}: ${answer.text}`).toBe(200)
    }
  },
)

test('null is accepted in every optional field of a chat request', async () => {
  const optional = Object.keys(WRONG).filter((field) => field !== 'model' && field !== 'messages')
  for (const field of [...optional, 'top_logprobs']) {
    const answer = await fixture.chat('ann', { ...ask('m'), [field]: null })
    expect(answer.status, `${field}: ${answer.text}`).toBe(200)
  }
})
