import { BOTH, type Case, type MemberText, requestText, shown } from './case.ts'
import { INHERITED } from './values.ts'

const WRONG_NUMBERS = [
  '01',
  '+1',
  '.5',
  '1.',
  '1e',
  '1e+',
  '0x10',
  'NaN',
  'Infinity',
  '-',
  '--1',
  '1_000',
  '1n',
  '٣',
]
const RIGHT_NUMBERS = [
  '1e400',
  '-1e400',
  '-0',
  '0e0',
  '1E+2',
  '1e-400',
  '9007199254740993',
  '18446744073709551616',
  '9'.repeat(400),
  `0.${'1'.repeat(400)}`,
]
const WRONG_VALUES = [
  '',
  'True',
  'TRUE',
  'nul',
  'nulll',
  'undefined',
  "'x'",
  '`x`',
  '"x',
  'x"',
  '[1',
  '1]',
  '[1,]',
  '[,1]',
  '[1 2]',
  '{"a"}',
  '{"a":}',
  '{a:1}',
  '{"a":1,}',
  '{"a" 1}',
  '{1:1}',
  '[1}',
  '{"a":1]',
  '/**/1',
  '1//x',
  '<a/>',
]
const WRONG_ESCAPES = [
  '\\',
  '\\x41',
  '\\u',
  '\\u12',
  '\\u12g4',
  '\\U0041',
  '\\0',
  '\\v',
  "\\'",
  '\\\n',
  '\\u{41}',
]
const OPEN_ESCAPES = [
  '\\ud800',
  '\\udc00',
  '\\udc00\\ud800',
  '\\ud800x',
  '\\ud83d',
  '\\uffff',
  '\\u0000',
  '\\ufeff',
  '\\u202e',
  '\\ud83d\\ude00',
]
const WRONG_BYTES = [
  [0xff],
  [0xfe],
  [0x80],
  [0xbf],
  [0xc0, 0x80],
  [0xc1, 0xbf],
  [0xc3],
  [0xe0, 0x80, 0x80],
  [0xe2, 0x82],
  [0xed, 0xa0, 0x80],
  [0xed, 0xbf, 0xbf],
  [0xf0, 0x80, 0x80, 0x80],
  [0xf0, 0x9f, 0x98],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf5, 0x80, 0x80, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0xc3, 0x28],
  [0xe2, 0x28, 0xa1],
]
const TAILS = [
  '}',
  ']',
  ',',
  'x',
  '\0',
  '{}',
  'null',
  '//',
  '/* */',
  '"',
  '\u00a0',
  '\u2028',
  '\ufeff',
  '\v',
  '\f',
]
const NO_OBJECTS = [
  '',
  ' ',
  '\n',
  '\0',
  'null',
  'true',
  '5',
  '-0',
  '"x"',
  '"\\ud800"',
  '[]',
  '[{}]',
  '[null]',
  '{',
  '}',
  '{}}',
  '[',
  ']',
  ',',
  ':',
  '"',
  'model=m',
  '<xml/>',
  'data: {}',
  '%7B%7D',
  '\ufeff',
  '\ufeff\ufeff{}',
]

/** A minimal request with this as the value of an unknown field. */
const withUnknown = (name: string, value: string, more: Partial<Case> & Pick<Case, 'outcome'>): Case => ({
  name,
  protocols: BOTH,
  body: (model, protocol) => requestText(protocol, model, ['x_unknown', value]),
  ...more,
})

const FORWARDED = { outcome: 'forwarded', verbatim: true } as const
const UNREADABLE = { outcome: 'unreadable' } as const

/** Valid JSON, almost valid JSON, and texts that only some parsers accept. */
export function jsonVariants(): Case[] {
  return [...values(), ...texts(), ...wholes(), ...keys(), ...depths()]
}

function values(): Case[] {
  return [
    ...WRONG_NUMBERS.map((text) => withUnknown(`number ${text}`, text, UNREADABLE)),
    ...RIGHT_NUMBERS.map((text) => withUnknown(`number ${shown(text)}`, text, FORWARDED)),
    ...WRONG_VALUES.map((text) => withUnknown(`value ${shown(text)}`, text, UNREADABLE)),
  ]
}

function texts(): Case[] {
  return [
    ...WRONG_ESCAPES.map((text) => withUnknown(`escape ${text}`, `"${text}"`, UNREADABLE)),
    ...OPEN_ESCAPES.map((text) => withUnknown(`escape ${text}`, `"${text}"`, FORWARDED)),
    ...OPEN_ESCAPES.map(
      (text): Case => ({
        name: `escape ${text} in a prompt`,
        protocols: BOTH,
        outcome: 'forwarded',
        verbatim: true,
        body: (model, protocol) =>
          requestText(protocol, model, ['messages', `[{"role":"user","content":"a${text}b"}]`]),
      }),
    ),
    ...Array.from({ length: 32 }, (_, code) =>
      withUnknown(`control character ${code} in a text`, `"${String.fromCharCode(code)}"`, UNREADABLE),
    ),
    ...WRONG_BYTES.map(
      (bytes): Case => ({
        name: `bytes ${Buffer.from(bytes).toString('hex')} in a text`,
        protocols: BOTH,
        outcome: 'unreadable',
        body: (model, protocol) => {
          const [head = '', tail = ''] = requestText(protocol, model, ['x_unknown', '"◊"']).split('◊')
          return Buffer.concat([Buffer.from(head), Buffer.from(bytes), Buffer.from(tail)])
        },
      }),
    ),
  ]
}

