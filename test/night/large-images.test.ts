import { expect, test } from 'vitest'
import { imagesAtOnce } from '../fixtures/large-images.ts'

const MIB = 1024 * 1024

test('forty simultaneous image responses of 20 MB take at most an eighth of their size in memory', async () => {
  const { growth, charges } = await imagesAtOnce(40, 20 * MIB)
  expect(charges).toEqual(new Set([10 + 4 * 1000]))
  expect(growth).toBeLessThan(100 * MIB)
})
