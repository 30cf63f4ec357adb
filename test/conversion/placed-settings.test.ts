import type { ConversionProtocol } from '@sluice/wire/protocols'
import { describe, expect, test } from 'vitest'
import type { Json } from '../fidelity/facts.ts'
import { replyAs, requestAs } from './convert-through.ts'

interface Converted {
  readonly dropped: readonly string[]
  readonly request: Json
}

/** A chat request as an upstream of another dialect gets it. */
function converted(to: ConversionProtocol, model: string, fields: object): Converted {
  const body = { model, messages: [{ role: 'user', content: 'hi' }], ...fields }
  return JSON.parse(requestAs('chat', to, Buffer.from(JSON.stringify(body)))) as Converted
}

describe('an effort of none or minimal for an unknown model', () => {
  test.each(['none', 'minimal'])(
    'a reasoning effort of none or minimal is unchanged after a conversion from chat to responses, and back: %s',
    (effort) => {
      const { request, dropped } = converted('responses', 'acme-1', { reasoning_effort: effort })
      expect(request['reasoning']).toEqual({ effort })
      expect(dropped).toEqual([])
      const body = { model: 'acme-1', input: 'hi', reasoning: { effort } }
      const back = JSON.parse(requestAs('responses', 'chat', Buffer.from(JSON.stringify(body)))) as Converted
      expect(back).toMatchObject({ dropped: [], request: { reasoning_effort: effort } })
    },
  )

  test('a reasoning effort of none becomes a thinkingBudget of 0 for Gemini, and minimal the thinkingLevel MINIMAL', () => {
    const config = (effort: string): unknown =>
      converted('gemini', 'acme-1', { reasoning_effort: effort }).request['generationConfig'].thinkingConfig
    expect(config('none')).toEqual({ thinkingBudget: 0 })
    expect(config('minimal')).toEqual({ thinkingLevel: 'MINIMAL' })
  })

  test.each([
    ['messages', 'none', []],
    ['messages', 'minimal', ['thinking']],
    ['converse', 'none', ['thinking']],
    ['converse', 'minimal', ['thinking']],
  ] as const)(
    'a reasoning effort for an unknown model of %s does not enable thinking: %s lists %j as dropped',
    (to, effort, listed) => {
      const { request, dropped } = converted(to, 'acme-1', { reasoning_effort: effort, max_tokens: 50 })
      expect(dropped).toEqual(listed)
      expect(request['thinking']).toEqual(to === 'messages' ? { type: 'disabled' } : undefined)
    },
  )

  test('a messages request with disabled thinking is converted to chat without a reasoning_effort', () => {
    const body = { model: 'acme-1', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }
    const request = { ...body, thinking: { type: 'disabled' } }
    const sent = JSON.parse(requestAs('messages', 'chat', Buffer.from(JSON.stringify(request)))) as Converted
    expect(sent.request).not.toHaveProperty('reasoning_effort')
  })

  test('a reasoning effort of none or minimal is adapted to what a known model supports: none is minimal for gpt-5-mini', () => {
    const { request } = converted('responses', 'gpt-5-mini', { reasoning_effort: 'none' })
    expect(request['reasoning']).toEqual({ effort: 'minimal' })
    expect(converted('messages', 'claude-sonnet-4-5', { reasoning_effort: 'minimal' }).dropped).toEqual([])
  })
})

describe('system messages after the first turn', () => {
  const CALL = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const messages = [
    { role: 'system', content: 'first' },
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'hello' },
    { role: 'system', content: 'second' },
    { role: 'user', content: 'go on' },
    { role: 'assistant', content: null, tool_calls: [CALL] },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
    { role: 'developer', content: 'third' },
    { role: 'user', content: 'and?' },
    { role: 'assistant', content: 'so' },
    { role: 'system', content: 'last' },
  ]

  test('system messages after the first turn keep their positions as user text when they are converted to Gemini', () => {
    const { request } = converted('gemini', 'acme-1', { messages })
    expect(request['systemInstruction']).toEqual({ parts: [{ text: 'first' }] })
    const said = request['contents'].map(({ role, parts }: Json) => [
      role,
      ...parts.map((part: Json) => part['text'] ?? Object.keys(part)[0]),
    ])
    expect(said).toEqual([
      ['user', 'hi'],
      ['model', 'hello'],
      ['user', 'second', 'go on'],
      ['model', 'functionCall'],
      ['user', 'functionResponse', 'third', 'and?'],
      ['model', 'so'],
      ['user', 'last'],
    ])
  })

  test('system messages after the first turn keep their positions as user text when they are converted to messages', () => {
    const { request } = converted('messages', 'acme-1', { messages, max_tokens: 50 })
    expect(request['system'].map(({ text }: Json) => text)).toEqual(['first'])
    const said = request['messages'].map(({ role, content }: Json) => [
      role,
      ...content.map((block: Json) => block['text'] ?? block['type']),
    ])
    expect(said).toEqual([
      ['user', 'hi'],
      ['assistant', 'hello'],
      ['user', 'second', 'go on'],
      ['assistant', 'tool_use'],
      ['user', 'tool_result', 'third', 'and?'],
      ['assistant', 'so'],
      ['user', 'last'],
    ])
  })

  test('system messages after the first turn stay system messages at their positions when they are converted to responses', () => {
    const { request } = converted('responses', 'acme-1', { messages })
    expect(request['instructions']).toBe('first')
    expect(request['input'].map(({ type, role, content }: Json) => [role ?? type, content])).toEqual([
      ['user', 'hi'],
      ['assistant', 'hello'],
      ['system', 'second'],
      ['user', 'go on'],
      ['function_call', undefined],
      ['function_call_output', undefined],
      ['system', 'third'],
      ['user', 'and?'],
      ['assistant', 'so'],
      ['system', 'last'],
    ])
  })
})

test.each([
  [
    'messages',
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'x' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    'vendor',
  ],
  [
    'responses',
    {
      object: 'response',
      status: 'completed',
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    },
    undefined,
  ],
  [
    'gemini',
    {
      candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    },
    undefined,
  ],
] as const)(
  'usage converted to chat from a %s upstream has a usage_source only if that upstream speaks messages',
  (from, body, source) => {
    const reply = { id: 'x', model: 'm', ...body }
    const { usage } = JSON.parse(replyAs(from, 'chat', Buffer.from(JSON.stringify(reply)))) as Json
    expect(usage.prompt_tokens).toBe(1)
    expect(usage.usage_source).toBe(source)
  },
)
