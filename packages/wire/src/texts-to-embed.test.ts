import { expect, test } from 'vitest'
import { textGroups } from './texts-to-embed.ts'

test('texts to embed are divided into groups of limited number and size, in order', () => {
  expect(textGroups(['a', 'b', 'c'], 2)).toEqual([['a', 'b'], ['c']])
  expect(textGroups(['aa', 'ä', 'b', 'cccccc', 'd'], 10, 4)).toEqual([['aa', 'ä'], ['b'], ['cccccc'], ['d']])
})
