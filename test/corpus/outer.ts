import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { randomFrom } from '../fixtures/random.ts'
import { BOTH, type Case, requestText, shown } from './case.ts'
import { INHERITED } from './values.ts'

const NAMES = [
  '',
  ' ',
  '\t',
  '\n',
  'M',
  ' m',
  'm ',
  'm\n',
  'm\r\nx: y',
  'm\0',
  '\0',
  '../m',
  '../../etc/passwd',
  '..\\m',
  './m',
  '/',
  '//evil.example',
  '@evil.example',
  'm@evil.example:80',
  'http://evil.example/',
  '%2e%2e%2f',
  '%00',
  '%0d%0a',
  '?x=1',
  '#',
  'm?x',
  'm#x',
  'm;x',
  'm&x=1',
  '*',
  '%',
  '_',
  '$ne',
  '{}',
  '[]',
  '"',
  "'",
  '`',
  '\\',
  "' or 1=1 --",
  '<script>',
  '{{7*7}}',
  '\u202em',
  '\ufeffm',
  'м',
  'ｍ',
  '模型',
  '😀',
  '\ud800',
  '\udc00m',
  'e\u0301',
  'ß',
  'İ',
  '\u200bm',
  'm,m',
  'm|m',
  '-thinking',
  'm-thinking',
  '-',
  '.',
  '..',
  'null',
  'undefined',
  'NaN',
  '0',
  '-1',
  'true',
  'default',
  'x'.repeat(256),
  'x'.repeat(257),
  'x'.repeat(10_000),
  '😀'.repeat(3000),
  '\n'.repeat(500),
  '"'.repeat(200),
  ...INHERITED,
] as const

/** Names that no model has. */
export function modelNames(): Case[] {
  return NAMES.map((name) => ({
    name: `the model ${shown(name)}`,
    protocols: BOTH,
    outcome: 'refused',
    statuses: [400, 503],
    body: (_, protocol) => requestText(protocol, name),
  }))
}

const CODINGS = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
  zstd: zstdCompressSync,
} as const

/** Compressed bodies: whole, cut, damaged and mislabelled. */
export function encodings(): Case[] {
  const random = randomFrom(7)
  return [
    ...Object.entries(CODINGS).flatMap(([coding, compress]) => [
      encoded(coding, 'whole', 'forwarded', (body) => compress(body)),
      ...[0, 1, 5, 10, 20, 40].map((bytes) =>
        encoded(coding, `only its first ${bytes} bytes`, 'unreadable', (body) =>
          compress(body).subarray(0, bytes),
        ),
      ),
      ...[1, 4, 8].map((bytes) =>
        encoded(coding, `without its last ${bytes} bytes`, 'either', (body) =>
          compress(body).subarray(0, -bytes),
        ),
      ),
      ...Array.from({ length: 30 }, () => {
        const [where, bit] = [random(), Math.floor(random() * 8)]
        const turned = (body: Buffer): Buffer => {
          const bytes = compress(body)
          const at = Math.floor(where * bytes.length)
          bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
          return bytes
        }
        // Without a checksum the result may be another model's name.
        return {
          ...encoded(coding, `with a bit turned at ${where.toFixed(3)}`, 'either', turned),
          statuses: [400, 503],
        }
      }),
      encoded(coding, 'twice', 'unreadable', (body) => compress(compress(body))),
      encoded(coding, 'with something behind it', 'either', (body) =>
        Buffer.concat([compress(body), Buffer.from('x')]),
      ),
      encoded(coding, 'that is plain text', 'unreadable', (body) => body),
    ]),
    encoded('deflate', 'without its wrapping', 'unreadable', (body) => deflateRawSync(body)),
    encoded('gzip', 'that is deflate', 'unreadable', (body) => deflateSync(body)),
    encoded('gzip', 'in two members', 'forwarded', (body) =>
      Buffer.concat([gzipSync(body.subarray(0, 9)), gzipSync(body.subarray(9))]),
    ),
    ...['', 'identity', ' IDENTITY '].map((coding) => encoded(coding, 'plain', 'forwarded', (body) => body)),
    ...[
      'compress',
      'gzip, gzip',
      'gzip,identity',
      'identity, gzip',
      'gzip;q=1',
      '*',
      'gzi',
      'bro',
      '__proto__',
      'constructor',
      'x'.repeat(500),
    ].map((coding): Case => ({ ...encoded(coding, 'unknown', 'unreadable', gzipSync), statuses: [415] })),
  ]
}

