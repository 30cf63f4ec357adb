import { expect, test } from 'vitest'
import { answerCacheIn, answerCacheText } from './answer-cache-option.ts'

test('the option of the answer cache is written as it was read', () => {
  const value = '{"ttl":"10m","max_ttl":"1h","scope":"user","most":1000000000,"price":"0.1"}'
  expect(answerCacheText(answerCacheIn(value))).toBe(value)
})

test.each([
  [{ ttl: '10m', price: ' ' }, '{"ttl":"10m"}'],
  [{ most: ' 2GB ' }, '{"most":"2GB"}'],
  [{ most: '2000000' }, '{"most":2000000}'],
  [{}, '{}'],
])('%j is written as %s', (fields, written) => {
  expect(answerCacheText(fields)).toBe(written)
})

test('without the option there are no fields', () => {
  expect(answerCacheIn('')).toEqual({})
})
