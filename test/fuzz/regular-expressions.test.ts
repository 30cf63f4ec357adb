import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, Script } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { cpuMs } from '../fixtures/pace.ts'
import { exampleOf, type Literal, literalsIn } from '../repository/regular-expressions.ts'
import { byTier } from '../runner/tier.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** The simulator serves the demonstration and tests alone. */
const SOURCES = globSync('{src,packages/*/src}/**/*.ts', {
  cwd: ROOT,
  exclude: ['packages/simulator/**', '**/*.test.ts'],
})
const LENGTH = byTier(8_000, 20_000)
/**
 * Maximum milliseconds of an expression for a text of this length. A busy machine is given more time, but
 * growth must not be faster than linear.
 */
const LIMIT_MS = 2.5
const HOPELESS_MS = 50
/**
 * The maximum ratio of the times for the whole text and for a quarter of it; linear time has a ratio of 4,
 * quadratic time 16.
 */
const LINEAR = 9

type MakeText = (length: number) => string

/** The CPU time of a run, and whether it was completed. */
interface RunTime {
  readonly ms: number
  readonly isOver: boolean
}

const LITERALS = SOURCES.flatMap((path) =>
  literalsIn(readFileSync(join(ROOT, path), 'utf8')).map((literal) => ({ ...literal, path })),
)

const context = createContext({ texts: [], expression: / / })
const matching = new Script('for (const text of texts) expression.test(text)')
const replacing = new Script("for (const text of texts) text.replace(expression, '')")

