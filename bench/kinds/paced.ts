import { setTimeout as sleep } from 'node:timers/promises'
import type { Call, Running } from '../candidate.ts'
import { CANDIDATES, type Name } from '../candidates.ts'
import { cpuSeconds } from '../cpu-time.ts'
import type { Figure } from '../figure.ts'
import { messageTo } from '../requests.ts'
import type { Stage } from '../stage.ts'
import { quantile } from '../statistics.ts'

/** Streams whose upstream sends at a fixed pace. */
export interface Paced {
  readonly call: Call
  readonly streams: number
}

const SETTLING_MS = 300

/** Measures CPU microseconds per event while all streams run, and the latency of each event. */
export async function measurePaced(
  stage: Stage,
  name: Name,
  { port, pid }: Running,
  { call, streams }: Paced,
  windowMs: number,
): Promise<Figure> {
  const message = messageTo(CANDIDATES[name], port, call) ?? ''
  await stage.tell({ kind: 'open', port, message, streams })
  await sleep(SETTLING_MS)
  await stage.tell({ kind: 'forget' })
  const before = cpuSeconds(pid)
  await sleep(windowMs)
  const seen = await stage.tell({ kind: 'tell' })
  const micros = (cpuSeconds(pid) - before) * 1e6
  stage.finish()
  await stage.tell({ kind: 'ended' })
  return {
    cost: micros / seen.events,
    p50: quantile(seen.latencies, 0.5),
    p99: quantile(seen.latencies, 0.99),
  }
}
