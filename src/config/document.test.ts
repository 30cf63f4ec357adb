import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  stringify,
  type ToStringOptions,
} from 'yaml'
import { anyCharacter } from '../../test/generators/characters.ts'
import type { Path } from './diagnostics.ts'
import { parseYamlDocument } from './document.ts'
import { type YamlNode, YamlScalar } from './yaml-node.ts'

/** A document as another library reads it: its tree, and the line of each path. */
interface Reading {
  readonly tree: unknown
  readonly lines: ReadonlyMap<string, number>
}

function byOtherLibrary(text: string): Reading | undefined {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, uniqueKeys: false, prettyErrors: false })
  if (document.errors.length > 0 || document.warnings.length > 0) return undefined
  const lines = new Map<string, number>()
  const lineAt = (node: unknown, around: number): number => {
    const range = (node as Node | null)?.range
    return range ? counter.linePos(range[0]).line : around
  }
  const convert = (node: unknown, path: Path, line: number): unknown => {
    lines.set(JSON.stringify(path), line)
    if (isMap(node)) {
      const entries = node.items.map(({ key, value }) => {
        const name = isScalar(key) ? String(key.source ?? key.value) : ''
        return [name, convert(value, [...path, name], lineAt(key, line))] as const
      })
      return Object.fromEntries(entries)
    }
    if (isSeq(node))
      return node.items.map((item, index) => convert(item, [...path, index], lineAt(item, line)))
    if (!isScalar(node) || node.value === null) return null
    return [node.value, typeof node.value === 'string' ? node.value : node.source]
  }
  return { tree: convert(document.contents, [], lineAt(document.contents, 1)), lines }
}

/** The same of this parser; undefined where it refuses the text. */
function byThisParser(text: string, paths: Iterable<string>): Reading | undefined {
  const { tree, lineOf, diagnostics } = parseYamlDocument(text, () => undefined)
  if (diagnostics.length > 0) return undefined
  const lines = new Map([...paths].map((path) => [path, lineOf(JSON.parse(path) as Path)]))
  return { tree: plain(tree), lines }
}

function plain(tree: YamlNode): unknown {
  if (tree === undefined) return null
  if (tree instanceof YamlScalar) return [tree.value, tree.source]
  if (Array.isArray(tree)) return tree.map(plain)
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, plain(value)]))
}

function expectSameReading(text: string): void {
  const other = byOtherLibrary(text)
  expect(other, text).toBeDefined()
  expect(byThisParser(text, other?.lines.keys() ?? []), text).toEqual(other)
}

/** Cases are the same each time: the other library has faults of its own, in texts that are rare. */
const SEED = 20_261_123

/** Texts that other schemas read as something else than text, or that this one does. */
const SCALARS = [
  '1 -1 +1 0 -0 007 0777 1_000 0o17 0o8 -0o7 0x1F 0xG +0x1 0b1 .5 5. +.5 1.5 1e3 1.5e+3 1e -1E-2',
  '12345678901234567890 0.1234567890123456789 .inf -.INF +.Inf .nan .NaN NaN Infinity 1:30 190:20:30 1. . +',
  '~ null Null NULL nUll true True TRUE tRue false yes No on off y 2024-01-01 2024-01-01T00:00:00Z = << a#b',
  String.raw`"1" '1' 'it''s' "\u00e9\n"`,
]
  .flatMap((line) => line.split(' '))
  .concat('a b')

