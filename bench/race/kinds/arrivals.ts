import type { Call, Running } from '../../candidates/candidate.ts'
import { CANDIDATES, type CandidateName } from '../../candidates/candidates.ts'
import { cpuSeconds } from '../../measuring/cpu-time.ts'
import type { Figure } from '../../measuring/figure.ts'
import { messageTo } from '../../load/requests.ts'
import type { TestBed } from '../test-bed.ts'
import { quantile } from '../../measuring/statistics.ts'

/** Calls that arrive at a fixed rate. */
export interface Arrivals {
  readonly call: Call
  readonly perSecond: number
}

/** Minimum number of calls in a measurement. */
const MIN_CALLS = 60

/**
 * Measures CPU microseconds per request, and the latency in addition to the time for which the upstream held
 * the response.
 */
export async function measureArrivals(
  testBed: TestBed,
  name: CandidateName,
  { port, pid }: Running,
  { call, perSecond }: Arrivals,
  windowMs: number,
): Promise<Figure> {
  const message = messageTo(CANDIDATES[name], port, call) ?? ''
  const seconds = Math.max(windowMs / 1000, MIN_CALLS / perSecond)
  const before = cpuSeconds(pid)
  const seen = await testBed.execute({ kind: 'arrive', port, message, perSecond, seconds })
  const micros = (cpuSeconds(pid) - before) * 1e6
  return {
    cost: micros / seen.events,
    p50: quantile(seen.latencies, 0.5),
    p99: quantile(seen.latencies, 0.99),
  }
}
