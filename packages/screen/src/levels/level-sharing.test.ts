import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lawRuns } from '../../../../test/runner/tier.ts'
import { compileRule, PII_KINDS, type RuleMatch } from '../rule.ts'
import { SearchBudget } from '../search-budget.ts'
import { compareByStart } from '../screen-rule.ts'
import { escaped } from './escapes.ts'
import type { LevelMatch } from './level-search.ts'
import { TextLevel } from './text-level.ts'

const RULES: readonly RuleMatch[] = [
  { regex: 'a+b', most: 24 },
  { regex: ['(?:[ab]{0,9}c)?a', String.raw`\bab\b`], most: 24 },
  { regex: '(?s)a.{0,9}b|n+a' },
  { regex: ['^ab', 'c$', '[^a]+'], most: 12 },
  { regex: String.raw`(?:\\|u)[0-9]*c`, most: 24 },
  { words: ['ab', 'ab ab', 'nab', 'c'] },
  { pii: PII_KINDS },
  { secrets: true },
]
const UNITS = ['a', 'b', 'ab', 'c', 'abc abab', ' ', '"', '\\', '\\\\', '\\n', '\\"', '\\u0061', '\\u005c', 'u005cu005cn', 'n', '{"', '"}', '😀', '\\ud83d', 'ann@example.com', '+1 202 555 0143', 'token=a1B2c3D4e5F6g7H8i9J0'] // biome-ignore format: a table
const texts = fc
  .array(
    fc.tuple(fc.array(fc.constantFrom(...UNITS), { maxLength: 12 }), fc.nat(8)).map(([units, levels]) =>
      // Most parts are short, because each level may double what is escaped.
      levels > 2 ? escaped(units.slice(0, 3).join(''), levels) : escaped(units.join(''), levels),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 })

/** The matches of a text that is read in pieces of these lengths, those of a rule that overlap as one. */
function found(rule: ReturnType<typeof compileRule>, text: string, sizes: readonly number[], after: number) {
  const budget = new SearchBudget()
  budget.allow(Infinity)
  const searches = rule.searches.map((search) => ({ search, rule: 0, budget }))
  const ofStrings = searches.filter(({ search }) => search.isOfStrings)
  const level = new TextLevel({ searches, ofStrings, comparedAfter: after })
  const matches: LevelMatch[] = []
  for (let at = 0, cut = 0; at < text.length; cut += 1) {
    const to = at + (sizes[cut % sizes.length] as number)
    level.read(text.slice(at, to), text.slice(0, to), 0)
    level.scan(false)
    level.take(matches)
    at = to
  }
  level.end()
  level.scan(true)
  level.take(matches)
  const joined: { start: number; end: number }[] = []
  for (const { span } of matches.toSorted(compareByStart)) {
    const last = joined.at(-1)
    if (last && span.start < last.end) last.end = Math.max(last.end, span.end)
    else joined.push({ start: span.start, end: span.end })
  }
  return joined
}

test('levels that share their searches find the same matches as levels that are each searched by themselves', () => {
  const rules = RULES.flatMap((match) => {
    const rule = compileRule('r', match)
    const guided = rule.searches.map((search) => ({ ...search, allowed: 0 }))
    return 'regex' in match ? [rule, { ...rule, searches: guided }] : [rule]
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...rules),
      texts,
      sizes,
      fc.constantFrom(1, 2, 5, 16),
      (rule, text, sizes, after) => {
        expect(found(rule, text, sizes, after)).toEqual(found(rule, text, sizes, Infinity))
      },
    ),
    { numRuns: lawRuns(6000) },
  )
})

test('levels do not share their searches within marks that belong to a letter at only one level', () => {
  const rule = compileRule('r', { words: ['ab'] })
  for (let marks = 1; marks < 20; marks++) {
    const text = `\\u0020${'\u0301'.repeat(marks)}ab`
    expect(found(rule, text, [40], 1)).toEqual([{ start: 6 + marks, end: 8 + marks }])
  }
})
