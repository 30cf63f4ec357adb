import { setTimeout as sleep } from 'node:timers/promises'
import type { Call, Running } from '../../candidates/candidate.ts'
import { CANDIDATES, type CandidateName } from '../../candidates/candidates.ts'
import { cpuSeconds } from '../../measuring/cpu-time.ts'
import type { Figure } from '../../measuring/figure.ts'
import { messageTo } from '../../load/requests.ts'
import type { TestBed } from '../test-bed.ts'
import { quantile } from '../../measuring/statistics.ts'

/** Streams whose upstream sends at a fixed pace. */
export interface Paced {
  readonly call: Call
  readonly streams: number
}

const SETTLING_MS = 300

/** Measures CPU microseconds per event while all streams run, and the latency of each event. */
export async function measurePaced(
  testBed: TestBed,
  name: CandidateName,
  { port, pid }: Running,
  { call, streams }: Paced,
  windowMs: number,
): Promise<Figure> {
  const message = messageTo(CANDIDATES[name], port, call) ?? ''
  await testBed.execute({ kind: 'open', port, message, streams })
  await sleep(SETTLING_MS)
  await testBed.execute({ kind: 'forget' })
  const before = cpuSeconds(pid)
  await sleep(windowMs)
  const seen = await testBed.execute({ kind: 'tell' })
  const micros = (cpuSeconds(pid) - before) * 1e6
  testBed.finish()
  await testBed.execute({ kind: 'ended' })
  return {
    cost: micros / seen.events,
    p50: quantile(seen.latencies, 0.5),
    p99: quantile(seen.latencies, 0.99),
  }
}
