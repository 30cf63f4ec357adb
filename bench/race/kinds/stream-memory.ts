import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../../candidates/candidate.ts'
import { CANDIDATES, type CandidateName } from '../../candidates/candidates.ts'
import type { Figure } from '../../measuring/figure.ts'
import { messageTo } from '../../load/requests.ts'
import { residentKilobytes } from '../../measuring/resident.ts'
import type { TestBed } from '../test-bed.ts'

/** Streams that wait for their next event. */
export interface StreamMemory {
  readonly call: Call
  readonly streams: number
}

/** Number of calls before the measurement, so that code is loaded and the heap has reached its size. */
const WARM_UP = 4000
const CONNECTIONS = 64
/** Number of streams that began and ended before the measurement. */
const EARLIER = 100
const SETTLING_MS = 2000

/** Resident kilobytes per open stream, in a process that was started for this measurement. */
export async function measureStreamMemory(
  testBed: TestBed,
  name: CandidateName,
  { call, streams }: StreamMemory,
): Promise<Figure> {
  await using running = await testBed.startAnother(name)
  const { port, pid } = running
  const messageOf = (one: Call): string => messageTo(CANDIDATES[name], port, one) ?? ''
  const whole = messageOf({ ...call, behaviour: 'whole' })
  await testBed.execute({
    kind: 'saturate',
    port,
    message: whole,
    requests: WARM_UP,
    connections: CONNECTIONS,
  })
  const message = messageOf(call)
  await testBed.execute({ kind: 'open', port, message, streams: EARLIER })
  testBed.finish()
  await testBed.execute({ kind: 'ended' })
  const before = residentKilobytes(pid)
  await testBed.execute({ kind: 'open', port, message, streams })
  await sleep(SETTLING_MS)
  const after = residentKilobytes(pid)
  testBed.finish()
  await testBed.execute({ kind: 'ended' })
  return { cost: (after - before) / streams }
}
