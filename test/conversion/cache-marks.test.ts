import type { ClientProtocol, ConversionProtocol } from '@sluice/wire/protocols'
import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import { describe, expect, test } from 'vitest'
import { upstreamDialect } from '../../src/call/dialects/conversion-dialects.ts'
import { channelOf } from '../samples/channel.ts'
import { ALL_PROTOCOLS, requestAs } from './convert-through.ts'

const ALLOWED = new Set(['cache_control'] as const)

test.each([
  ['chat', 'https://api.openai.com/v1', 'gpt-5.6', 'prompt_cache_breakpoint'],
  ['chat', 'https://api.openai.com/v1', 'gpt-6-mini', 'prompt_cache_breakpoint'],
  ['chat', 'https://API.OpenAI.com/v1', 'gpt-5.6', 'prompt_cache_breakpoint'],
  ['chat', 'https://api.openai.com/v1', 'gpt-5.5', undefined],
  ['chat', 'https://api.openai.com.evil.example/v1', 'gpt-5.6', undefined],
  ['chat', 'https://openrouter.ai/api/v1', 'gpt-5.6', 'cache_control'],
  ['chat', 'https://llm.example/v1', 'gpt-5.6', undefined],
  ['responses', 'https://api.openai.com/v1', 'gpt-5.6', 'prompt_cache_breakpoint'],
  ['responses', 'https://api.openai.com/v1', 'gpt-5', undefined],
  ['responses', 'https://llm.example/v1', 'gpt-5.6', undefined],
  ['messages', 'https://llm.example/v1', 'claude-opus-5', 'cache_control'],
  ['gemini', 'https://llm.example/v1', 'gemini-3', undefined],
] as const)(
  'the field for cache marks of a %s channel at %s with the model %s is %s',
  (protocol, base_url, model, field) => {
    const capabilities = capabilitiesOf(model, model)
    const rules = upstreamDialect(protocol).cacheMarks(channelOf({ base_url }), capabilities)
    expect(rules && (rules.field ?? 'cache_control')).toBe(field)
  },
)

test('a channel that allows cache_control gets cache_control in chat requests and breakpoints in Responses requests', () => {
  const channel = channelOf({ base_url: 'https://llm.example/v1', allow: ALLOWED })
  const rulesOf = (protocol: ConversionProtocol) =>
    upstreamDialect(protocol).cacheMarks(channel, capabilitiesOf('acme-1', 'acme-1'))
  expect(rulesOf('chat')).toMatchObject({ lifetimes: ['5m', '1h'] })
  expect(rulesOf('responses')).toMatchObject({ field: 'prompt_cache_breakpoint', lifetimes: ['30m', '12h'] })
})

test.each([
  [true, 'gpt-5', true],
  [false, 'gpt-5.6', false],
])(
  'the setting cache_breakpoints: %s of a model overrides what the model name %s implies',
  (cache_breakpoints, model, isTaken) => {
    expect(capabilitiesOf(model, model, { cache_breakpoints }).takesBreakpoints).toBe(isTaken)
  },
)

interface Converted {
  readonly request: Readonly<Record<string, unknown>>
  readonly dropped: readonly string[]
}

function converted(from: ClientProtocol, to: ConversionProtocol, body: object): Converted {
  return JSON.parse(requestAs(from, to, Buffer.from(JSON.stringify(body)))) as Converted
}

const marked = (text: string): object => ({
  type: 'text',
  text,
  prompt_cache_breakpoint: { mode: 'explicit' },
})

describe('breakpoints of a chat client', () => {
  test('a cache breakpoint gets the lifetime of the request, and x-gateway-dropped lists a lifetime that is shortened', () => {
    const body = {
      model: 'acme-1',
      messages: [{ role: 'user', content: [marked('hi')] }],
      prompt_cache_options: { mode: 'explicit', ttl: '12h' },
    }
    const { request, dropped } = converted('chat', 'messages', { ...body, max_tokens: 9 })
    expect(request['messages']).toEqual([
      {
        role: 'user',
        content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      },
    ])
    expect(dropped).toEqual(['prompt_cache_breakpoint.ttl', 'prompt_cache_options'])
  })

  test('of six cache breakpoints in a chat request the last four reach Converse', () => {
    const content = ['a', 'b', 'c', 'd', 'e', 'f'].map(marked)
    const body = { model: 'anthropic.claude-opus-5-v1:0', messages: [{ role: 'user', content }] }
    const { request, dropped } = converted('chat', 'converse', body)
    expect(JSON.stringify(request['messages']).split('cachePoint')).toHaveLength(5)
    expect(dropped).toEqual(['prompt_cache_breakpoint'])
  })
})

