import { expect, test } from 'vitest'
import { imagesAtOnce } from '../fixtures/large-images.ts'

const MIB = 1024 * 1024

test('forty simultaneous image responses of 10 MB are unchanged, in bounded memory, and charged by the usage at their end', async () => {
  const { growth, charges } = await imagesAtOnce(40, 10 * MIB)
  expect(charges).toEqual(new Set([10 + 4 * 1000]))
  // Kept completely, they would take 400 MB. V8 decides how large its young generation grows.
  expect(growth).toBeLessThan(250 * MIB)
})
