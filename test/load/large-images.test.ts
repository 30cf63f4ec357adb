import { expect, test } from 'vitest'
import { imagesAtOnce } from '../fixtures/large-images.ts'

const MIB = 1024 * 1024

test('forty responses of 10 MB at once go through unchanged, in bounded memory, and are charged by the usage at their end', async () => {
  const { growth, charges } = await imagesAtOnce(40, 10 * MIB)
  expect(charges).toEqual(new Set([10 + 4 * 1000]))
  // Held whole, they would take 400 MB; how large V8 lets its young space grow is its own affair.
  expect(growth).toBeLessThan(250 * MIB)
})