test('prompt_cache_options is converted between chat and Responses requests, and replaces prompt_cache_retention', () => {
  const prompt_cache_options = { mode: 'implicit', ttl: '30m' }
  const more = { prompt_cache_retention: '24h', prompt_cache_options }
  const messages = [{ role: 'user', content: 'hi' }]
  const there = converted('chat', 'responses', { model: 'gpt-5.6', messages, ...more })
  expect(there.request).toMatchObject({ prompt_cache_options })
  expect(there.request).not.toHaveProperty('prompt_cache_retention')
  expect(there.dropped).toEqual(['prompt_cache_retention'])
  const options = { ...prompt_cache_options, comparison_response_id: 'resp_1' }
  const back = converted('responses', 'chat', {
    model: 'gpt-5.6',
    input: 'hi',
    prompt_cache_options: options,
  })
  expect(back.request).toMatchObject({ prompt_cache_options })
  expect(JSON.stringify(back.request)).not.toContain('resp_1')
  expect(back.dropped).toEqual(['prompt_cache_options'])
})

describe('the billing header of Claude Code', () => {
  const body = {
    model: 'acme-1',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
  }
  const header = 'x-anthropic-billing-header: cc_version=2.1; cch=0a1b2;'

  test.each(['chat', 'responses', 'gemini', 'converse'] as const)(
    "Claude Code's billing header is left out of a request converted to %s, and listed in x-gateway-dropped",
    (to) => {
      const system = [
        { type: 'text', text: header },
        { type: 'text', text: 'Rules.' },
      ]
      const { request, dropped } = converted('messages', to, { ...body, system })
      expect(JSON.stringify(request)).toContain('Rules.')
      expect(JSON.stringify(request)).not.toContain('cch=')
      expect(dropped).toEqual(['billing_header'])
    },
  )

  const SYSTEMS: Readonly<Record<ClientProtocol, (texts: readonly string[]) => object>> = {
    chat: (texts) => ({
      messages: [
        { role: 'system', content: texts.map((text) => ({ type: 'text', text })) },
        { role: 'user', content: 'hi' },
      ],
    }),
    messages: (texts) => ({ ...body, system: texts.map((text) => ({ type: 'text', text })) }),
    responses: (texts) => ({
      instructions: texts[0],
      input: texts.slice(1).map((content) => ({ role: 'developer', content })),
    }),
    gemini: (texts) => ({
      systemInstruction: { parts: texts.map((text) => ({ text })) },
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    }),
  }
  const PAIRS = ALL_PROTOCOLS.flatMap((from) =>
    ([...ALL_PROTOCOLS, 'converse'] as const).filter((to) => to !== from).map((to) => ({ from, to })),
  )

  // Another gateway may have converted the request of Claude Code before.
  test.each(PAIRS)(
    "Claude Code's billing header is left out of a request converted from $from to $to, and listed as dropped",
    ({ from, to }) => {
      const given = { model: 'acme-1', ...SYSTEMS[from]([header, 'Rules.']) }
      const { request, dropped } = converted(from, to, given)
      expect(JSON.stringify(request)).toContain('Rules.')
      expect(JSON.stringify(request)).not.toContain('billing-header')
      expect(dropped).toEqual(['billing_header'])
      const line = converted(from, to, { model: 'acme-1', ...SYSTEMS[from]([`${header}\nRules.`, 'More.']) })
      expect(JSON.stringify(line.request)).toMatch(/"Rules\.".*"More\."/)
      expect(line.dropped).toEqual(['billing_header'])
    },
  )

  test('a billing header that is the first line of a system text is left out of the converted request, and the other lines stay', () => {
    const system = `${header}\nRules.`
    const { request } = converted('messages', 'chat', { ...body, system })
    expect(request['messages']).toEqual([
      { role: 'system', content: 'Rules.' },
      { role: 'user', content: 'hi' },
    ])
  })
})
