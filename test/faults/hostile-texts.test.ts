import { describe, expect, test } from 'vitest'
import { bearerKey } from '../../src/accounts/authentication/key-from-request.ts'
import { pathPattern } from '../../src/api/paths.ts'
import { lookupPartOfKey } from '../../src/domain/api-key.ts'
import { allowedAddresses, parseAddresses } from '../../src/domain/ip-allow-list.ts'
import { readUpstreamError } from '@sluice/wire/upstream-error'
import { redact } from '../../src/upstreams/redact.ts'
import { retryAfterMs } from '../../src/upstreams/retry-after.ts'
import { channelOf } from '../samples/channel.ts'
import { cpuMs } from '../fixtures/pace.ts'

const LENGTH = 100_000
/** How many times as long as looking at each character a parser may take: linear work, with a margin. */
const LINEAR = 1_000

const CHANNEL = channelOf({
  keys: ['upstream-key-1', 'sk-sk-sk-sk-sk-'],
  headers: new Map([['x-key', 'aaaaaaaaaaaaaaaa']]),
  base_url: 'https://aaaa.aaaa.example/v1',
})

/**
 * Functions that parse external texts: clients' headers and paths, users' lists, upstreams' headers and
 * errors.
 */
const PARSERS: Record<string, (text: string) => unknown> = {
  Authorization: bearerKey,
  'an API key': lookupPartOfKey,
  'a path': pathPattern('/api/token/:id/key'),
  'a list of addresses': (text) => allowedAddresses(text)('10.0.0.1'),
  'lines of addresses': (text) => parseAddresses(text.split('\n')),
  'retry-after': (text) => retryAfterMs(text, 0),
  'the words of an upstream': (text) => redact(text, CHANNEL),
  'an error of an upstream': (text) => readUpstreamError(Buffer.from(text)),
}

const TEXTS: Record<string, (length: number) => string> = {
  letters: (length) => 'a'.repeat(length),
  spaces: (length) => `bearer${' '.repeat(length)}\0`,
  'spaces behind a key': (length) => `Bearer a${' '.repeat(length)}x`,
  'many bearers': (length) => 'Bearer '.repeat(length / 7),
  'many keys': (length) => 'sk-'.repeat(length / 3),
  'beginnings of web tokens': (length) => 'eyJ-'.repeat(length / 4),
  'keys cut short': (length) => 'sk-abcde '.repeat(length / 9),
  hyphens: (length) => '-'.repeat(length),
  slashes: (length) => '/'.repeat(length),
  'a path of many steps': (length) => `/api/token/${'a/'.repeat(length / 2)}key`,
  'an id that is long': (length) => `/api/token/${'9'.repeat(length)}/keys`,
  lines: (length) => '\n'.repeat(length),
  addresses: (length) => '10.0.0.1\n'.repeat(length / 9),
  'addresses of the other kind': (length) => '::1/128\n'.repeat(length / 8),
  colons: (length) => ':'.repeat(length),
  digits: (length) => '1'.repeat(length),
  'a number without an end': (length) => `1.${'1'.repeat(length)}x`,
  'hosts of ours': (length) => 'aaaa.'.repeat(length / 5),
  'open brackets': (length) => '['.repeat(length),
  'open objects': (length) => '{"error":'.repeat(length / 9),
  backslashes: (length) => `"${'\\'.repeat(length)}`,
}

function bestOf(times: number, work: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < times; i++) {
    const began = cpuMs()
    work()
    best = Math.min(best, cpuMs() - began)
  }
  return best
}

describe.each(Object.entries(PARSERS))('%s', (name, take) => {
  test.each(Object.entries(TEXTS))('a hostile text is parsed in linear time: %s', (kind, make) => {
    const text = make(LENGTH)
    // Adding to an address list costs more than reading a letter; the list belongs to the user and is read
    // once.
    const isList = name.includes('addresses') && kind.startsWith('addresses')
    const walk = bestOf(5, () => {
      let sum = 0
      for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i)
      return sum
    })
    const limit = walk * LINEAR * (isList ? 20 : 1)
    expect(bestOf(5, () => take(text))).toBeLessThan(limit)
  })
})
