import { expect, test } from 'vitest'
import { texts as en } from '../../locales/en.ts'
import { callCountText, refusedCountText } from './call-count-text.ts'

const formatted = (count: number): string => count.toLocaleString('en')

test.each([
  [{ calls: 14, refused: 0, hasFailed: false }, '14 calls'],
  [{ calls: 0, refused: 1, hasFailed: false }, '0 calls answered, 1 refused'],
  [{ calls: 1, refused: 1200, hasFailed: true }, '1 call answered, 1,200 refused'],
  [{ calls: 4, refused: 0, hasFailed: true }, '4 calls answered'],
])('the totals of a log of %o say which calls they count', (counts, text) => {
  expect(callCountText(en.logs, counts, formatted)).toBe(text)
})

test.each([
  [600, 1403, '600 kept of 1,403 refused calls'],
  [1, 1, '1 refused call'],
  [3, 0, '3 refused calls'],
])('a list with %d of %d refused calls says how many were not kept', (kept, counted, text) => {
  expect(refusedCountText(en.logs, kept, counted, formatted)).toBe(text)
})
