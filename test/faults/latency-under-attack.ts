import { expect } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { paceMs } from '../fixtures/pace.ts'
import { byTier } from '../runner/tier.ts'

/** The number of requests that are made alone, and again during the attack. */
const REQUESTS = byTier(9, 15)
/** Milliseconds that a busy machine may add. */
const SLACK_MS = 250
/**
 * The maximum number of measurements during the attack: other work of the machine may slow down one of them.
 */
const MAX_MEASUREMENTS = 3

/**
 * Makes the same requests one after the other, first without and then during the attack. All must succeed,
 * and the median latency may at most double.
 */
export async function expectFairDuring(
  attack: () => Promise<unknown>,
  ask: () => Promise<FullResponse>,
): Promise<void> {
  const paceAlone = pace()
  const alone = await answered(ask)
  await attack()
  /** By how much each median exceeds what is allowed. */
  const excesses: number[] = []
  while (excesses.length < MAX_MEASUREMENTS && excesses.every((excessMs) => excessMs > 0)) {
    const beside = await answered(ask)
    expect(beside.statuses).toEqual(alone.statuses)
    expect(new Set(beside.statuses)).toEqual(new Set([200]))
    // A machine that has become slower meanwhile needs longer, without any attack.
    const slowdown = Math.max(1, pace() / paceAlone)
    excesses.push(beside.medianMs - (2 * alone.medianMs * slowdown + SLACK_MS))
  }
  expect(Math.min(...excesses)).toBeLessThanOrEqual(0)
}

/** The quickest of several readings, because the machine may halt during one. */
function pace(): number {
  return Math.min(paceMs(), paceMs(), paceMs())
}

async function answered(ask: () => Promise<FullResponse>): Promise<{ statuses: number[]; medianMs: number }> {
  const statuses: number[] = []
  const took: number[] = []
  for (let i = 0; i < REQUESTS; i++) {
    const began = performance.now()
    statuses.push((await ask()).status)
    took.push(performance.now() - began)
  }
  return { statuses, medianMs: took.toSorted((a, b) => a - b)[REQUESTS >> 1] as number }
}
