import { expect, test } from 'vitest'
import { imagesAtOnce } from '../equipment/large-images.ts'

const MIB = 1024 * 1024

test('forty responses of 5 MB at once go through unchanged, in bounded memory, and are charged by the usage at their end', async () => {
  const { growth, charges } = await imagesAtOnce(40, 5 * MIB)
  expect(charges).toEqual(new Set([10 + 4 * 1000]))
  expect(growth).toBeLessThan(130 * MIB)
})
