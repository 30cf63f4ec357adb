import { describe, expect, test } from 'vitest'
import { WireError } from '../../wire-error.ts'
import { scanObject } from '../../json/json-scan.ts'
import { decodeRequest } from '../decode/request.ts'
import { readResponsesRequest, type ResponsesRequest, responsesRequestSchema } from './request.ts'

const MINIMAL = { model: 'gpt-5', input: 'canary-prompt' }

function read(fields: object): ResponsesRequest {
  return readResponsesRequest(scanObject(Buffer.from(JSON.stringify({ ...MINIMAL, ...fields }))))
}

function refusal(fields: object, accept: (fields: object) => unknown = read): string {
  try {
    accept(fields)
  } catch (error) {
    expect((error as WireError).code).toBe('invalid_request')
    return (error as WireError).message
  }
  return 'accepted'
}

/** Reads a request and converts it. */
function convert(fields: object): void {
  read(fields)
  decodeRequest(scanObject(Buffer.from(JSON.stringify({ ...MINIMAL, ...fields }))), new Set())
}

const text = ['x', ''] as const
const notText = [1, true, [], {}] as const
const flag = { good: [true, false], bad: ['true', 1, {}] } as const
const object = { good: [{}, { a: 1 }], bad: ['x', 1, []] } as const

interface Values {
  readonly good: readonly unknown[]
  readonly bad: readonly unknown[]
}

/** For each field, values that are accepted and values that are refused, for every kind of channel. */
const TABLE: Readonly<Record<string, Values>> = {
  model: { good: ['gpt-5', 'a/b:c'], bad: ['', null, 1, 'a\nb', 'm'.repeat(257)] },
  input: {
    good: ['Hi', [{ role: 'user', content: 'Hi' }], [{ type: 'what_is_this' }], [{ id: 'msg_1' }]],
    bad: ['', 1, {}, [], ['Hi'], [{ type: 1 }], [{ role: {} }]],
  },
  stream: flag,
  store: flag,
  background: flag,
  previous_response_id: { good: text, bad: notText },
  max_output_tokens: { good: [1, 16, 10_000_000], bad: [0, -1, 1.5, '16', 10_000_001] },
  max_tool_calls: { good: [1], bad: ['1', 1.5] },
  tools: {
    good: [[], [{ type: 'function' }], [{ type: 'brand_new' }]],
    bad: [{}, ['x'], [{}], [{ type: 1 }]],
  },
  service_tier: { good: text, bad: notText },
}

/** Accepted and refused values of the fields that are checked only if a request is converted. */
const CONVERTED: Readonly<Record<string, Values>> = {
  instructions: { good: [...text, []], bad: [1, true, {}] },
  parallel_tool_calls: flag,
  stream_options: object,
  text: object,
  prompt: object,
  prompt_cache_options: object,
  reasoning: { good: [{}, { effort: 'high' }, { effort: null }], bad: ['high', { effort: 1 }] },
  conversation: { good: ['conv_1', { id: 'conv_1' }], bad: [1, [], true] },
  include: { good: [[], ['x']], bad: ['x', [1]] },
  temperature: { good: [0, 2], bad: [-1, 2.1, '1'] },
  top_p: { good: [0, 1], bad: [-0.1, 1.1] },
  top_logprobs: { good: [0, 20], bad: [-1, 21, 1.5] },
  tool_choice: { good: ['auto', 'none'], bad: [1, {}, [], { type: 1 }] },
  truncation: { good: text, bad: notText },
  metadata: { good: [{}, { a: 'b' }], bad: [{ a: 1 }, 'x', []] },
  prompt_cache_key: { good: text, bad: notText },
  prompt_cache_retention: { good: text, bad: notText },
  safety_identifier: { good: text, bad: notText },
  user: { good: text, bad: notText },
}

/** Fields that only a provider with storage can read. */
const STATEFUL = new Set(['conversation', 'prompt'])

describe('the fields of a request', () => {
  test.each(Object.entries(TABLE))(
    'the responses field %s accepts the documented values and refuses others',
    (field, { good, bad }) => {
      for (const value of good) expect(refusal({ [field]: value }), JSON.stringify(value)).toBe('accepted')
      for (const value of bad) expect(refusal({ [field]: value }), JSON.stringify(value)).toContain(field)
      if (field !== 'model' && field !== 'input') expect(refusal({ [field]: null })).toBe('accepted')
    },
  )

  test.each(Object.entries(CONVERTED))(
    'the responses field %s accepts the documented values and refuses others, if the request is converted',
    (field, { good, bad }) => {
      const expected = STATEFUL.has(field) ? `Invalid '${field}': expected all items in 'input'` : 'accepted'
      for (const value of good)
        expect(refusal({ [field]: value }, convert), JSON.stringify(value)).toContain(expected)
      for (const value of bad) {
        expect(refusal({ [field]: value }, convert), JSON.stringify(value)).toContain(field)
        expect(refusal({ [field]: value }), JSON.stringify(value)).toBe('accepted')
      }
      expect(refusal({ [field]: null }, convert)).toBe('accepted')
    },
  )

  test('the tests of responses fields cover exactly the fields that the schema of a responses request has', () => {
    expect(Object.keys(responsesRequestSchema()['properties'] as object).sort()).toEqual(
      [...Object.keys(TABLE), ...Object.keys(CONVERTED)].sort(),
    )
  })

  test('a responses request may have unknown fields', () => {
    expect(refusal({ client_metadata: { a: 1 }, generate: false })).toBe('accepted')
  })

  test('refusals of responses fields never show what may be a prompt', () => {
    for (const field of ['input', 'instructions', 'previous_response_id', 'metadata'])
      expect(refusal({ [field]: { 'canary-prompt': { 'canary-prompt': 1 } } }, convert)).toMatch(
        new RegExp(`Invalid '${field}'(?!.*canary)`),
      )
  })
})

describe('the input of a request', () => {
  test('a responses request needs an input, unless it continues a response or uses a stored prompt', () => {
    expect(refusal({ input: undefined })).toContain(`'input' is required`)
    expect(refusal({ input: null, previous_response_id: 'resp_1' })).toBe('accepted')
    expect(refusal({ input: [], previous_response_id: 'resp_1' })).toBe('accepted')
    expect(refusal({ input: undefined, prompt: { id: 'p' } })).toBe('accepted')
  })

  test('a parsed responses request has its input, settings and references', () => {
    expect(
      read({
        input: [
          { role: 'user', content: 'a' },
          { type: 'item_reference', id: 'x' },
        ],
        stream: true,
        store: false,
        background: true,
        max_output_tokens: 100,
        previous_response_id: 'resp_1',
        tools: [{ type: 'web_search_preview' }],
      }),
    ).toMatchObject({
      model: 'gpt-5',
      stream: true,
      store: false,
      background: true,
      maxTokens: 100,
      providerTools: { tools: [{ type: 'web_search_preview' }] },
      previousResponseId: 'resp_1',
    })
    expect(read({}).providerTools).toBeUndefined()
    expect(read({})).toMatchObject({
      stream: false,
      store: undefined,
      background: false,
      maxTokens: undefined,
      previousResponseId: undefined,
    })
  })
})
