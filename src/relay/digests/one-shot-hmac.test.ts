import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { OneShotHmac } from './one-shot-hmac.ts'

test.each([0, 1, 32, 64])(
  'with a key of %i bytes it is the HMAC of the parts, one after the other',
  (size) => {
    const key = randomBytes(size)
    const hmac = new OneShotHmac(key)
    for (const parts of [
      [],
      [''],
      ['a'],
      ['session 1 begins ', 'x'.repeat(63)],
      ['é'.repeat(5_000), 'a', ''],
    ]) {
      const expected = createHmac('sha256', key).update(parts.join('')).digest('hex')
      expect(hmac.hex(parts.map((part) => Buffer.from(part)))).toBe(expected)
    }
  },
)

test('a longer key is refused', () => {
  expect(() => new OneShotHmac(Buffer.alloc(65))).toThrow('at most 64')
})
