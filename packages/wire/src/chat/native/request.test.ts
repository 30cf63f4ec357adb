import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WireError } from '../../wire-error.ts'
import { scanObject } from '../../json/json-scan.ts'
import { type ChatRequest, readChatRequest } from './request.ts'
import { lawRuns } from '../../../../../test/runner/tier.ts'

const MINIMAL = { model: 'gpt-4o', messages: [{ role: 'user', content: 'canary-prompt' }] }

function read(fields: object): ChatRequest {
  return readChatRequest(scanObject(Buffer.from(JSON.stringify({ ...MINIMAL, ...fields }))))
}

function refusal(fields: object): string {
  try {
    read(fields)
  } catch (error) {
    expect((error as WireError).code).toBe('invalid_request')
    return (error as WireError).message
  }
  return 'accepted'
}

const text = ['gpt', ''] as const
const notText = [1, true, [], {}] as const

/**
 * The rows of `docs/api.md: Chat completions`, each with values that are accepted and values that are
 * refused.
 */
const TABLE: Record<string, { good: readonly unknown[]; bad: readonly unknown[] }> = {
  model: {
    good: ['gpt-4o', 'a/b:c', 'm'.repeat(256)],
    bad: ['', null, 1, ['gpt'], 'm'.repeat(257), 'a\nb', 'a\u007f', 'a\0'],
  },
  messages: {
    good: [[{ role: 'user' }], [{ role: 'somebody', content: [{ type: 'text', text: 'x' }] }]],
    bad: [
      [],
      null,
      {},
      'hi',
      [1],
      [null],
      [[]],
      [{}],
      [{ role: 1 }],
      [{ role: null }],
      [{ role: 'user', content: 5 }],
      [{ role: 'user', content: true }],
      [{ role: 'user', content: {} }],
      [{ role: 'user' }, 'x'],
    ],
  },
  max_tokens: { good: [1, 4096, 10_000_000, -1], bad: [0, -2, 1.5, '10', true, 10_000_001, 1e300, [1]] },
  max_completion_tokens: { good: [1, 4096, -1], bad: [0, -2, 1.5, '10', {}] },
  stream: { good: [true, false], bad: ['true', 0, 1, {}] },
  stream_options: {
    good: [{}, { include_usage: true }, { include_usage: null }, { x: 1 }],
    bad: [true, [], 'x', { include_usage: 'yes' }, { include_usage: 1 }],
  },
  n: { good: [1, 128], bad: [0, 129, 1.5, '1', -1] },
  stop: { good: ['x', [], ['a', 'b', 'c', 'd']], bad: [1, {}, ['a', 'b', 'c', 'd', 'e'], [1], [null]] },
  temperature: { good: [0, 0.5, 2], bad: [-0.1, 2.1, '1', true, [1]] },
  top_p: { good: [0, 1, 0.5], bad: [-0.1, 1.1, '1'] },
  top_k: { good: [0, 40, -1], bad: [1.5, '1', {}] },
  seed: { good: [0, -5, 1e15], bad: [1.5, '1'] },
  presence_penalty: { good: [-2, 0, 2], bad: [-2.1, 2.1, '0'] },
  frequency_penalty: { good: [-2, 0, 2], bad: [-2.1, 2.1, '0'] },
  logit_bias: {
    good: [{}, { '50256': -100, '1': 100 }],
    bad: [[], 1, { '1': 101 }, { '1': -101 }, { '1': '5' }, { '1': null }],
  },
  logprobs: { good: [true, false], bad: [1, 'true'] },
  tools: {
    good: [
      [],
      [{ type: 'function', function: { name: 'f' } }],
      [{ type: 'custom' }],
      [{ type: 'new_kind' }],
      [{ function: { name: 'f' } }],
    ],
    bad: [{}, 'x', [1], [{}], [{ type: 1 }], [{ type: null, function: {} }]],
  },
  tool_choice: {
    good: ['auto', 'new', { type: 'function', function: { name: 'f' } }],
    bad: [1, [], {}, { type: 1 }],
  },
  parallel_tool_calls: { good: [true, false], bad: ['x', 1] },
  response_format: {
    good: [{ type: 'text' }, { type: 'json_schema', json_schema: {} }, { type: 'new' }],
    bad: ['text', {}, [], { type: 1 }],
  },
  function_call: { good: ['auto', { name: 'f' }], bad: [1, [], {}] },
  functions: { good: [[], [{ name: 'f' }]], bad: [{}, 'x', [1], ['f']] },
  prediction: { good: [{ type: 'content', content: 'x' }], bad: ['x', [], 1] },
  reasoning_effort: { good: ['minimal', 'high', 'xhigh'], bad: notText },
  verbosity: { good: ['low', 'new'], bad: notText },
  modalities: { good: [[], ['text', 'audio']], bad: ['text', {}, [1]] },
  audio: { good: [{ voice: 'alloy', format: 'wav' }], bad: ['x', [], 1] },
  web_search_options: {
    good: [{}, { search_context_size: 'low' }, { search_context_size: 'new' }],
    bad: [true, [], 'x', { search_context_size: 1 }],
  },
  prompt_cache_key: { good: text, bad: notText },
  prompt_cache_retention: { good: ['in_memory', '24h', 'new'], bad: notText },
  store: { good: [true, false], bad: ['x', 1] },
  metadata: { good: [{}, { a: 'b' }], bad: ['x', [], { a: 1 }, { a: null }] },
  user: { good: text, bad: notText },
  safety_identifier: { good: text, bad: notText },
  service_tier: { good: text, bad: notText },
}

