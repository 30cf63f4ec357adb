import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { growthOf, LINEAR_GROWTH } from '../../test/fixtures/pace.ts'
import { redact, redactFrame } from './redact.ts'

const KEY = 'an/odd?key+of~the>channel'
const CHANNEL = channelOf({
  keys: [KEY, 'two-parts:of-one-key'],
  base_url: 'http://inner.test:8080/v1',
  proxy: 'http://gate%2Dkeeper:p%40ss%3Aword-2@proxy.test:3128',
})

const reversed = (text: string): string => Array.from(text).toReversed().join('')
const alternating = (text: string): string =>
  Array.from(text, (letter, at) => (at % 2 === 0 ? letter.toLowerCase() : letter.toUpperCase())).join('')
/** A character of each kind that is not seen. */
const INVISIBLE = [
  '\u200b',
  '\u2060',
  '\u00ad',
  '\ufeff',
  '\u3164',
  '\u2800',
  '\ufffc',
  '\u{e0041}',
  '\u{1d159}',
  '\u{16fe4}',
  '\u00a0',
  '\u2009',
  '\u3000',
  '\u0000',
]
/** References to such characters, and to the letter before one of them. */
const INVISIBLE_ENTITIES = [
  '&shy;',
  '&shy',
  '&nbsp;',
  '&NBSP',
  '&zwnj;',
  '&zwj;',
  '&lrm;',
  '&ZeroWidthSpace;',
  '&NegativeVeryThinSpace;',
  '&NoBreak;',
  '&InvisibleTimes;',
  '&af;',
  '&emsp13;',
  '&ThickSpace;',
  '&amp;zwj;',
  '&#160;',
  '&#x3000;',
]
const ENTITIES: Readonly<Record<string, string>> = {
  '/': '&sol;',
  '?': '&quest;',
  '+': '&plus;',
  '>': '&gt;',
  ':': '&colon;',
  '@': '&commat;',
}

/** Encodings of a text from which it must not be recoverable. */
const ENCODINGS: Readonly<Record<string, (bytes: Buffer) => string>> = {
  'as it is': String,
  base64: (bytes) => bytes.toString('base64'),
  'base64 without padding': (bytes) => bytes.toString('base64').replaceAll('=', ''),
  base64url: (bytes) => bytes.toString('base64url'),
  'base64, percent-encoded': (bytes) => encodeURIComponent(bytes.toString('base64')),
  hexadecimal: (bytes) => bytes.toString('hex'),
  'hexadecimal in upper case': (bytes) => bytes.toString('hex').toUpperCase(),
  'percent-encoded': (bytes) => encodeURIComponent(bytes.toString()),
  'percent-encoded in lower case': (bytes) =>
    encodeURIComponent(bytes.toString()).replaceAll(/%../g, (octet) => octet.toLowerCase()),
  'percent-encoded twice': (bytes) => encodeURIComponent(encodeURIComponent(bytes.toString())),
  reversed: (bytes) => reversed(bytes.toString()),
  'in upper case': (bytes) => bytes.toString().toUpperCase(),
  'in alternating case': (bytes) => alternating(bytes.toString()),
  'reversed and in upper case': (bytes) => reversed(bytes.toString()).toUpperCase(),
  'with zero-width spaces between': (bytes) => Array.from(bytes.toString()).join('\u200b'),
  'with invisible characters of many kinds between': (bytes) =>
    Array.from(bytes.toString(), (letter, at) => letter + (INVISIBLE[at % INVISIBLE.length] ?? ''))
      .join('')
      .replace(/.$/u, ''),
  'reversed, with zero-width spaces between': (bytes) =>
    Array.from(reversed(bytes.toString())).join('\u200b'),
  'as entities': (bytes) => Array.from(bytes, (byte) => `&#${byte};`).join(''),
  'as hexadecimal entities': (bytes) => Array.from(bytes, (byte) => `&#X000${byte.toString(16)};`).join(''),
  'as entities that are escaped again': (bytes) => Array.from(bytes, (byte) => `&amp;#${byte};`).join(''),
  'with named entities': (bytes) =>
    bytes.toString().replaceAll(/[/?+~>:@-]/g, (sign) => ENTITIES[sign] ?? sign),
  'reversed, as entities': (bytes) =>
    Array.from(Buffer.from(reversed(bytes.toString())), (byte) => `&#${byte};`).join(''),
  'base64 with soft hyphens between': (bytes) => Array.from(bytes.toString('base64')).join('\u00ad'),
  'with entities of invisible characters between': (bytes) =>
    Array.from(
      bytes.toString(),
      (letter, at) => letter + (INVISIBLE_ENTITIES[at % INVISIBLE_ENTITIES.length] ?? ''),
    ).join(''),
  'base64 of it reversed': (bytes) => Buffer.from(reversed(bytes.toString())).toString('base64'),
  'base64url of it in upper case': (bytes) =>
    Buffer.from(bytes.toString().toUpperCase()).toString('base64url'),
  'base64 of it in alternating case': (bytes) =>
    Buffer.from(alternating(bytes.toString())).toString('base64'),
  'hexadecimal of it reversed': (bytes) => Buffer.from(reversed(bytes.toString())).toString('hex'),
  'hexadecimal of it in upper case': (bytes) => Buffer.from(bytes.toString().toUpperCase()).toString('hex'),
  'percent-encoded of it reversed, in alternating case': (bytes) =>
    Buffer.from(alternating(reversed(bytes.toString())))
      .toString('hex')
      .replaceAll(/../g, (octet) => `%${octet}`),
  'all of it percent-encoded': (bytes) => bytes.toString('hex').replaceAll(/../g, (octet) => `%${octet}`),
}

