import { expect, test } from 'vitest'
import { barLabel } from './bar-label.ts'

test.each([
  [0, ''],
  [0.000818, '<0.01'],
  [0.01234, '0.012'],
  [0.5, '0.5'],
  [12.34, '12'],
  [1234, '1.2K'],
  [123_456, '120K'],
])('the amount %d above a bar of the overview is "%s", which fits', (amount, label) => {
  expect(barLabel(amount, 'en')).toBe(label)
  expect(label.length).toBeLessThanOrEqual(5)
})
