import { expect } from 'vitest'
import type { Answer } from '../equipment/client.ts'

/** So many requests are made alone, and as many beside whoever takes what is shared. */
const REQUESTS = 15
/** Time that a machine with other things to do may add. */
const SLACK_MS = 250

/**
 * Makes the same requests one after the other, alone and then beside the attack: all of them succeed, and the
 * median takes at most twice as long beside it.
 */
export async function fairBeside(attack: () => Promise<unknown>, ask: () => Promise<Answer>): Promise<void> {
  const alone = await answered(ask)
  await attack()
  const beside = await answered(ask)
  expect(beside.statuses).toEqual(alone.statuses)
  expect(new Set(beside.statuses)).toEqual(new Set([200]))
  expect(beside.medianMs).toBeLessThanOrEqual(2 * alone.medianMs + SLACK_MS)
}

async function answered(ask: () => Promise<Answer>): Promise<{ statuses: number[]; medianMs: number }> {
  const statuses: number[] = []
  const took: number[] = []
  for (let i = 0; i < REQUESTS; i++) {
    const began = performance.now()
    statuses.push((await ask()).status)
    took.push(performance.now() - began)
  }
  return { statuses, medianMs: took.toSorted((a, b) => a - b)[REQUESTS >> 1] as number }
}