describe.each(Object.keys(ENCODINGS))('a secret that an upstream quotes, %s', (encoding) => {
  const encoded = (text: string): string => ENCODINGS[encoding]?.(Buffer.from(text)) ?? ''

  test.each([
    ['a key', KEY],
    ['a part of a key', 'of-one-key'],
    ["a proxy's password", 'p@ss:word-2'],
  ])("a secret that an upstream's error text quotes is removed: %s", (_, secret) => {
    const found = redact(`refused: ${encoded(secret)} is unknown`, CHANNEL)
    expect(found).toBe('refused: [redacted] is unknown')
  })

  test('an upstream key that a provider quotes in any encoding is removed, whatever text is around it', () => {
    const around = fc.string({ unit: 'grapheme-ascii', maxLength: 12 })
    fc.assert(
      fc.property(around, around, (before, after) => {
        const found = redact(encoded(`${before}${KEY}${after}`), CHANNEL)
        expect(found).toContain('[redacted]')
        const pieces = found.split('[redacted]')
        for (const piece of pieces)
          for (const text of [
            piece,
            Buffer.from(piece, 'base64').toString('latin1'),
            Buffer.from(piece, 'hex').toString('latin1'),
          ])
            for (const part of [KEY.slice(0, 8), KEY.slice(8, 16), KEY.slice(-8)])
              expect(text).not.toContain(part)
      }),
      { examples: [['%0', '']] },
    )
  })
})

test('Basic authentication credentials of a proxy or an upstream key are removed from an error text', () => {
  const basic = (text: string): string =>
    `Proxy-Authorization: Basic ${Buffer.from(text).toString('base64')}!`
  expect(redact(basic('gate-keeper:p@ss:word-2'), CHANNEL)).toBe('Proxy-Authorization: Basic [redacted]!')
  for (const user of ['', 'u', 'us', 'use', 'user'])
    expect(redact(basic(`${user}:${KEY}`), CHANNEL)).toMatch(
      /^Proxy-Authorization: Basic [\w+/]*\[redacted\]!$/,
    )
})

test('each piece of a long upstream key in an error text is replaced by [redacted], in every encoding', () => {
  const long = Array.from({ length: 700 }, (_, i) =>
    String.fromCharCode(97 + ((i * 7 + (i >> 4)) % 26)),
  ).join('')
  const channel = channelOf({ keys: [long] })
  for (const encode of Object.values(ENCODINGS))
    expect(redact(`<${encode(Buffer.from(long))}>`, channel)).toMatch(/^<(?:.{0,2}\[redacted\].{0,2})+>$/)
})

test('a quoted Google service account is removed from an error text by the lines of its private key', () => {
  const line = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj'
  const key = JSON.stringify({
    private_key: `-----BEGIN PRIVATE KEY-----\n${line}\n-----END PRIVATE KEY-----\n`,
  })
  const channel = channelOf({ keys: [key] })
  for (const encode of Object.values(ENCODINGS))
    expect(redact(encode(Buffer.from(line)), channel)).toBe('[redacted]')
})

