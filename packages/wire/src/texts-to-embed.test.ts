import { expect, test } from 'vitest'
import { splitTexts } from './texts-to-embed.ts'

test('the texts of an embeddings request are divided, in order, into groups with a maximum of texts and of bytes', () => {
  expect(splitTexts(['a', 'b', 'c'], 2)).toEqual([['a', 'b'], ['c']])
  expect(splitTexts(['aa', 'ä', 'b', 'cccccc', 'd'], 10, 4)).toEqual([['aa', 'ä'], ['b'], ['cccccc'], ['d']])
})
