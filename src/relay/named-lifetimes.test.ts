import { scanObject } from '@sluice/wire/json/json-scan'
import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/channel.ts'
import { lifetimesAt, namedLifetimes } from './named-lifetimes.ts'

const named = (text: string): readonly string[] => namedLifetimes(scanObject(Buffer.from(text)))

const block = (directive: string): string =>
  `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"${directive}}]}]}`

describe('the lifetimes that a request names', () => {
  test.each([
    [
      'no directive, although a text has the word',
      '{"messages":[{"content":"say cache_control and 1h"}]}',
      [],
    ],
    ['a directive without a lifetime', block(',"cache_control":{"type":"ephemeral"}'), ['5m', '30m']],
    ['five minutes', block(',"cache_control":{"type":"ephemeral","ttl":"5m"}'), ['5m', '30m']],
    ['an hour', block(',"cache_control":{"type":"ephemeral","ttl":"1h"}'), ['5m', '30m', '1h', '12h']],
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
  ])('%s', (_, text, expected) => {
    expect(named(text)).toEqual(expected)
  })
})

describe('the lifetimes at a channel', () => {
  const at = (channel: Partial<Parameters<typeof channelOf>[0]>, model = 'm'): readonly string[] =>
    lifetimesAt({
      channel: channelOf(channel),
      outputMaximum: undefined,
      choices: 1,
      sent: { dialect: 'chat', model, value: () => undefined },
      prepare: () => {
        throw new Error('not sent')
      },
    })
  test('a request without a directive has no lifetimes', () => {
    expect(at({ base_url: 'https://api.anthropic.com/v1' }, 'claude-sonnet-4-5')).toEqual([])
  })
  test('a provider that writes to its cache without a directive has the lifetimes of 5 and 30 minutes', () => {
    expect(at({ base_url: 'https://api.openai.com/v1' })).toEqual(['5m', '30m'])
    expect(at({ base_url: 'https://proxy.example/v1' }, 'openai/gpt-5.6-mini')).toEqual(['5m', '30m'])
    expect(at({ base_url: 'https://proxy.example/v1' }, 'openai/gpt-5.1')).toEqual([])
  })
  test('a directive that the operator adds has all lifetimes', () => {
    const set = new Map([['cache_control', '{"type":"ephemeral"}']])
    expect(at({ override: { set, default: new Map(), remove: [] } })).toEqual(['5m', '30m', '1h', '12h'])
  })
})
