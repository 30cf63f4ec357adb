import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, Script } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { cpuMs } from '../fixtures/pace.ts'
import { type Literal, literalsIn } from '../repository/regular-expressions.ts'
import { byTier } from '../runner/tier.ts'

const SRC = join(import.meta.dirname, '..', '..', 'src')
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

const LITERALS = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .flatMap((path) =>
    literalsIn(readFileSync(join(SRC, path), 'utf8')).map((literal) => ({ ...literal, path })),
  )

const context = createContext({ texts: [], expression: / / })
const matching = new Script('for (const text of texts) expression.test(text)')
const replacing = new Script("for (const text of texts) text.replace(expression, '')")

/** CPU time for all texts together; the run is aborted after `timeoutMs`. */
function runMs({ source, flags }: Literal, texts: readonly string[], timeoutMs: number): RunTime {
  Object.assign(context, { texts, expression: new RegExp(source, flags.replace('y', '')) })
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

/** Texts that repeat parts of what the expression matches, and finally fail to match. */
function hostile({ source }: Literal): MakeText[] {
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
  return pumps.flatMap((pump) =>
    heads.flatMap((head) =>
      ['', '\0'].map(
        (tail) => (length: number) =>
          head + pump.repeat(Math.ceil((length - head.length - tail.length) / pump.length)) + tail,
      ),
    ),
  )
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

describe('the regular expressions in src', () => {
  test('the check for slow regular expressions reads more than 60 regular expressions in src, and each of them compiles', () => {
    expect(LITERALS.length).toBeGreaterThan(60)
    for (const { source, flags } of LITERALS) expect(() => new RegExp(source, flags)).not.toThrow()
  })

  test.each(['(a+)+$', '=+$', '(?:a|a)*!', String.raw`^\s*(.*?)\s*$x`, String.raw`\s+$`])(
    'the search for slow regular expressions finds a known slow one: %s',
    (source) => {
      const literal = { source, flags: '', line: 0 }
      expect(slowText(literal, hostile(literal))).toBeDefined()
    },
  )

  test.each(
    LITERALS.map((literal) => [`${literal.path}:${literal.line} /${literal.source}/`, literal] as const),
  )('the regular expressions of a file are fast for long texts: %s', (_, literal) => {
    expect(slowText(literal, hostile(literal))?.(40)).toBeUndefined()
  })
})
