import { expect } from 'vitest'
import type { LimitsReport } from './limits-run.ts'

/**
 * Factor for a busy machine: calls that Redis was too late for are counted by shares, which promises less.
 */
const BY_SHARES = 1.7

/** Asserts the promise of a limit over several nodes while Redis answers. */
export function expectKept({ fullest, mean, refused, alone }: LimitsReport): void {
  expect(refused).toBeGreaterThan(50)
  if (alone > 0) {
    console.log(`this machine is too busy for figures: Redis did not answer ${alone} times within its time`)
    expect(fullest).toBeLessThanOrEqual(BY_SHARES)
    return
  }
  expect(fullest).toBeLessThanOrEqual(1.01)
  expect(mean).toBeGreaterThanOrEqual(0.97)
}
