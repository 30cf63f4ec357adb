import { CHAT_PROMPT_RULES } from '@sluice/wire/chat'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ProtocolName } from '@sluice/wire/protocols'
import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { cacheLifetimesAtChannel, cacheLifetimesInRequest } from './cache-lifetimes.ts'

const named = (text: string): ReturnType<typeof cacheLifetimesInRequest> =>
  cacheLifetimesInRequest(scanObject(Buffer.from(text)), CHAT_PROMPT_RULES.shape)

const block = (directive: string): string =>
  `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"${directive}}]}]}`

describe('the lifetimes that a request names', () => {
  test.each([
    [
      'no directive, although a text has the word',
      '{"messages":[{"content":"say cache_control and 1h"}]}',
      [],
    ],
    ['a directive without a lifetime', block(',"cache_control":{"type":"ephemeral"}'), ['5m']],
    ['five minutes', block(',"cache_control":{"type":"ephemeral","ttl":"5m"}'), ['5m']],
    ['half an hour', block(',"prompt_cache_breakpoint":{"mode":"explicit","ttl":"30m"}'), ['5m', '30m']],
    ['an hour', block(',"cache_control":{"type":"ephemeral","ttl":"1h"}'), ['5m', '30m', '1h', '12h']],
    [
      'an hour in a call and in a schema, beside a directive without a lifetime',
      `{"tools":[{"function":{"parameters":{"enum":["1h"]}},"cache_control":{}}],"messages":[{"tool_calls":[{"function":{"arguments":{"ttl":"1h"}}}]}]}`,
      ['5m'],
    ],
    [
      'an hour at a member that the protocol does not define',
      '{"extra_body":{"cache_control":{"ttl":"1h"}}}',
      ['5m', '30m', '1h', '12h'],
    ],
    [
      'a member that the protocol does not define, and no directive',
      '{"extra_body":{"top_k":1,"name":"a"}}',
      [],
    ],
    ['a cache key', '{"prompt_cache_key":"k"}', ['5m']],
    ['options of the cache', '{"prompt_cache_options":{"ttl":"30m"}}', ['5m', '30m']],
    ['an ordinary request', '{"messages":[{"content":"hi"}],"cached":1}', []],
    ['a breakpoint of OpenAI', block(',"prompt_cache_breakpoint":{}'), ['5m', '30m']],
    ['a day', '{"prompt_cache_retention":"24h"}', ['5m', '30m', '1h', '12h']],
    [
      'a name with escapes',
      block(String.raw`,"cache\u005fcontrol":{"type":"ephemeral","ttl":"1h"}`),
      ['5m', '30m', '1h', '12h'],
    ],
    [
      'a lifetime with escapes',
      block(String.raw`,"cache_control":{"type":"ephemeral","ttl":"\u0031h"}`),
      ['5m', '30m', '1h', '12h'],
    ],
    ['a short text with other escapes', String.raw`{"messages":[{"content":"\u001b[1m \\u0061 \n"}]}`, []],
  ])('the cache lifetimes that a request names are found: %s', (_, text, expected) => {
    expect(named(text)).toEqual(expected)
  })
})

describe('the lifetimes at a channel', () => {
  const at = (
    channel: Partial<Parameters<typeof channelOf>[0]>,
    model = 'm',
    dialect: ProtocolName = 'chat',
    text = '{}',
  ): readonly string[] =>
    cacheLifetimesAtChannel(
      {
        channel: channelOf(channel),
        outputMaximum: undefined,
        choices: 1,
        sent: { dialect, model, value: () => undefined, names: () => [], isObject: () => false },
        prepare: () => {
          throw new Error('not sent')
        },
      },
      named(text),
    )
  test('a request to Anthropic without a cache directive has no possible prompt cache lifetimes, as it is not cached', () => {
    expect(at({ base_url: 'https://api.anthropic.com/v1' }, 'claude-sonnet-4-5')).toEqual([])
  })
  test('5 and 30 minutes are possible prompt cache lifetimes of a model that is cached without a directive', () => {
    expect(at({ base_url: 'https://api.openai.com/v1' })).toEqual(['5m', '30m'])
    expect(at({ base_url: 'https://proxy.example/v1' }, 'openai/gpt-5.6-mini')).toEqual(['5m', '30m'])
    expect(at({ base_url: 'https://proxy.example/v1' }, 'openai/gpt-5.1')).toEqual([])
  })
  test.each<[ProtocolName, string, readonly string[]]>([
    ['messages', 'https://api.anthropic.com/v1', ['5m', '30m', '1h', '12h']],
    ['messages', 'https://name.openai.azure.com/v1', ['5m', '30m', '1h', '12h']],
    ['converse', 'https://bedrock-runtime.eu-central-1.amazonaws.com', ['5m', '30m', '1h', '12h']],
    ['chat', 'https://openrouter.ai/api/v1', ['5m', '30m', '1h', '12h']],
    ['chat', 'https://api.openai.com/v1', ['5m', '30m']],
    ['responses', 'https://proxy.example/v1', ['5m', '30m']],
  ])(
    'a cache breakpoint that is sent as %s to %s has all cache lifetimes that this upstream may give it',
    (dialect, base_url, is) => {
      for (const directive of ['{"mode":"explicit"}', '{"mode":"explicit","ttl":"30m"}'])
        expect(at({ base_url }, 'm', dialect, block(`,"prompt_cache_breakpoint":${directive}`))).toEqual(is)
    },
  )
  test('a cache directive of five minutes makes prompt cache lifetimes of 5 and 30 minutes possible, in every dialect', () => {
    const five = block(',"cache_control":{"type":"ephemeral"}')
    for (const dialect of ['chat', 'messages', 'responses', 'converse'] as const)
      expect(at({}, 'm', dialect, five)).toEqual(['5m', '30m'])
  })
  test("a cache directive that the operator's override adds gives prompt cache lifetimes of 5 and 30 minutes, 1 and 12 hours", () => {
    const set = new Map([['cache_control', '{"type":"ephemeral"}']])
    expect(at({ override: { set, default: new Map(), remove: [] } })).toEqual(['5m', '30m', '1h', '12h'])
  })
})