test('a key that contains what looks like an entity is removed from an error text', () => {
  const channel = channelOf({ keys: ['key&lt;with&#65;entities'] })
  expect(redact('no key&lt;with&#65;entities here', channel)).toBe('no [redacted] here')
})

test('a text that looks like a key is removed from an error text, with invisible characters between', () => {
  expect(redact('no s\u200bk-abc\u2060defgh, 1 &lt; 2', CHANNEL)).toBe('no [redacted], 1 &lt; 2')
})

test('entities and invisible characters of an error text without secrets are forwarded unchanged', () => {
  const text = 'a &lt; b &amp;&amp; c\u200b\u00a0&nbsp;&shy &#x110000; &unknown; &#8203; k&#101;y'
  expect(redact(text, CHANNEL)).toBe(text)
})

test("an upstream's error text without secrets is forwarded unchanged", () => {
  const text = 'Basic authentication failed: 6f6464 b2Rk odd key of the channel, 100% + more'
  expect(redact(text, CHANNEL)).toBe(text)
})

const QUOTED = channelOf({ keys: ['very"secret\\key'], base_url: 'http://inner.test:8080/v1' })
const redacted = (text: string): string => redactFrame(Buffer.from(text), QUOTED).toString()

test('a stream event without secrets is forwarded as the same bytes', () => {
  const bytes = Buffer.from(
    'event: error\ndata: { "error":{"message":"n\\u006f", "x":9007199254740993} }\n\n',
  )
  expect(redactFrame(bytes, QUOTED)).toBe(bytes)
})

test("only JSON strings that contain upstream keys or the upstream's address are changed, however they are escaped", () => {
  expect(
    redacted(
      'data: {"a":1.0,"m":"key very\\"secret\\\\key at http:\\/\\/inner.test:8080\\/v1, \\"so\\"","u":"\\u00e9"}\n\n',
    ),
  ).toBe('data: {"a":1.0,"m":"key [redacted] at [upstream], \\"so\\"","u":"\\u00e9"}\n\n')
})

test("text that looks like a key is removed from an upstream's error, and the text around it stays valid JSON", () => {
  const text = redacted('data: {"m":"Bearer abc\\"def","n":"sk-abcdefgh\\n"}\n\n')
  expect(JSON.parse(text.slice(6))).toEqual({ m: '[redacted]"def', n: '[redacted]\n' })
})

test("an upstream's stream event that is not JSON is redacted as plain text", () => {
  expect(redacted('data: failed at inner.test, "odd\n\n')).toBe('data: failed at [upstream], "odd\n\n')
})

test.each([
  ['behind a hyphen', 'token-eyJhbGci.eyJzdWIi.c2ln is unknown', 'token-[redacted] is unknown'],
  ['behind the beginning of one', 'eyJ-eyJhbGci.eyJzdWIi.c2ln', '[redacted]'],
  ['behind another', 'eyJhbGci.eyJzdWIi.c2ln,eyJhbGci.eyJzdWIi.c2ln', '[redacted],[redacted]'],
  ['as a later part of a name', 'jwt.eyJhbGci.eyJzdWIi.c2ln', 'jwt.[redacted]'],
  ['without its signature', 'eyJhbGci.eyJzdWIi', 'eyJhbGci.eyJzdWIi'],
])("a JSON Web Token is removed from an upstream's error wherever it begins: %s", (_, text, expected) => {
  expect(redact(text, CHANNEL)).toBe(expected)
})

test.each([
  'eyJ-',
  'eyJ',
  'eyJa.',
  'eyJ.',
  'sk-',
  'sk-a ',
  'Bearer ',
  'ya29.',
  'arn:aws',
  '\\"',
  '"',
  '"\\',
  '&',
  '&amp;',
  '&#',
  '&#115;',
  '&zwj;',
  '&a',
  's\u200b',
  '\u200b',
  '\u3000',
])(
  "redaction of an upstream's error takes time in proportion to its bytes, however often it contains %j",
  async (piece) => {
    expect(await growthOf(3_000, (count) => piece.repeat(count), redacted)).toBeLessThan(LINEAR_GROWTH)
  },
)
