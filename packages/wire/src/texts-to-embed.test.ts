import { expect, test } from 'vitest'
import { splitTexts } from './texts-to-embed.ts'

test('texts for an embedding are divided into groups of limited number and size, in order', () => {
  expect(splitTexts(['a', 'b', 'c'], 2)).toEqual([['a', 'b'], ['c']])
  expect(splitTexts(['aa', 'ä', 'b', 'cccccc', 'd'], 10, 4)).toEqual([['aa', 'ä'], ['b'], ['cccccc'], ['d']])
})
