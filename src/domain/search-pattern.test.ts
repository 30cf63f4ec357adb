import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hasWildcard, matchesPattern, matchesPatternInAnyCase, patternError } from './search-pattern.ts'
import { lawRuns } from '../../test/runner/tier.ts'

describe('a pattern', () => {
  test.each([
    ['', undefined],
    ['a', undefined],
    ['_', undefined],
    ['ab%', undefined],
    ['%ab', undefined],
    ['%ab%', undefined],
    ['a%b', undefined],
    ['%a%b', undefined],
    ['%_a%', undefined],
    ['%', 'expected at least 2 characters beside %'],
    ['a%', 'expected at least 2 characters beside %'],
    ['%_%', 'expected at least 2 characters beside %'],
    ['%👩‍👩‍👧‍👦%', 'expected at least 2 characters beside %'],
    ['%👩‍👩‍👧‍👦🇩🇪%', undefined],
    ['%e\u0301%', 'expected at least 2 characters beside %'],
    ['ab%%', 'expected no two % in a row'],
    ['%%', 'expected no two % in a row'],
    ['a%b%c%d', 'expected at most 2 %'],
    ['a%b%c', undefined],
  ])('a search pattern is valid or refused: %j: %s', (pattern, mistake) => {
    expect(patternError(pattern)).toBe(mistake)
  })

  test.each([
    ['main', 'main', true],
    ['main', 'Main', false],
    ['main', 'main2', false],
    ['ma%', 'main', true],
    ['ma%', 'ma', true],
    ['%in', 'main', true],
    ['%in', 'inn', false],
    ['%ai%', 'main', true],
    ['m%n', 'main', true],
    ['m%n', 'mainz', false],
    ['ab%ab', 'ab', false],
    ['ab%ab', 'aba', false],
    ['ab%ab', 'abab', true],
    ['ab%bc%cd', 'abcd', false],
    ['ab%bc%cd', 'abbccd', true],
    ['%aab%', 'aaab', true],
    ['m_in', 'main', false],
    ['m_in', 'm_in', true],
    ['a\\%c', 'a\\bc', true],
    ['a\\', 'a\\', true],
    ['.*%ab', 'xxab', false],
  ])('a search pattern matches a text or not: %j and %j: %s', (pattern, text, expected) => {
    expect(matchesPattern(pattern, text)).toBe(expected)
  })

  test.each([
    ['MAIN', 'main', true],
    ['straße%', 'STRASSE 7', true],
    ['ΟΔΟΣ', 'οδος', true],
    ['οδοσ%', 'οδος α', true],
    ['é%xy', 'E\u0301 xy', true],
    ['main', 'mein', false],
  ])(
    'a search pattern that ignores letter case matches a text or not: %j and %j: %s',
    (pattern, text, expected) => {
      expect(matchesPatternInAnyCase(pattern, text)).toBe(expected)
    },
  )
})

describe('any pattern', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '_', '\\', '.', '*'), maxLength: 12 })
  const patterns = fc.string({ unit: fc.constantFrom('a', 'b', '_', '\\', '.', '%'), maxLength: 8 })

  test('a search pattern matches the same texts as the equivalent regular expression', () => {
    fc.assert(
      fc.property(patterns, letters, (pattern, text) => {
        const expression = new RegExp(`^${pattern.replace(/[\\.]/g, '\\$&').replaceAll('%', '.*')}$`, 's')
        expect(matchesPattern(pattern, text)).toBe(expression.test(text))
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  test('a search pattern is valid only with at most two %, never next to each other', () => {
    fc.assert(
      fc.property(patterns, (pattern) => {
        if (patternError(pattern) !== undefined) return
        expect(pattern).not.toContain('%%')
        expect(pattern.split('%').length).toBeLessThanOrEqual(3)
        if (hasWildcard(pattern)) expect(pattern.replaceAll('%', '').length).toBeGreaterThanOrEqual(2)
      }),
    )
  })

  test('a search pattern finds a text in which % replaces any part', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), fc.nat(), (text, a, b) => {
        fc.pre(!text.includes('%'))
        const [start = 0, end = 0] = [a % (text.length + 1), b % (text.length + 1)].toSorted((x, y) => x - y)
        expect(matchesPattern(`${text.slice(0, start)}%${text.slice(end)}`, text)).toBe(true)
      }),
    )
  })
})
