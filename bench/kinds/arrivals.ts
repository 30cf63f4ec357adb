import type { Call, Running } from '../candidate.ts'
import { CANDIDATES, type Name } from '../candidates.ts'
import { cpuSeconds } from '../cpu-time.ts'
import type { Figure } from '../figure.ts'
import { messageTo } from '../requests.ts'
import type { Stage } from '../stage.ts'
import { quantile } from '../statistics.ts'

/** Calls that arrive at a fixed rate. */
export interface Arrivals {
  readonly call: Call
  readonly perSecond: number
}

/** CPU microseconds a request, and how long an answer took beyond the time that the upstream held it for. */
export async function measureArrivals(
  stage: Stage,
  name: Name,
  { port, pid }: Running,
  { call, perSecond }: Arrivals,
  windowMs: number,
): Promise<Figure> {
  const message = messageTo(CANDIDATES[name], port, call) ?? ''
  const before = cpuSeconds(pid)
  const seen = await stage.tell({ kind: 'arrive', port, message, perSecond, seconds: windowMs / 1000 })
  const micros = (cpuSeconds(pid) - before) * 1e6
  return {
    cost: micros / seen.events,
    p50: quantile(seen.latencies, 0.5),
    p99: quantile(seen.latencies, 0.99),
  }
}
