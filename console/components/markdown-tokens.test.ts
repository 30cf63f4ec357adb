import { expect, test } from 'vitest'
import { markdownTokens } from './markdown-tokens.ts'

test('the tokens of a text are its blocks', () => {
  expect(markdownTokens('# a')?.map(({ type }) => type)).toEqual(['heading'])
  expect(markdownTokens('')).toHaveLength(0)
})

test.each([
  ['quotes', '>'.repeat(3_000)],
  ['quotes that the lexer can read', `${'>'.repeat(200)} x`],
  ['lists', Array.from({ length: 150 }, (_, depth) => `${' '.repeat(2 * depth)}- x`).join('\n')],
  ['emphasis that does not end', '*a_'.repeat(5_000)],
  ['a long text', 'word '.repeat(30_000)],
])('a text is not read as Markdown if that would be too much: %s', (_, text) => {
  expect(markdownTokens(text)).toBeUndefined()
})

test('a text with many nested quotes is read as Markdown', () => {
  expect(markdownTokens(`${'>'.repeat(50)} x`)).toHaveLength(1)
})
