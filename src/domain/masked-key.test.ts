import { expect, test } from 'vitest'
import { maskedKey } from './masked-key.ts'

test.each([
  ['sk-abcdefghijkl', 'sk-a**********ijkl'],
  ['sk-abcdef', 'sk-a**********cdef'],
  ['sk-abcde', '**********'],
  ['sk-a', '**********'],
])('the key %s is shown as %s', (key, shown) => {
  expect(maskedKey(key)).toBe(shown)
})
