import { expect, test } from 'vitest'
import { compareVectors } from './read-media.ts'

test('the playground computes the cosine of each pair of embeddings: 1 for the same direction, 0 for right angles', () => {
  expect(
    compareVectors([
      [3, 4],
      [6, 8],
      [4, -3],
    ]),
  ).toEqual({
    dimensions: 2,
    cosines: [
      { texts: [1, 2], cosine: 1 },
      { texts: [1, 3], cosine: 0 },
      { texts: [2, 3], cosine: 0 },
    ],
  })
  expect(compareVectors([[1, 1]])).toEqual({ dimensions: 2, cosines: [] })
  // No direction, and no division by 0.
  expect(
    compareVectors([
      [0, 0],
      [1, 0],
    ]).cosines,
  ).toEqual([{ texts: [1, 2], cosine: 0 }])
})
