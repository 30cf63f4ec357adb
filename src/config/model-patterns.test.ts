import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesModelPattern } from './model-patterns.ts'

test.each([
  ['gpt-4o', 'gpt-*', true],
  ['gpt-4o', '*', true],
  ['gpt-4o', 'gpt-4o*', true],
  ['gpt-4o', '*-4o', true],
  ['gpt-4o', 'g*-*o', true],
  ['gpt-4o', 'gpt-4*4o', false],
  ['my-gpt-4o', 'gpt-*', false],
  ['gpt-4o', 'gpt.4*', false],
])('the model name %s matches the model pattern %s: %s', (name, pattern, expected) => {
  expect(matchesModelPattern(name, pattern)).toBe(expected)
})

test('a * in a model pattern matches any text, and every other character matches only itself', () => {
  const piece = fc.stringMatching(/^[ab]{0,3}$/)
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 2, maxLength: 4 }),
      fc.stringMatching(/^[ab]{0,8}$/),
      (pieces, name) => {
        const expected = new RegExp(`^${pieces.join('[ab]*')}$`).test(name)
        expect(matchesModelPattern(name, pieces.join('*'))).toBe(expected)
      },
    ),
  )
})