describe('the fields of a chat request', () => {
  test.each(Object.entries(TABLE))(
    'the chat field %s accepts the documented values and refuses others',
    (field, { good, bad }) => {
      for (const value of good) expect(refusal({ [field]: value }), JSON.stringify(value)).toBe('accepted')
      for (const value of bad) {
        const message = refusal({ [field]: value })
        expect(message, JSON.stringify(value)).toContain(`'${field}`)
        expect(message).toMatch(/^'\w+' is required\.$|^Invalid '[\w.[\]]+': expected .+, got .+\.$/)
      }
      if (field !== 'model' && field !== 'messages') expect(refusal({ [field]: null })).toBe('accepted')
    },
  )

  test('top_logprobs of a chat request must be 0 to 20, and requires logprobs to be true', () => {
    for (const good of [0, 20]) expect(refusal({ logprobs: true, top_logprobs: good })).toBe('accepted')
    for (const bad of [-1, 21, 1.5, '1'])
      expect(refusal({ logprobs: true, top_logprobs: bad })).toContain("'top_logprobs'")
    for (const logprobs of [false, null, undefined]) {
      expect(refusal({ logprobs, top_logprobs: 1 })).toBe("'top_logprobs' requires 'logprobs' to be true.")
    }
    expect(refusal({ top_logprobs: null })).toBe('accepted')
  })

  test('a chat request without model or messages is refused', () => {
    expect(refusal({ model: undefined })).toBe("'model' is required.")
    expect(refusal({ messages: undefined })).toBe("'messages' is required.")
  })

  test('unknown fields of a chat request are accepted, whatever they contain', () => {
    expect(
      refusal({ reasoning: { effort: 'low' }, provider: { order: [1] }, usage: { include: true }, x: null }),
    ).toBe('accepted')
  })
})

describe('refusals of a chat request', () => {
  test('the refusal of an invalid chat request names the field, what was expected and what was sent', () => {
    expect(refusal({ temperature: 3 })).toBe("Invalid 'temperature': expected a number from 0 to 2, got 3.")
    expect(refusal({ stream: 'yes' })).toBe(`Invalid 'stream': expected true or false, got "yes".`)
    expect(refusal({ n: {} })).toBe("Invalid 'n': expected an integer from 1 to 128, got an object.")
    expect(refusal({ messages: [{ role: 'user' }, { content: 'x' }] })).toBe(
      "Invalid 'messages[1].role': expected a string, got nothing.",
    )
    expect(refusal({ messages: [] })).toBe(
      "Invalid 'messages': expected a non-empty array of messages, got an empty array.",
    )
  })

  test('the refusal of a chat request shows at most 60 characters of a value, and nothing that may be a prompt', () => {
    const long = refusal({ temperature: `canary\u202e\n${'x'.repeat(500)}` })
    expect(long).toMatch(/^[\x20-\x7e…]+$/)
    expect(long.length).toBeLessThan(150)
    const secret = 'canary-prompt'
    for (const fields of [
      { messages: secret },
      { messages: [secret] },
      { messages: [{ role: [secret] }] },
      { tools: [secret] },
      { stop: { a: secret } },
      { prediction: secret },
      { response_format: secret },
      { metadata: secret },
      { user: [secret] },
      { n: [secret] },
      { functions: secret },
    ]) {
      expect(refusal(fields)).not.toContain(secret)
    }
  })
})

describe('the parsed request', () => {
  test('a parsed chat request has the documented defaults', () => {
    expect(read({})).toMatchObject({
      model: 'gpt-4o',
      stream: false,
      includeUsage: false,
      n: 1,
      maxTokens: undefined,
    })
    expect(
      read({ n: null, stream: null, stream_options: null, max_tokens: null, web_search_options: null }),
    ).toMatchObject({
      stream: false,
      includeUsage: false,
      n: 1,
      maxTokens: undefined,
    })
    expect(read({ web_search_options: null, tools: [{ type: 'function' }] }).providerTools).toBeUndefined()
  })

  test('a parsed chat request has the values that were sent', () => {
    expect(
      read({
        n: 3,
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 5,
        max_completion_tokens: 7,
        web_search_options: {},
        messages: [{ role: 'user' }, { role: 'tool' }],
      }),
    ).toMatchObject({
      stream: true,
      includeUsage: true,
      n: 3,
      maxTokens: 7,
      providerTools: { tools: [{ type: 'web_search_options' }] },
    })
    expect(read({ max_tokens: 9, max_completion_tokens: 7 }).maxTokens).toBe(9)
    expect(read({ max_tokens: 9, max_completion_tokens: null }).maxTokens).toBe(9)
  })

  test('a field of a chat request whose name is written with escapes is read', () => {
    const body = Buffer.from(String.raw`{"mod\u0065l":"gpt-4o","messages":[{"r\u006fle":"user"}],"\u006e":3}`)
    expect(readChatRequest(scanObject(body))).toMatchObject({ model: 'gpt-4o', n: 3 })
  })

  test('any bytes as a chat request are either read or refused, without a crash', () => {
    const field = fc.constantFrom(...Object.keys(TABLE), 'top_logprobs', '__proto__', 'constructor')
    fc.assert(
      fc.property(fc.dictionary(field, fc.jsonValue({ maxDepth: 3 })), (fields) => {
        try {
          expect(read(fields).promptBound).toBeGreaterThan(0)
        } catch (error) {
          expect(error).toBeInstanceOf(WireError)
        }
      }),
      { numRuns: lawRuns(1000) },
    )
  })
})
