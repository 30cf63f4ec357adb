import { expect } from 'vitest'
import type { LimitsReport } from './limits-run.ts'

/** Asserts the promise of a limit over several nodes while Redis answers. */
export function expectKept({ fullest, mean, refused, alone }: LimitsReport): void {
  expect(refused).toBeGreaterThan(50)
  expect(alone).toBe(0)
  expect(fullest).toBeLessThanOrEqual(1.01)
  expect(mean).toBeGreaterThanOrEqual(0.97)
}
