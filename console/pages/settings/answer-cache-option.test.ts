import { expect, test } from 'vitest'
import { parseAnswerCacheOption, answerCacheText } from './answer-cache-option.ts'

test('the answer cache setting is unchanged after the settings page reads it and writes it back', () => {
  const value = '{"ttl":"10m","max_ttl":"1h","scope":"user","most":1000000000,"price":"0.1"}'
  expect(answerCacheText(parseAnswerCacheOption(value))).toBe(value)
})

test.each([
  [{ ttl: '10m', price: ' ' }, '{"ttl":"10m"}'],
  [{ most: ' 2GB ' }, '{"most":"2GB"}'],
  [{ most: '2000000' }, '{"most":2000000}'],
  [{}, '{}'],
])('the answer cache fields %j are written as the setting %s', (fields, written) => {
  expect(answerCacheText(fields)).toBe(written)
})

test('an empty answer cache setting leaves the fields of the settings page without values', () => {
  expect(parseAnswerCacheOption('')).toEqual({})
})
