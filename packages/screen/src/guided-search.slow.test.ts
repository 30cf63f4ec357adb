import fc from 'fast-check'
import { RE2JS } from 're2js'
import { expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { compileRule, type Rule, RuleError } from './rule.ts'
import { TextScreen } from './screen.ts'

const letters = fc.constantFrom(
  'a',
  'b',
  'c',
  '.',
  '[ab]',
  '[^a]',
  '\\w',
  '(?s:.)',
  '\\pL',
  '[😀a]',
  '😀',
  '(?i:AB)',
)
const assertions = fc.constantFrom('\\b', '\\B', '^', '$', '(?m:^)', '(?m:$)')
const quantifiers = fc.constantFrom('*', '+', '?', '*?', '+?', '??', '{2}', '{0,3}', '{1,4}?', '{2,}')

/** Expressions in which classes overlap, repetitions are counted, and alternatives stand under stars. */
const expressions = fc.letrec<{ readonly any: string }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    letters,
    letters,
    assertions,
    fc.tuple(tie('any'), tie('any')).map(([one, two]) => one + two),
    fc.tuple(tie('any'), tie('any')).map(([one, two]) => `(?:${one}|${two})`),
    fc.tuple(tie('any'), quantifiers).map(([one, quantifier]) => `(?:${one})${quantifier}`),
  ),
})).any
const text = fc
  .array(fc.constantFrom('a', 'b', 'c', 'a', 'b', ' ', '\n', '😀', 'é', 'A', '\ud83d'), { maxLength: 40 })
  .map((all) => all.join(''))
const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 12 })

/** A rule for an expression, or undefined if it is refused. */
function ruleFor(regex: string, most: number): Rule | undefined {
  try {
    return compileRule('r', { regex, most })
  } catch (error) {
    if (error instanceof RuleError) return undefined
    throw error
  }
}

/** A screen whose scanners may spend so much on the automaton: nothing, so that they are guided; or anything. */
function screenWith(rule: Rule, allowed: number): TextScreen {
  const searches = rule.searches.map((search) => ({ ...search, allowed }))
  return new TextScreen([{ rule: { ...rule, searches }, do: 'redact', with: '#' }])
}

test('a guided search finds the matches that RE2 finds', () => {
  fc.assert(
    fc.property(expressions, text, (regex, text) => {
      const rule = ruleFor(regex, 256)
      if (!rule) return
      const matcher = RE2JS.compile(regex).matcher(text)
      const expected: { start: number; end: number }[] = []
      while (matcher.find()) expected.push({ start: matcher.start(), end: matcher.end() })
      for (const allowed of [0, Infinity]) {
        const found = screenWith(rule, allowed).find(text)
        expect(found.map(({ start, end }) => ({ start, end }))).toEqual(expected)
      }
    }),
    { numRuns: lawRuns(4000) },
  )
})

test('a guided search finds the same as the automaton, whatever `most` is and however the text is cut', () => {
  fc.assert(
    fc.property(expressions, fc.integer({ min: 1, max: 12 }), text, cuts, (regex, most, text, cuts) => {
      const rule = ruleFor(regex, most)
      if (!rule) return
      const guided = screenWith(rule, 0)
      const plain = screenWith(rule, Infinity)
      expect(guided.find(text)).toEqual(plain.find(text))
      const streams = [guided.stream(), plain.stream()] as const
      let [passed, expected] = ['', '']
      for (let at = 0, cut = 0; at < text.length; cut++) {
        const to = at + (cuts[cut % cuts.length] as number)
        passed += streams[0].push(text.slice(at, to))
        expected += streams[1].push(text.slice(at, to))
        // It may wait for more text, and passes on no more than is certain.
        expect(expected.startsWith(passed)).toBe(true)
        at = to
      }
      expect(passed + streams[0].end()).toBe(expected + streams[1].end())
    }),
    { numRuns: lawRuns(4000) },
  )
})

test('a search that becomes guided within a long text finds the same as the automaton', () => {
  const rule = compileRule('r', { regex: String.raw`[\w.-]+\.[\w.-]{2,60}\.internal` })
  let seed = 3
  const next = (): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31
  const hostile = Array.from({ length: 40_000 }, () => 'ab.'[Math.floor(3 * next())]).join('')
  const text = `see db.prod.internal ${hostile.replaceAll(/(.{997})/g, '$1.ab.internal ')} and www.db-1.internal`
  const expected = screenWith(rule, Infinity).find(text)
  expect(expected.length).toBeGreaterThan(40)
  const screen = new TextScreen([{ rule, do: 'redact', with: '#' }])
  expect(screen.find(text)).toEqual(expected)
  for (const size of [7, 300, 5000]) {
    const stream = screen.stream()
    let passed = ''
    let held = 0
    for (let at = 0; at < text.length; at += size) {
      passed += stream.push(text.slice(at, at + size))
      held = Math.max(held, stream.held)
    }
    expect(passed + stream.end()).toBe(screen.apply(text).text)
    expect(held).toBeLessThan(4 * 256 + size)
  }
})
