import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, Script } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { cpuMs } from '../fixtures/pace.ts'
import { type Literal, literalsIn } from '../regular-expressions.ts'
import { byTier } from '../tier.ts'

const SRC = join(import.meta.dirname, '..', '..', 'src')
const LENGTH = byTier(8_000, 20_000)
/**
 * Maximum milliseconds of an expression for a text of that length; a busy machine is given more, but not for
 * growth faster than linear.
 */
const LIMIT_MS = 2.5
const HOPELESS_MS = 50
/**
 * Maximum ratio of the times for the whole text and for a quarter of it; linear time has a ratio of 4,
 * quadratic time 16.
 */
const LINEAR = 9

type MakeText = (length: number) => string

/** The CPU time of a run, and whether it came to its end. */
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

/** CPU time for all texts together; the run is ended after `timeoutMs` of the clock. */
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

/** Milliseconds for one text, the best of three; `HOPELESS_MS` for that and more. */
function timeOf(literal: Literal, text: string): number {
  let best = HOPELESS_MS
  let timeoutMs = 2 * HOPELESS_MS
  for (let looks = 0; looks < 3 && best > LIMIT_MS; ) {
    const { ms, isOver } = runMs(literal, [text], timeoutMs)
    best = Math.min(best, isOver ? ms : HOPELESS_MS)
    if (!isOver && ms >= HOPELESS_MS) return HOPELESS_MS
    // Ended while other processes had the CPU, which is no look.
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

/** A text on which the expression is slow; texts that together keep the limit of one are not split. */
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
])('an expression is found in: %s', (text, expected) => {
  expect(literalsIn(text).map(({ source, flags }) => `${source} ${flags}`)).toEqual(expected)
})

describe('of the expressions in src', () => {
  test('all are found', () => {
    expect(LITERALS.length).toBeGreaterThan(60)
    for (const { source, flags } of LITERALS) expect(() => new RegExp(source, flags)).not.toThrow()
  })

  test.each(['(a+)+$', '=+$', '(?:a|a)*!', String.raw`^\s*(.*?)\s*$x`, String.raw`\s+$`])(
    'a slow one would be found: %s',
    (source) => {
      const literal = { source, flags: '', line: 0 }
      expect(slowText(literal, hostile(literal))).toBeDefined()
    },
  )

  test.each(
    LITERALS.map((literal) => [`${literal.path}:${literal.line} /${literal.source}/`, literal] as const),
  )('none is slow on a long text: %s', (_, literal) => {
    expect(slowText(literal, hostile(literal))?.(40)).toBeUndefined()
  })
})
