import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../../test/fixtures/pace.ts'
import { anyCharacter } from '../../../../test/generators/characters.ts'
import { WireError } from '../wire-error.ts'
import { type ScanLimits, scanObject } from './json-scan.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

/** Result of JSON.parse for bytes that must be UTF-8 without a byte order mark. */
function parsed(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) }
  } catch {
    return undefined
  }
}

/** The top-level keys as written, duplicates included. */
function keysWritten(text: string): string[] {
  const keys: string[] = []
  const holders: unknown[] = []
  const counted = text.replace(
    /"(?:[^"\\]|\\.)*"(?=\s*:)|"(?:[^"\\]|\\.)*"|[{}[\]]/gs,
    (token, at: number) => {
      if (token === '{' || token === '[') holders.push(token)
      else if (token === '}' || token === ']') holders.pop()
      else if (holders.length === 1 && /^\s*:/.test(text.slice(at + token.length)))
        keys.push(JSON.parse(token) as string)
      return token
    },
  )
  expect(counted).toBe(text)
  return keys
}

function refusal(source: string | Buffer, limits?: ScanLimits): string {
  try {
    scanObject(Buffer.from(source), limits)
  } catch (error) {
    expect(error).toBeInstanceOf(WireError)
    expect((error as WireError).code).toBe('invalid_json')
    return (error as WireError).message
  }
  return 'accepted'
}

/** Checks that the scanner and JSON.parse agree on one text. */
function agrees(bytes: Buffer): void {
  const expected = parsed(bytes)
  const isObject =
    typeof expected?.value === 'object' && expected.value !== null && !Array.isArray(expected.value)
  const keys = isObject ? keysWritten(bytes.toString()) : []
  const legal = isObject && new Set(keys).size === keys.length
  if (!legal) {
    expect(refusal(bytes)).toMatch(/^Invalid JSON/)
    return
  }
  const scan = scanObject(bytes)
  const object = expected?.value as Record<string, unknown>
  expect([...scan.members.keys()]).toEqual(keys)
  for (const key of keys) {
    const span = scan.span(key)
    expect(span).toBeDefined()
    if (!span) continue
    expect(JSON.parse(bytes.subarray(span.start, span.end).toString())).toEqual(object[key])
    expect(JSON.parse(`{${bytes.subarray(span.keyStart, span.end).toString()}}`)).toEqual({
      [key]: object[key],
    })
    expect(scan.value(key)).toEqual(object[key])
    const value = object[key]
    if (Array.isArray(value)) {
      expect(span.count).toBe(value.length)
      expect(scan.elements(span.node).map((node) => scan.parse(node))).toEqual(value)
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        const node = scan.memberOf(span.node, name)
        if (/^[\x20-\x7e]*$/.test(name))
          expect(node === undefined ? undefined : scan.parse(node)).toEqual(inner)
      }
    }
  }
}

const spaces = fc.constantFrom('', ' ', '\n', '\r\n\t', '  ')
/** Generates the JSON text of an object, with white space and escapes that JSON.stringify would not write. */
const objectText = fc
  .tuple(
    fc.dictionary(fc.string({ unit: anyCharacter, maxLength: 8 }), fc.jsonValue({ maxDepth: 4 })),
    spaces,
    fc.nat(3),
  )
  .map(([object, space, indent]) => {
    const escaped = JSON.stringify(object, null, indent).replace(/[a-e]/g, (c, at: number) =>
      at % 5 === 0 ? `\\u00${c.charCodeAt(0).toString(16)}` : c,
    )
    return space + (parsed(Buffer.from(escaped)) ? escaped : JSON.stringify(object)) + space
  })