/** Sticky expressions whose parser ends where they do not match. Others are tried at each position of a text. */
const ENDS_PARSING = new Set([String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`])

/** CPU time for all texts together; the run is aborted after `timeoutMs`. */
function runMs({ source, flags }: Literal, texts: readonly string[], timeoutMs: number): RunTime {
  const triedFlags = ENDS_PARSING.has(source) ? flags : flags.replace('y', '')
  Object.assign(context, { texts, expression: new RegExp(source, triedFlags) })
  const began = cpuMs()
  let isOver = true
  try {
    ;(flags.includes('g') ? replacing : matching).runInContext(context, { timeout: timeoutMs })
  } catch {
    isOver = false
  }
  return { ms: cpuMs() - began, isOver }
}

/** Milliseconds for one text, the best of three; at most `HOPELESS_MS`. */
function timeOf(literal: Literal, text: string): number {
  let best = HOPELESS_MS
  let timeoutMs = 2 * HOPELESS_MS
  for (let looks = 0; looks < 3 && best > LIMIT_MS; ) {
    const { ms, isOver } = runMs(literal, [text], timeoutMs)
    best = Math.min(best, isOver ? ms : HOPELESS_MS)
    if (!isOver && ms >= HOPELESS_MS) return HOPELESS_MS
    // Aborted while other processes had the CPU, so that it does not count.
    if (isOver) looks += 1
    else timeoutMs *= 2
  }
  return best
}

/** Letters that classes prefer in examples: a separator often ends one attempt and begins the next. */
const PREFERRED_LETTERS = ['a0 ', '-. ']
const ALTERNATIVES = [...Array(byTier(6, 12)).keys()]
const EXAMPLE_LENGTH = byTier(16, 40)

/** What repeated text stands behind. */
type Repeated = readonly [head: string, pump: string]

/** Texts that repeat parts of what the expression matches, and finally fail to match. */
function hostile(literal: Literal): MakeText[] {
  const repeated = new Map(
    [...repeatedWords(literal), ...repeatedExamples(literal)].map((one) => [one.join('\0'), one]),
  )
  return [...repeated.values()].flatMap(([head, pump]) =>
    ['', '\0'].map(
      (tail) => (length: number) =>
        head + pump.repeat(Math.ceil((length - head.length - tail.length) / pump.length)) + tail,
    ),
  )
}

function repeatedWords({ source }: Literal): Repeated[] {
  const words = [...source.replaceAll(/\\[a-zA-Z]|\(\?[:=!<]+/g, ' ').matchAll(/[A-Za-z:$-]{2,}/g)].map(
    ([word]) => word,
  )
  const letters = new Set([
    ...source.replaceAll(/[\\()?|^[\]{}*+]/g, '').split(''),
    ' ',
    'a',
    '0',
    '-',
    '/',
    '=',
    '\n',
    'é',
  ])
  const pumps = [...letters, ...words, ...words.map((word) => `${word} `), 'a-', 'a.', '0.', ' a', '{a']
  const heads = ['', ...words.slice(0, byTier(1, 3)).map((word) => `${word} `), 'a']
  return pumps.flatMap((pump) => heads.map((head): Repeated => [head, pump]))
}

/** The beginnings of examples of what the expression matches: each repeated, and each with its last letter repeated. */
function repeatedExamples(literal: Literal): Repeated[] {
  const examples = ALTERNATIVES.flatMap((alternative) =>
    PREFERRED_LETTERS.flatMap((letters) =>
      [false, true].map((isLong) => exampleOf(literal, { alternative, isLong, letters })),
    ),
  )
  const beginnings = examples.flatMap((example) =>
    Array.from(example.slice(0, EXAMPLE_LENGTH), (_, index) => example.slice(0, index + 1)),
  )
  return [...new Set(beginnings)].flatMap((one): Repeated[] => [
    ['', one],
    [one, one.slice(-1)],
  ])
}

/**
 * A text for which the expression is slow; if all texts together are fast enough, they are not tried
 * separately.
 */
function slowText(literal: Literal, makers: readonly MakeText[]): MakeText | undefined {
  const [only] = makers
  if (only === undefined) return undefined
  if (makers.length === 1) return isSlow(literal, only) ? only : undefined
  const texts = makers.map((make) => make(LENGTH))
  const { ms, isOver } = runMs(literal, texts, HOPELESS_MS)
  if (isOver && ms <= LIMIT_MS) return undefined
  const middle = makers.length >> 1
  return slowText(literal, makers.slice(0, middle)) ?? slowText(literal, makers.slice(middle))
}

/** Repeats the measurement: a busy machine may be slow once. */
function isSlow(literal: Literal, make: MakeText): boolean {
  return [1, 2, 3].every(() => seemsSlow(literal, make))
}

function seemsSlow(literal: Literal, make: MakeText): boolean {
  const whole = timeOf(literal, make(LENGTH))
  if (whole <= LIMIT_MS) return false
  return whole >= HOPELESS_MS || whole / timeOf(literal, make(LENGTH / 4)) > LINEAR
}

test.each([
  ['const a = /x+y/gi.test(b)', ['x+y gi']],
  ['const a = b / c / d; // no /x/ here', []],
  [String.raw`f('it/s', "/a/", /[/\]]\/"/)`, [String.raw`[/\]]\/" `]],
  ['const t = `a ${b.replace(/c/g, `${d / e} /f/`)} /g/` + h / i', ['c g']],
  ['/* /a/ */ return /b/', ['b ']],
])('exactly the regular expressions of a source text are found: %s', (text, expected) => {
  expect(literalsIn(text).map(({ source, flags }) => `${source} ${flags}`)).toEqual(expected)
})

describe('the regular expressions of the program', () => {
  test('the check for slow regular expressions reads more than 60 regular expressions of src and of the packages, and each of them compiles', () => {
    for (const folder of ['src', 'packages/wire', 'packages/http1', 'packages/screen', 'packages/import'])
      expect(LITERALS.some(({ path }) => path.startsWith(`${folder}/`))).toBe(true)
    expect(LITERALS.length).toBeGreaterThan(60)
    for (const { source, flags } of LITERALS) expect(() => new RegExp(source, flags)).not.toThrow()
  })

  test.each([
    ['(a+)+$', ''],
    ['=+$', ''],
    ['(?:a|a)*!', ''],
    [String.raw`^\s*(.*?)\s*$x`, ''],
    [String.raw`\s+$`, ''],
    // Each hyphen ends a word, so that an attempt begins behind it.
    [String.raw`\bsk-\w{6,}|\beyJ[\w-]+\.[\w-]+\.[\w-]+`, 'gi'],
    // Both parts match spaces, after a beginning that must fit.
    [String.raw`^([\w-]+):[ \t]*(.*?)[ \t]*$`, 's'],
  ])('the search for slow regular expressions finds a known slow one: %s', (source, flags) => {
    const literal = { source, flags, line: 0 }
    const search = (): MakeText | undefined => slowText(literal, hostile(literal))
    // A busy machine may slow the run of the shorter text.
    expect(search() ?? search() ?? search()).toBeDefined()
  })

  test.each(
    LITERALS.map((literal) => [`${literal.path}:${literal.line} /${literal.source}/`, literal] as const),
  )('the regular expressions of a file are fast for long texts: %s', (_, literal) => {
    expect(slowText(literal, hostile(literal))?.(40)).toBeUndefined()
  })
})
