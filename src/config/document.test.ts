import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../test/runner/tier.ts'
import { parseYamlDocument, substituteVariables } from './document.ts'
import { type YamlNode, YamlScalar } from './yaml-node.ts'

const parse = (text: string): ReturnType<typeof parseYamlDocument> => parseYamlDocument(text, () => undefined)

/** A tree as JSON. */
function plain(tree: YamlNode): unknown {
  if (tree === undefined) return null
  if (tree instanceof YamlScalar) return tree.value
  if (Array.isArray(tree)) return tree.map(plain)
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, plain(value)]))
}

describe('a YAML document', () => {
  test.each([
    ['12', 12],
    ['-1', -1],
    ['+1', 1],
    ['007', 7],
    ['0o17', 15],
    ['0x1F', 31],
    ['1_000', '1_000'],
    ['0b1', '0b1'],
    ['.5', 0.5],
    ['1.5e+3', 1500],
    ['.inf', Number.POSITIVE_INFINITY],
    ['~', null],
    ['null', null],
    ['', null],
    ['true', true],
    ['False', false],
    ['yes', 'yes'],
    ['on', 'on'],
    ['1:30', '1:30'],
    ['2024-01-01', '2024-01-01'],
    ['"1"', '1'],
    ["'it''s'", "it's"],
    [String.raw`"\u00e9\n"`, 'é\n'],
    ['a b # comment', 'a b'],
    ['!!str 1', '1'],
    ['! 1', '1'],
    ['!!int "2"', 2],
    ['!<tag:yaml.org,2002:str> 5', '5'],
  ])('a YAML document has the scalars of the core schema: %s', (text, expected) => {
    const { tree, diagnostics } = parse(`a: ${text}`)
    expect(diagnostics).toEqual([])
    expect(plain(tree)).toEqual({ a: expected })
  })

  test('every key of a YAML document is read as a string, also 1.0 and true, and << is not treated as a merge key', () => {
    const { tree } = parse('1.0: a\ntrue: b\n~: c\n"a b": d\n? e\n: f\n<<: { g: h }\n')
    expect(plain(tree)).toEqual({ '1.0': 'a', true: 'b', '~': 'c', 'a b': 'd', e: 'f', '<<': { g: 'h' } })
  })

  test('a number in a YAML document keeps all its digits, even if a double cannot represent it', () => {
    expect(parse('12345678901234567890').tree).toMatchObject({ source: '12345678901234567890' })
  })

  test.each([
    ['- a\n-\n-\n- b:\n-\n', [1], 2],
    ['- a\n-\n-\n- b:\n-\n', [4], 5],
    ['a:\n  -\n  - b:\n      c:\n  -\nd:\n', ['a', 1, 'b', 'c'], 4],
    ['a: |\n  text\n\n  more\nb: >-\n  folded\nc: "two\n  lines"\nd: end\n', ['d'], 9],
    ['# first\n\n- |\n  t\n-\n- 1\n', [2], 6],
    ['\uFEFFa: 1\r\nb:\r\n  - 2\r\n  -\r\n', ['b', 1], 4],
    ['- {a: 1,\n   b: 2}\n- [1,\n   2]\n', [0, 'b'], 2],
    ['- {a: 1,\n   b: 2}\n- [1,\n   2]\n', [1, 1], 4],
    ['%YAML 1.2\n---\na: 1\n...\n', ['a'], 3],
  ])('a YAML document %j records the right line for the value at the path %j', (text, path, line) => {
    const { diagnostics, lineOf } = parse(text)
    expect(diagnostics).toEqual([])
    expect(lineOf(path)).toBe(line)
  })

  test('a YAML document with many empty items is read in linear time', () => {
    const { tree, lineOf } = parse(`a:\n${'-\n'.repeat(100_000)}`)
    expect(tree).toHaveProperty('a.length', 100_000)
    expect(lineOf(['a', 99_999])).toBe(100_001)
  })

  test.each([
    ['lists', '['],
    ['closed lists', '[', ']'],
    ['mappings', '{a: ', '}'],
    ['dashes', '- '],
    ['keys', '? '],
    ['keys of lists', '[? '],
  ])('a YAML document of 20,000 levels of %s is refused', (_, open, close = '') => {
    const { diagnostics } = parse(`a: 1\nb:\n  ${open.repeat(20_000)}${close.repeat(20_000)}`)
    expect(diagnostics).toEqual([{ line: 3, path: '', message: 'expected at most 32 levels' }])
  })

  test.each([
    [33, []],
    [34, [{ line: 1, path: '', message: 'expected at most 32 levels' }]],
  ])('a YAML document has values of at most 32 levels: %i lists', (lists, expected) => {
    expect(parse('['.repeat(lists) + ']'.repeat(lists)).diagnostics).toEqual(expected)
  })

  test('a YAML document may be written as JSON of any layout', () => {
    const value = fc
      .jsonValue({ maxDepth: 4 })
      .map((some) => JSON.parse(JSON.stringify(some).replaceAll('$', '')))
    fc.assert(
      fc.property(value, fc.nat(4), (json, indent) => {
        fc.pre(!/"(?:__proto__)?":/.test(JSON.stringify(json)))
        expect(plain(parse(JSON.stringify(json, undefined, indent)).tree)).toEqual(json)
      }),
      { numRuns: lawRuns(1_000) },
    )
  })

  test('every error in a damaged YAML document names a line that the document has', () => {
    const base =
      'options:\n  a: [1, {b: "c"}]\n  d: |\n    text\nusers:\n  - &u\n    name: x # who\n    q: *u\n  -\n'
    const piece = fc.constantFrom(
      ...'[ ] { } " \' , | > ! & * % @ ` x # \t \n'.split(' '),
      '- ',
      ': ',
      '? ',
      '---\n',
      '${',
    )
    const damage = fc.array(fc.tuple(fc.nat(base.length), fc.nat(3), piece), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(damage, (edits) => {
        const text = edits.reduce((now, [at, cut, put]) => now.slice(0, at) + put + now.slice(at + cut), base)
        for (const { line, message } of parse(text).diagnostics) {
          expect(line).toBeGreaterThanOrEqual(1)
          expect(line).toBeLessThanOrEqual(text.split('\n').length)
          expect(message).toMatch(/^expected /)
        }
      }),
      { numRuns: lawRuns(1_000) },
    )
  })
})

