import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toBase64, toNumbers } from './vector.ts'

const float = fc.float({ noNaN: true, noDefaultInfinity: true })

test('a vector is the same after base64 and back, to the last bit of single precision', () => {
  fc.assert(
    fc.property(fc.array(float, { minLength: 1, maxLength: 50 }), (vector) => {
      const numbers = JSON.parse(toNumbers(toBase64(vector)) ?? '') as number[]
      expect(numbers.map((value) => Math.fround(value) + 0)).toEqual(vector.map((value) => value + 0))
    }),
  )
})

test('numbers are written no longer than single precision needs', () => {
  expect(toNumbers(toBase64([0.1, -0.0069292834, 1, 1e-8]))).toBe('[0.1,-0.0069292835,1,1e-8]')
})

test.each([
  ['nothing', ''],
  ['half a number', 'AAA='],
  ['what is no number', Buffer.from([0, 0, 192, 127]).toString('base64')],
])('base64 of %s is no vector', (_, text) => {
  expect(toNumbers(text)).toBeUndefined()
})