function encoded(
  coding: string,
  how: string,
  outcome: Case['outcome'],
  wire: (body: Buffer) => Buffer,
): Case {
  return {
    name: `content-encoding ${shown(coding)}, ${how}`,
    protocols: BOTH,
    outcome,
    ...(outcome === 'forwarded' && { verbatim: true }),
    headers: { 'content-encoding': coding },
    body: (model, protocol) => requestText(protocol, model),
    wire,
  }
}

type HeaderCase = readonly [
  name: string,
  value: string,
  outcome: Case['outcome'],
  statuses?: readonly number[],
]

const WRONG_KEY = [401] as const
const HEADERS: readonly HeaderCase[] = [
  ...[
    'application/json',
    'APPLICATION/JSON',
    'application/json;charset=utf-8',
    'application/json; charset=utf-16',
    'application/problem+json',
    ' application/json ',
  ].map((type): HeaderCase => ['content-type', type, 'forwarded']),
  ...[
    'text/plain',
    'text/json',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'application/+json',
    'json',
    '*/*',
    ';',
    'application/json, text/html',
    `application/${'a.'.repeat(5000)}`,
  ].map((type): HeaderCase => ['content-type', type, 'unreadable', [415]]),
  ...[
    '',
    ' ',
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'Basic YW5uOg==',
    'sk-ann',
    'Bearer sk-',
    'Bearer sk-sk-',
    'Bearer -',
    'Bearer sk--ann',
    'Bearer sk-nobody',
    'Bearer __proto__',
    'Bearer constructor',
    "Bearer ' or 1=1 --",
    'Bearer %61nn',
    'Bearer sk-ann,sk-ann',
    'Bearer sk-ann x',
    `Bearer sk-${'a'.repeat(10_000)}`,
    `Bearer ${'sk-'.repeat(4000)}ann2`,
    'Bearer ann\xff',
    'Bearer\tsk-ann',
    'Digest ann',
  ].map((value): HeaderCase => ['authorization', value, 'unreadable', WRONG_KEY]),
  ...[
    'Bearer ann',
    'bearer sk-ann',
    'BEARER   sk-sk-ann',
    'Bearer sk-ann-and-more',
    `Bearer ${'sk-'.repeat(3000)}ann`,
  ].map((value): HeaderCase => ['authorization', value, 'forwarded']),
  ...[
    'vendor-version',
    'anthropic-version',
    'anthropic-beta',
    'accept',
    'accept-encoding',
    'x-request-id',
    'traceparent',
    'x-forwarded-for',
    'forwarded',
    'via',
    'te',
    'origin',
    'cookie',
    'user-agent',
    'prefer',
    'range',
    'if-match',
    'x-http-method-override',
    '__proto__',
    'constructor',
  ].flatMap((name): HeaderCase[] =>
    ['', '\xff\xfe', '*', 'x'.repeat(6000), ','.repeat(2000), '../..', "'; drop table users", '0'].map(
      (value) => [name, value, 'forwarded'],
    ),
  ),
]

/** Unusual headers. */
export function headers(): Case[] {
  return HEADERS.map(([name, value, outcome, statuses]) => ({
    name: `${name}: ${shown(value)}`,
    protocols: BOTH,
    outcome,
    ...(outcome === 'forwarded' && { verbatim: true }),
    ...(statuses && { statuses }),
    headers: { [name]: value },
    body: (model, protocol) => requestText(protocol, model),
  }))
}
