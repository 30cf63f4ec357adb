import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, Script } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { cpuMs } from './equipment/pace.ts'
import { type Literal, literalsIn } from './regular-expressions.ts'

const SRC = join(import.meta.dirname, '..', 'src')
const LENGTH = 20_000
/**
 * Maximum milliseconds of an expression for a text of that length; a busy machine is given more, but not for
 * growth faster than linear.
 */
const LIMIT_MS = 2.5
const HOPELESS_MS = 250
/**
 * Maximum ratio of the times for the whole text and for a quarter of it; linear time has a ratio of 4,
 * quadratic time 16.
 */
const LINEAR = 9

const LITERALS = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .flatMap((path) =>
    literalsIn(readFileSync(join(SRC, path), 'utf8')).map((literal) => ({ ...literal, path })),
  )

const context = createContext({ text: '', expression: / / })
const matching = new Script('expression.test(text)')
const replacing = new Script("text.replace(expression, '')")

/** Milliseconds, the best of three; `HOPELESS_MS` for longer ones. */
function timeOf({ source, flags }: Literal, text: string): number {
  Object.assign(context, { text, expression: new RegExp(source, flags.replace('y', '')) })
  let best = HOPELESS_MS
  for (let looks = 0, starved = 0; looks < 3 && best > LIMIT_MS; looks++) {
    const began = cpuMs()
    try {
      ;(flags.includes('g') ? replacing : matching).runInContext(context, { timeout: HOPELESS_MS })
      best = Math.min(best, cpuMs() - began)
    } catch {
      // The limit counts time in which other processes had the CPU.
      if (cpuMs() - began > HOPELESS_MS / 2 || ++starved > 20) return HOPELESS_MS
      looks--
    }
  }
  return best
}

/** Texts that repeat parts of what the expression matches, and finally fail to match. */
function hostile({ source }: Literal): ((length: number) => string)[] {
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
  const heads = ['', ...words.slice(0, 3).map((word) => `${word} `), 'a']
  return pumps.flatMap((pump) =>
    heads.flatMap((head) =>
      ['', '\0'].map(
        (tail) => (length: number) =>
          head + pump.repeat(Math.ceil((length - head.length - tail.length) / pump.length)) + tail,
      ),
    ),
  )
}

/** Repeats the measurement: a busy machine may be slow once. */
function isSlow(literal: Literal, make: (length: number) => string): boolean {
  return [1, 2, 3].every(() => seemsSlow(literal, make))
}

function seemsSlow(literal: Literal, make: (length: number) => string): boolean {
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
      expect(hostile(literal).some((make) => isSlow(literal, make))).toBe(true)
    },
  )

  test.each(
    LITERALS.map((literal) => [`${literal.path}:${literal.line} /${literal.source}/`, literal] as const),
  )('none is slow on a long text: %s', (_, literal) => {
    const slow = hostile(literal).find((make) => isSlow(literal, make))
    expect(slow?.(40)).toBeUndefined()
  })
})
