import { expect, test } from 'vitest'
import { timeText } from './time-text.ts'

test.each([
  [1_801_389_600, '2027-01-31 10:00Z'],
  [-1, 'never'],
  [9_999_999_999_999, '9999-12-31 23:59Z'],
])('commands show the time %i as %s', (seconds, text) => {
  expect(timeText(seconds)).toBe(text)
})
