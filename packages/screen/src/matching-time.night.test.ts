import { readFileSync } from 'node:fs'
import process from 'node:process'
import { expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { compileRule, PII_KINDS, RuleError, type RuleMatch } from './rule.ts'
import { TextScreen } from './screen.ts'

/** `docs/matching.md: Time`: how much longer a text may take than plain text with the built-in rules. */
const MAX_RATIO = 20
/** How often a text that costs more is measured again, by turns with plain text. */
const TURNS = 5
const LENGTH = 12_000
const PIECE = 16
const EXPRESSIONS = lawRuns(40)

let seed = 172
/** A number from 0 to `end` (exclusive). */
function draw(end: number): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((seed / 2 ** 32) * end)
}
const oneOf = <Value>(values: readonly Value[]): Value => values[draw(values.length)] as Value
const random = (letters: string, length: number): string =>
  Array.from({ length }, () => letters[draw(letters.length)]).join('')

const CLASSES = [
  '[ab]',
  '[a-c]',
  '[^a]',
  String.raw`\w`,
  String.raw`[\w.-]`,
  '[bc]',
  '.',
  String.raw`\S`,
  'a',
  'b',
]

function quantifier(): string {
  const [least, more] = [oneOf([0, 1, 2, 20]), oneOf([1, 5, 60])]
  return oneOf([
    '*',
    '+',
    '?',
    '*?',
    '+?',
    `{${least},${least + more}}`,
    `{${least},${least + more}}?`,
    `{${least + 1}}`,
  ])
}

/** An expression in which classes overlap, repetitions are counted, and alternatives stand under stars. */
function expression(depth: number): string {
  const inner = (): string => expression(depth - 1)
  if (depth === 0) return oneOf(CLASSES) + oneOf(['', quantifier()])
  return oneOf([
    () => inner() + inner(),
    () => inner() + inner(),
    () => `(?:${inner()}|${inner()})${quantifier()}`,
    () => `(?:${inner()}|${inner()}|${inner()})*`,
    () => `(?:${inner()}${oneOf(CLASSES)})${quantifier()}`,
    () => inner() + oneOf(['x', '', String.raw`\.internal`]),
  ])()
}

/** Expressions on which matchers are slow in different ways. */
const HOSTILE = [
  String.raw`[\w.-]+\.[\w.-]{2,60}\.internal`,
  '(?:a|b)*a(?:a|b){14}c',
  '[ab]*a[ab]{100}c',
  'a(?:[ab]{0,90}a[ab]{0,90}c)?',
  '(?:[ab]{0,180}c)?a',
  '(?:[ab]{1,180}c|[ab])+',
  '(?:x[^y]{0,180}y|a)',
  '(?:(?:a|b)?(?:a|b)?){40}x',
  '(?:a*b*)*(?:a?b?c?)*x(?:a*b*c*)*y',
  String.raw`(?:\b[ab.]{1,50}\b[.ab]{1,50})+x`,
  '(?:a{30}|a{29}|a{28}|a{27}|a{26}|a)+c',
  '[ab]{0,190}c',
]
const TEXTS = [
  'a'.repeat(LENGTH),
  random('ab.', LENGTH),
  random('aaaaaaaab', LENGTH),
  random('abc', LENGTH),
  `${random('ab', 130)}.`.repeat(LENGTH / 131),
]

/** Microseconds of CPU time for 1,000 characters; the quickest of several runs. */
function cost(text: string, work: () => unknown, runs: number): number {
  let quickest = Infinity
  for (let run = 0; run < runs; run++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    quickest = Math.min(quickest, user + system)
  }
  return (quickest / text.length) * 1000
}

function screenOf(...matches: readonly RuleMatch[]): TextScreen {
  return new TextScreen(matches.map((match, at) => ({ rule: compileRule(`r${at}`, match), do: 'redact' })))
}

function streamed(screen: TextScreen, text: string): string {
  const stream = screen.stream()
  let passed = ''
  for (let at = 0; at < text.length; at += PIECE) passed += stream.push(text.slice(at, at + PIECE))
  return passed + stream.end()
}

/** A screen for an expression, or undefined if it is refused. */
function accepted(regex: string, most: number): TextScreen | undefined {
  try {
    return screenOf({ regex, most })
  } catch (error) {
    if (error instanceof RuleError) return undefined
    throw error
  }
}

const BUILT_IN = screenOf({ secrets: true }, { pii: PII_KINDS })