const lookup = (name: string): string | undefined =>
  new Map([
    ['A', '1'],
    ['B_2', '${A}'],
    ['EMPTY', ''],
  ]).get(name)

describe('variables in texts', () => {
  test.each([
    ['${A}', '1'],
    ['x${A}y${A}z', 'x1y1z'],
    ['$${A}', '${A}'],
    ['${A:-otherwise}', '1'],
    ['${UNSET:-other:-wise}', 'other:-wise'],
    ['${EMPTY:-otherwise}', 'otherwise'],
    ['x${UNSET:-}y', 'xy'],
    ['$${A}${A}', '${A}1'],
    ['$A and $$ and {A} and $ {A}', '$A and $$ and {A} and $ {A}'],
  ])('the text %s becomes %s', (text, expected) => {
    expect(substituteVariables(text, lookup)).toEqual({ text: expected })
  })

  test('${NAME} inside the value of a variable is not substituted again', () => {
    expect(substituteVariables('${B_2}', lookup)).toEqual({ text: '${A}' })
  })

  test('the substitution of variables leaves a text without ${ unchanged', () => {
    const without = fc
      .string({ unit: fc.constantFrom('$', '{', '}', 'A', '\\', '\n', 'é', '😀') })
      .filter((text) => !text.includes('${'))
    fc.assert(
      fc.property(without, (text) => {
        expect(substituteVariables(text, lookup)).toEqual({ text })
      }),
    )
  })

  test('$${ in gateway.yaml is read as a literal ${, whatever text follows', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('{', '}', 'A', 'x') }), (text) => {
        const result = substituteVariables(`$\${${text}`, () => undefined)
        expect(result).toEqual({ text: `\${${text}` })
      }),
    )
  })
})