function wholes(): Case[] {
  const whole = (
    name: string,
    outcome: Case['outcome'],
    change: (text: string) => string | Buffer,
  ): Case => ({
    name,
    protocols: BOTH,
    outcome,
    body: (model, protocol) => change(requestText(protocol, model)),
  })
  const around = ['\t', '\n', '\r\n', ' '.repeat(1000)]
  return [
    ...NO_OBJECTS.map((text) => whole(`only ${shown(text)}`, 'unreadable', () => text)),
    ...Array.from({ length: 40 }, (_, i) =>
      whole(`cut after ${i}/40`, 'unreadable', (text) => text.slice(0, Math.floor((text.length * i) / 40))),
    ),
    ...TAILS.map((tail) => whole(`and then ${shown(tail)}`, 'unreadable', (text) => text + tail)),
    ...TAILS.map((head) =>
      whole(`first ${shown(head)}`, head === '\ufeff' ? 'either' : 'unreadable', (text) => head + text),
    ),
    ...around.map((space) => whole(`between ${shown(space)}`, 'forwarded', (text) => space + text + space)),
    whole('in UTF-16', 'unreadable', (text) => Buffer.from(text, 'utf16le')),
    whole('in UTF-16 with its mark', 'unreadable', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')),
    whole('in UTF-16, swapped', 'unreadable', (text) => Buffer.from(text, 'utf16le').swap16()),
    whole('in UTF-32', 'unreadable', (text) =>
      Buffer.concat(Array.from(text, (c) => Buffer.from(`${c}\0\0\0`))),
    ),
    whole('twice', 'unreadable', (text) => text + text),
    whole('in an array', 'unreadable', (text) => `[${text}]`),
    whole('in a text', 'unreadable', (text) => JSON.stringify(text)),
    whole('among 100 KB of white space', 'forwarded', (text) =>
      text.replaceAll(',', `,${' \n'.repeat(50_000)}`),
    ),
  ]
}

function keys(): Case[] {
  const odd = [
    '',
    ' ',
    'ключ',
    '\u202e',
    '😀',
    'a.b',
    'a[0]',
    '$where',
    'x'.repeat(10_000),
    '\\u0000',
    '\\ud800',
  ]
  const twice = (name: MemberText[0]): Case => ({
    name: `${name} twice`,
    protocols: BOTH,
    outcome: 'unreadable',
    body: (model, protocol) => requestText(protocol, model).replace('{', `{"${name}":null,"${name}":null,`),
  })
  return [
    ...[
      'model',
      'messages',
      'stream',
      'max_tokens',
      'tools',
      'x_unknown',
      '__proto__',
      'constructor',
      '',
    ].map(twice),
    ...[...INHERITED, ...odd].map(
      (name): Case => ({
        name: `a key ${shown(name)}`,
        protocols: BOTH,
        outcome: 'forwarded',
        verbatim: true,
        body: (model, protocol) =>
          requestText(protocol, model).replace('{', () => `{"${name}":{"${name}":[1]},`),
      }),
    ),
    withUnknown('a key twice, deep inside', '{"a":1,"a":{"a":1,"a":2}}', FORWARDED),
  ]
}

function depths(): Case[] {
  const [most, more] = [manyKeys(190_000), manyKeys(300_000)]
  const arrays = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  const objects = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  return [
    ...[10, 100, 126].flatMap((depth) => [
      withUnknown(`${depth} arrays deep`, arrays(depth), FORWARDED),
      withUnknown(`${depth} objects deep`, objects(depth), FORWARDED),
    ]),
    ...[129, 1000, 4100, 100_000].flatMap((depth) => [
      withUnknown(`${depth} arrays deep`, arrays(depth), UNREADABLE),
      withUnknown(`${depth} objects deep`, objects(depth), UNREADABLE),
      withUnknown(`${depth} arrays deep and never closed`, '['.repeat(depth), UNREADABLE),
    ]),
    {
      name: '190,000 keys at the top',
      protocols: BOTH,
      outcome: 'unreadable',
      body: (model, protocol) => requestText(protocol, model).replace('{', () => `{${most},`),
    },
    withUnknown('300,000 values', `[${'1,'.repeat(300_000)}1]`, UNREADABLE),
    withUnknown('300,000 keys', `{${more}}`, UNREADABLE),
  ]
}

function manyKeys(count: number): string {
  return Array.from({ length: count }, (_, i) => `"k${i.toString(36)}":1`).join(',')
}
