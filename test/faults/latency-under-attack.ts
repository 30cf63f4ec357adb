import { expect } from 'vitest'
import type { FullResponse } from '../equipment/client.ts'

/** Number of requests made alone, and again during the attack. */
const REQUESTS = 15
/** Milliseconds that a busy machine may add. */
const SLACK_MS = 250

/**
 * Makes the same requests one after the other, alone and then during the attack: all of them succeed, and the
 * median takes at most twice as long during the attack.
 */
export async function expectFairDuring(
  attack: () => Promise<unknown>,
  ask: () => Promise<FullResponse>,
): Promise<void> {
  const alone = await answered(ask)
  await attack()
  const beside = await answered(ask)
  expect(beside.statuses).toEqual(alone.statuses)
  expect(new Set(beside.statuses)).toEqual(new Set([200]))
  expect(beside.medianMs).toBeLessThanOrEqual(2 * alone.medianMs + SLACK_MS)
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
