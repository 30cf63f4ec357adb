import { describe, expect, test } from 'vitest'
import { scanObject } from './json-scan.ts'
import type { FoundStringKinds } from './string-kinds.ts'

const NOTHING: FoundStringKinds = {
  directive: false,
  cacheMember: false,
  halfHour: false,
  longLifetime: false,
}

const noted = (text: string): FoundStringKinds => scanObject(Buffer.from(text)).notes

describe('what is noted of the strings of a request', () => {
  test.each<[string, string, Partial<FoundStringKinds>]>([
    ['words inside a text', '{"content":"a cache_control of 1h"}', {}],
    ['an ordinary request', '{"content":"hi","cached":1,"prompt":"p"}', {}],
    ['a directive', '{"cache_control":{}}', { directive: true, cacheMember: true }],
    [
      'a breakpoint',
      '{"prompt_cache_breakpoint":{}}',
      { directive: true, cacheMember: true, halfHour: true },
    ],
    ['a cache point', '[{"cachePoint":{}}]', { directive: true, cacheMember: true }],
    ['a cache key', '{"prompt_cache_key":"k"}', { cacheMember: true }],
    ['an hour', '{"ttl":"1h"}', { longLifetime: true }],
    ['half an hour', '{"ttl":"30m"}', { halfHour: true }],
    ['five minutes', '{"ttl":"5m"}', {}],
    ['an escaped control character', String.raw`{"content":"\u001b[1m"}`, {}],
    [
      'an escaped letter',
      String.raw`{"cache\u005fcontrol":{}}`,
      { directive: true, cacheMember: true, halfHour: true, longLifetime: true },
    ],
  ])(
    'the scan of a request notes cache directives and similar words, only where they have their meaning: %s',
    (_, text, expected) => {
      expect(noted(text.startsWith('[') ? `{"messages":${text}}` : text)).toEqual({ ...NOTHING, ...expected })
    },
  )
})
