import { expect, test } from 'vitest'
import { compared } from './read-media.ts'

test('108: the cosine of embeddings is 1 for the same direction, 0 for right angles, and known for each pair', () => {
  expect(
    compared([
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
  expect(compared([[1, 1]])).toEqual({ dimensions: 2, cosines: [] })
  // No direction, and no division by 0.
  expect(
    compared([
      [0, 0],
      [1, 0],
    ]).cosines,
  ).toEqual([{ texts: [1, 2], cosine: 0 }])
})