describe('bodies that JSON.parse accepts', () => {
  test('the JSON scanner accepts generated objects exactly where JSON.parse accepts them', () => {
    fc.assert(
      fc.property(objectText, (text) => agrees(Buffer.from(text))),
      { numRuns: lawRuns(500) },
    )
  })

  test('the JSON scanner accepts generated objects with changed bytes exactly where JSON.parse accepts them', () => {
    const change = fc.record({
      at: fc.nat(),
      cut: fc.nat(2),
      add: fc.constantFrom(
        ',',
        '"',
        '\\',
        '{',
        '}',
        '[',
        ']',
        ':',
        '0',
        '-',
        '.',
        'e',
        '+',
        '\n',
        '\0',
        '\t',
        'null',
        'tru',
        '/',
        '//',
        '\\u12',
        '\\x',
        '\u00e9',
        ' ',
        '1',
        'NaN',
        "'",
        '\ufeff',
        '',
      ),
    })
    fc.assert(
      fc.property(objectText, fc.array(change, { minLength: 1, maxLength: 3 }), (text, changes) => {
        let bytes = Buffer.from(text)
        for (const { at, cut, add } of changes) {
          const position = at % (bytes.length + 1)
          bytes = Buffer.concat([
            bytes.subarray(0, position),
            Buffer.from(add),
            bytes.subarray(position + cut),
          ])
        }
        agrees(bytes)
      }),
      { numRuns: lawRuns(4000) },
    )
  })

  test('the JSON scanner accepts random bytes and random tokens exactly where JSON.parse accepts them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => agrees(Buffer.from(bytes))),
      { numRuns: lawRuns(1000) },
    )
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"a"',
      '"b"',
      '""',
      '"\\u0061"',
      '"\\',
      '1',
      '-',
      '0',
      '1.5',
      '1e5',
      '.',
      'true',
      'null',
      'false',
      ' ',
      '\n',
    )
    fc.assert(
      fc.property(fc.array(token, { maxLength: 14 }), (tokens) => agrees(Buffer.from(`{${tokens.join('')}`))),
      { numRuns: lawRuns(4000) },
    )
  })

  test.each([
    '',
    ' ',
    '{',
    '{}',
    '{ }',
    ' {} ',
    '{}x',
    '{},',
    '{}{}',
    '\ufeff{}',
    '[]',
    '"a"',
    '1',
    'null',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,}',
    '{a:1}',
    "{'a':1}",
    '{"a":01}',
    '{"a":+1}',
    '{"a":-}',
    '{"a":-0}',
    '{"a":1.}',
    '{"a":.5}',
    '{"a":1e}',
    '{"a":1e+}',
    '{"a":1E-2}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":-01}',
    '{"a":0x1}',
    '{"a":1 2}',
    '{"a":"\n"}',
    '{"a":"\\a"}',
    '{"a":"\\u12"}',
    '{"a":"\\ud800"}',
    '{"a":"\u007f"}',
    '{"a":"}',
    '{"a":"\\"}',
    '{"a":[1,]}',
    '{"a":[,1]}',
    '{"a":[1 2]}',
    '{"a":[}',
    '{"a":{]}',
    '{"a":1]',
    '{"a"::1}',
    '{"a":1,,"b":2}',
    '{"a":tru}',
    '{"a":truee}',
    '{"a":nul',
    '{"a":1}//c',
    '{/**/"a":1}',
    '{"a":1}\0',
    '{"a":\u00a01}',
    '{"a":1,"b":[{"c":[]},[[]]]}',
    '{"__proto__":1}',
    '{"a":1e999}',
    '{"a":12345678901234567890}',
  ])('the JSON scanner accepts a body exactly if JSON.parse accepts it: %j', (text) => {
    agrees(Buffer.from(text))
  })

  test('the JSON scanner accepts strings longer than a kilobyte exactly where JSON.parse accepts them', () => {
    const long = 'x'.repeat(3000)
    for (const text of [
      long,
      `${long}\\n${long}`,
      `${long}\\"${long}`,
      `${long}\\\\`,
      `${long}\\`,
      `${long}\n`,
      `${long}\\q`,
      `${long}\\u12g4`,
      `${long}é\\u00e9`,
      `${long}\\\\\\"`,
    ]) {
      agrees(Buffer.from(`{"a":"${text}","b":[1]}`))
      agrees(Buffer.from(`{"a":"${text}`))
    }
  })

  test('the JSON scanner refuses bytes that are not UTF-8', () => {
    for (const bad of ['ff', 'c0af', 'eda080', 'f8888080', 'c3']) {
      expect(
        refusal(Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bad, 'hex'), Buffer.from('"}')])),
      ).toMatch(/not valid UTF-8/)
    }
  })
})