type Way = 'whole' | 'streamed'

function screeningCost(screen: TextScreen, text: string, way: Way, runs: number): number {
  return cost(text, () => (way === 'whole' ? screen.apply(text) : streamed(screen, text)), runs)
}

/** The cost of plain text with the built-in rules. */
const plainCost = (way: Way): number => screeningCost(BUILT_IN, plain, way, 5)

const plainCosts = (): Readonly<Record<Way, number>> => ({
  whole: plainCost('whole'),
  streamed: plainCost('streamed'),
})

/** The ways in which a text costs more than the limit, with the ratio to plain text, whose costs are given. */
function waysAbove(costs: Readonly<Record<Way, number>>, screen: TextScreen, text: string): string[] {
  return (['whole', 'streamed'] as const).flatMap((way) => {
    let ratio = screeningCost(screen, text, way, 1) / costs[way]
    // The machine may have become slower since plain text was measured.
    for (let turn = 0; turn < TURNS && ratio > MAX_RATIO; turn++)
      ratio = Math.min(ratio, screeningCost(screen, text, way, 2) / plainCost(way))
    return ratio > MAX_RATIO ? [`${way} on ${text.slice(0, 30)}: ${ratio.toFixed(1)}`] : []
  })
}
const plain = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8').slice(0, 30_000)

test('any expression takes on any text at most 20 times what plain text takes with the built-in rules', () => {
  const screens: [string, TextScreen][] = []
  for (const regex of HOSTILE) screens.push([regex, screenOf({ regex })])
  while (screens.length < HOSTILE.length + EXPRESSIONS) {
    const regex = expression(2)
    const screen = accepted(regex, oneOf([64, 256, 256, 1024, 4096]))
    if (screen) screens.push([regex, screen])
  }
  const costs = plainCosts()
  const tooSlow: string[] = []
  for (const [regex, screen] of screens) {
    for (const text of TEXTS) {
      tooSlow.push(...waysAbove(costs, screen, text).map((way) => `${regex} ${way}`))
    }
  }
  expect(tooSlow).toEqual([])
})

/** Lists of words and the texts on which a search is slow that begins anew at each place. */
function wordFamilies(): readonly { name: string; words: readonly string[]; text: string }[] {
  const letters = Array.from({ length: 3000 }, (_, at) => String.fromCodePoint(0x4e00 + at)).join('')
  const ofText = random(letters, LENGTH)
  const ofTwo = random('\u4e00\u4e01', LENGTH)
  const numbered = <Value>(length: number, value: (at: number) => Value): Value[] =>
    Array.from({ length }, (_, at) => value(at))
  const overlapping = (text: string, count: number): string[] =>
    numbered(count, (at) => `${text.slice(at * 5, at * 5 + 190)}\u9fa5`)
  return [
    { name: 'many characters', words: numbered(10_000, () => random(letters, 3)), text: ofText },
    { name: '2,400 that overlap', words: overlapping(ofText, 2362), text: ofText },
    { name: '200 that overlap', words: overlapping(ofText, 200), text: ofText.slice(0, 1190).repeat(10) },
    { name: '2,400 of two characters', words: overlapping(ofTwo, 2362), text: ofTwo },
    { name: 'one long word', words: ['\u4e00'.repeat(200)], text: '\u4e00'.repeat(LENGTH) },
    {
      name: 'each begins the next',
      words: [...numbered(199, (at) => '\u4e00'.repeat(at + 1)), `${'\u4e00'.repeat(199)}\u4e01`],
      text: '\u4e00'.repeat(LENGTH),
    },
    {
      name: 'each ends the next',
      words: numbered(199, (at) => `\u4e01${'\u4e00'.repeat(at)}\u4e02`),
      text: `\u4e01${'\u4e00'.repeat(198)}\u4e02`.repeat(LENGTH / 200),
    },
    {
      name: 'borders that are not there',
      words: numbered(100, (at) => `a${'\u4e00a'.repeat(at)}\u4e00`),
      text: 'a\u4e00'.repeat(LENGTH / 2),
    },
    {
      name: 'marks of no letter',
      words: ['\u0301a'],
      text: '\u0301'.repeat(LENGTH),
    },
    {
      name: 'letters and marks',
      words: numbered(100, (at) => 'a-'.repeat(at + 1)),
      text: 'a-'.repeat(LENGTH / 2),
    },
  ]
}

