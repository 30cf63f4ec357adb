import { expect, test } from 'vitest'
import { matchesWildcard } from './matches-wildcard.ts'

test.each([
  ['*', '', true],
  ['get_*', 'get_issue', true],
  ['get_*', 'forget_issue', false],
  ['*_*e', 'get_issue', true],
  ['a*b*c', 'abbc', true],
  ['a*b*c', 'abcb', false],
  ['a**b', 'ab', true],
  ['.', 'a', false],
  ['%', 'a', false],
])('the pattern %s and the text %s: %s', (pattern, text, expected) => {
  expect(matchesWildcard('*', pattern, text)).toBe(expected)
})