describe('what JSON.parse would hide', () => {
  test('the JSON scanner refuses a top-level key that occurs twice, in any spelling', () => {
    expect(refusal('{"model":"a","model":"b"}')).toBe(
      'Invalid JSON at byte 13: the top-level key "model" is given twice.',
    )
    expect(refusal('{"model":"a","mod\\u0065l":"b"}')).toMatch(/given twice/)
    expect(refusal('{"__proto__":"a","__proto__":"b"}')).toMatch(/given twice/)
    expect(refusal('{"é":1,"\\u00e9":1}')).toMatch(/given twice/)
  })

  test('the JSON scanner finds a key that is written with escapes by its name', () => {
    const scan = scanObject(
      Buffer.from('{"mod\\u0065l":"a","x":{"\\u0072ole":1,"role":2,"rol":3,"roles":4}}'),
    )
    expect(scan.value('model')).toBe('a')
    const x = scan.span('x')
    expect(x && scan.parse(scan.memberOf(x.node, 'role') ?? -1)).toBe(2)
    expect(x && scan.memberOf(x.node, 'ro')).toBeUndefined()
  })

  test('the JSON scanner accepts the same key twice below the top level', () => {
    expect(refusal('{"a":{"b":1,"b":2}}')).toBe('accepted')
  })
})

describe('limits of a JSON body', () => {
  const nested = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`

  test('the JSON scanner accepts 128 levels and refuses 129', () => {
    expect(refusal(nested(128))).toBe('accepted')
    expect(refusal(nested(129))).toMatch(/nested deeper than 128 levels/)
  })

  test('the JSON scanner accepts 200,000 values and refuses one more', () => {
    // The object itself and the array are counted as values too.
    expect(refusal(`{"a":[${Array(199_998).fill('1').join(',')}]}`)).toBe('accepted')
    expect(refusal(`{"a":[${Array(199_999).fill('1').join(',')}]}`)).toMatch(/more than 200000 values/)
  })

  test('the JSON scanner accepts 1,000 keys at the top and refuses one more', () => {
    const keys = (count: number): string => Array.from({ length: count }, (_, i) => `"${i}":1`).join(',')
    expect(refusal(`{${keys(1000)}}`)).toBe('accepted')
    expect(refusal(`{${keys(1001)}}`)).toMatch(/more than 1000 keys at the top/)
    expect(refusal(`{"a":{${keys(1001)}}}`)).toBe('accepted')
  })

  test.each(['[', '{"a":'])(
    'the JSON scanner reports a hundred thousand open brackets as an error in linear time: %s',
    async (open) => {
      const body = (count: number): Buffer => Buffer.from(`{"a":${open.repeat(count)}`)
      const read = (bytes: Buffer): void => expect(refusal(bytes)).toMatch(/nested deeper than/)
      expect(await growthOf(100_000, body, read)).toBeLessThan(LINEAR_GROWTH)
    },
  )
})

test("the JSON scanner's error states its position and what was expected there", () => {
  expect(refusal('{"a":1,}')).toBe('Invalid JSON at byte 7: expected a key in double quotes, found "}".')
  expect(refusal('{"a":[1 2]}')).toBe('Invalid JSON at byte 8: expected "," or "]", found "2".')
  expect(refusal('{"a":"x')).toBe('Invalid JSON at byte 7: expected a closing quote, the body ends there.')
  expect(refusal('')).toBe('Invalid JSON at byte 0: expected an object, the body ends there.')
  expect(refusal('[1]')).toBe('Invalid JSON at byte 0: expected an object, found "[".')
  expect(refusal('{"a":"\u0001"}')).toBe(
    'Invalid JSON at byte 6: expected no control character in a string, found 0x01.',
  )
})