test('any list of words takes on any text at most 20 times what the built-in rules take on plain text', () => {
  const costs = plainCosts()
  const tooSlow: string[] = []
  for (const { name, words, text } of wordFamilies()) {
    tooSlow.push(...waysAbove(costs, screenOf({ words }), text).map((way) => `${name} ${way}`))
  }
  expect(tooSlow).toEqual([])
})

test('the built-in rules take on any text at most 20 times what they take on plain text', () => {
  const costs = plainCosts()
  const hostile = [
    random('a.@-', LENGTH),
    random('0123456789 -.', LENGTH),
    random('0123456789abcdef:', LENGTH),
    random('N-_.a', LENGTH),
    'token=token='.repeat(LENGTH / 12),
    ' token=a1b2c3d4e5f6g7h8i9j0'.repeat(LENGTH / 27),
    'DE12 '.repeat(LENGTH / 5),
    '1:2:3:4:5:6:7:8 '.repeat(LENGTH / 16),
    '4242 4242 '.repeat(LENGTH / 10),
    '-----BEGIN PRIVATE KEY-----'.repeat(LENGTH / 27),
    `${'a.'.repeat(32)}@`.repeat(LENGTH / 65),
  ]
  expect(hostile.flatMap((text) => waysAbove(costs, BUILT_IN, text))).toEqual([])
})

test('no text without escapes costs the built-in rules so much that its rest counts as a match', () => {
  const parts = [
    'token=',
    'secret',
    '=',
    '-',
    '.',
    '/',
    '_',
    '0',
    'a',
    ' ',
    'DE12',
    '4242',
    '01',
    '::',
    '@',
    '+1',
    'eyJ',
  ]
  const screens = [BUILT_IN, screenOf({ secrets: true }), screenOf({ pii: PII_KINDS })]
  const units = Array.from({ length: lawRuns(300) }, () =>
    Array.from({ length: 1 + draw(4) }, () => oneOf(parts)).join(''),
  )
  for (const unit of ['token=', 'token=-token=-', 'api_key=a.b/c/token=x.y/z/', '01 ab', ...units]) {
    const text = unit.repeat(1500 / unit.length)
    // What a text may cost grows with its pieces.
    for (const screen of screens) expect(streamed(screen, text), unit).toBe(screen.apply(text).text)
  }
})

/** What stands for a line break or a letter at the first level of escapes, at the last, and at each of them. */
const ESCAPES = [
  String.raw`\n`,
  String.raw`\u0061`,
  `${'\\'.repeat(255)}n\n`,
  `${'\\'.repeat(255)}u0061`,
  `\\${'u005c'.repeat(7)}n`,
  `\\${'u005c'.repeat(7)}u0061`,
]

/** The text with an escape at its start alone, or again after each so many characters; or in JSON in JSON. */
function escapedText(text: string): string {
  const escape = oneOf(ESCAPES)
  const length = oneOf([20, 80, 100, 256, 300, 700])
  return oneOf([
    () => escape + text,
    () => text.replaceAll(new RegExp(`[^]{${length}}`, 'g'), (part) => part + escape),
    () => JSON.stringify({ content: `\n${text}` }),
    () => JSON.stringify({ content: JSON.stringify([`"${text}"`, 1]) }),
  ])()
}

test('escapes at all levels change nothing: a text still takes at most 20 times what plain text takes', () => {
  const costs = plainCosts()
  const regexes = [...HOSTILE, '(?:[^x]{0,180}x)?a', 'a', '[ab]']
  const cases = [
    ...regexes.map((regex) => [regex, screenOf({ regex }), random('ab', LENGTH)] as const),
    ['secrets and pii', BUILT_IN, plain.slice(0, LENGTH)] as const,
    ...['token=token=', 'DE12 ', '4242 4242 '].map(
      (unit) => ['secrets and pii', BUILT_IN, unit.repeat(LENGTH / unit.length)] as const,
    ),
    ['words', screenOf({ words: ['a'] }), 'a '.repeat(LENGTH / 2)] as const,
  ]
  const tooSlow: string[] = []
  for (const [name, screen, plainText] of cases) {
    for (const text of Array.from({ length: lawRuns(3) }, () => escapedText(plainText))) {
      tooSlow.push(...waysAbove(costs, screen, text).map((way) => `${name} ${way}`))
    }
  }
  expect(tooSlow).toEqual([])
})
