import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ShortHmac } from './short-hmac.ts'

const bytes = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((list) => Buffer.from(list))

test('an HMAC of ShortHmac equals that of createHmac for every secret of at most 64 bytes', () => {
  fc.assert(
    fc.property(bytes(64), fc.array(bytes(300), { maxLength: 4 }), (secret, parts) => {
      const expected = createHmac('sha256', secret).update(Buffer.concat(parts)).digest('hex')
      expect(new ShortHmac(secret).hex(parts)).toBe(expected)
    }),
  )
})

test('ShortHmac refuses a secret of more than 64 bytes, which HMAC would hash first', () => {
  expect(() => new ShortHmac(Buffer.alloc(65))).toThrow('expected a secret of at most 64 bytes')
})
