import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../../candidates/candidate.ts'
import { CANDIDATES, type CandidateName } from '../../candidates/candidates.ts'
import type { Figure } from '../../measuring/figure.ts'
import { messageTo } from '../../load/requests.ts'
import { residentKilobytes } from '../../measuring/resident.ts'
import type { TestBed } from '../test-bed.ts'

/**
 * A process that is left idle after a number of calls, by which everything loaded on demand has been loaded.
 */
export interface IdleMemory {
  readonly call: Call
  readonly calls: number
}

const IDLE_MS = 5000
const KILOBYTE = 1024

/**
 * Megabytes (10^6 bytes) resident in a process that was started for this measurement, served calls, and was
 * left idle.
 */
export async function measureIdleMemory(
  testBed: TestBed,
  name: CandidateName,
  { call, calls }: IdleMemory,
): Promise<Figure> {
  await using running = await testBed.startAnother(name)
  const { port, pid } = running
  const message = messageTo(CANDIDATES[name], port, call) ?? ''
  await testBed.execute({ kind: 'saturate', port, message, requests: calls, connections: 1 })
  await sleep(IDLE_MS)
  return { cost: (residentKilobytes(pid) * KILOBYTE) / 1e6 }
}
