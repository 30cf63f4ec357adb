import { expect, test } from 'vitest'
import { projectMonthlySpend } from './project-monthly-spend.ts'

test('after half of a month, the forecast for the month is twice what was spent', () => {
  // April 2026 has 30 days.
  expect(projectMonthlySpend(71, Date.UTC(2026, 3, 16) / 1000, 'UTC')).toBe(142)
})

test('on the first day of a month there is no forecast', () => {
  expect(projectMonthlySpend(71, Date.UTC(2026, 3, 1, 20) / 1000, 'UTC')).toBeUndefined()
})