describe('a YAML document', () => {
  test.each(SCALARS)('means by %s what others mean by it', (text) => {
    for (const place of [text, `a: ${text}`, `- ${text}`, `[${text}]`, `a: ${text} # with a comment`])
      expectSameReading(place)
  })

  test.each([
    '- a\n-\n-\n- b:\n-\n',
    'a:\n  -\n  - b:\n      c:\n  -\nd:\n',
    '- - -\n  -\n- []\n-\n- {}\n-\n',
    '# first\n\na: |\n  text\n\n  more\nb: >-\n  folded\n  text\n# last\nc: "two\n  lines"\nd: end\n',
    '"a b": 1\n\'c\': 2\n1.0: 3\ntrue: 4\n~: 5\n',
    '\ufeffa: 1\r\nb:\r\n  - 2\r\n  -\r\n',
    '---\na: 1\n...\n',
    '%YAML 1.2\n---\na: !!str 1\nb: !!int "2"\nc: ! 3\nd: !!map {a: 1}\ne: !!seq [1]\nf: !<tag:yaml.org,2002:str> 5\n',
    '? a\n: 1\n? b\n',
    '{a: 1, b: [2, 3], "c": {d: }, e}',
    '- {a: 1,\n   b: 2}\n- [1,\n   2]\n',
    'a:\n- 1\n- b: 2\n  c: 3\n',
    '- |\n  t\n-\n- 1\n',
    '- |\n  t\n-\n',
    'users:\n  - |\n    t\n  -\n  - x: 1\n',
    '- k: |\n    t\n-\n- 1\n',
    '? k\n: -\n  - 1\n',
    'a: ! {b: 1}\nc: ! [1]\n! d: 1\n!!str e: 2\n',
  ])('has the same tree and lines as for others: %j', (text) => {
    expectSameReading(text)
  })

  test('with many empty items is read in time that grows with their number', () => {
    const { tree, lineOf } = parseYamlDocument(`a:\n${'-\n'.repeat(100_000)}`, () => undefined)
    expect(tree).toHaveProperty('a.length', 100_000)
    expect(lineOf(['a', 99_999])).toBe(100_001)
  })

  test('is read as others read it, however it is written', () => {
    const text = fc.string({ unit: anyCharacter, maxLength: 12 }).map((some) => some.replaceAll('$', ''))
    const word = fc.constantFrom(...SCALARS)
    const scalar = fc.oneof(text, word, fc.double(), fc.integer(), fc.boolean(), fc.constant(null))
    const key = fc.oneof(text, word).filter((name) => name !== '' && name !== '__proto__')
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        scalar,
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
      ),
    }))
    const style = fc.record<ToStringOptions>({
      defaultStringType: fc.constantFrom(
        'PLAIN',
        'QUOTE_DOUBLE',
        'QUOTE_SINGLE',
        'BLOCK_LITERAL',
        'BLOCK_FOLDED',
      ),
      defaultKeyType: fc.constantFrom('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE'),
      collectionStyle: fc.constantFrom('any', 'block', 'flow'),
      indent: fc.integer({ min: 2, max: 5 }),
      indentSeq: fc.boolean(),
      lineWidth: fc.constantFrom(0, 20, 80),
    })
    fc.assert(
      fc.property(tree, style, (value, options) => {
        const text = stringify(value, options)
        // Some combinations of options are written so that not even their writer reads them.
        fc.pre(byOtherLibrary(text) !== undefined)
        expectSameReading(text)
      }),
      { numRuns: 400, seed: SEED },
    )
  })

  test('that is damaged is refused, or means what it means to others', () => {
    const base =
      'options:\n  a: [1, {b: "c"}]\n  d: |\n    text\nusers:\n  - &u\n    name: x # who\n    q: 1.5\n  -\n'
    // Neither tabs nor comments: behind an anchor, the other library misreads the text after them.
    const piece = fc.constantFrom(
      '\n',
      ' ',
      '- ',
      ': ',
      '[',
      ']',
      '{',
      '}',
      '"',
      "'",

      ',',
      '|',
      '>',
      '? ',
      '\t',
      'x',
    )
    const damage = fc.array(fc.tuple(fc.nat(base.length), fc.nat(3), piece), { minLength: 1, maxLength: 3 })
    let both = 0
    fc.assert(
      fc.property(damage, (edits) => {
        const text = edits.reduce((now, [at, cut, put]) => now.slice(0, at) + put + now.slice(at + cut), base)
        const other = byOtherLibrary(text)
        const own = byThisParser(text, other?.lines.keys() ?? [])
        if (!other || !own) return
        both++
        expect(own, text).toEqual(other)
      }),
      { numRuns: 1_000, seed: SEED },
    )
    expect(both).toBeGreaterThan(100)
  })
})
