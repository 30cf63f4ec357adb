import { expect } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { byTier } from '../runner/tier.ts'

/** The number of requests that another client makes during an attack. */
const REQUESTS = byTier(9, 15)

/**
 * Begins an attack that holds what it gets, and makes requests of another client before and during it. Each
 * must succeed: one that had to wait for the attack would be refused, or never answered.
 */
export async function expectServedDuring(
  attack: () => Promise<unknown>,
  ask: () => Promise<FullResponse>,
): Promise<void> {
  // A client that has called recently has its share.
  expect((await ask()).status).toBe(200)
  await attack()
  for (let n = 0; n < REQUESTS; n += 1) expect((await ask()).status).toBe(200)
}
