import { type Call, type Running } from '../candidate.ts'
import { CANDIDATES, type CandidateName } from '../candidates.ts'
import { cpuSeconds } from '../cpu-time.ts'
import type { WarmUp } from '../effort.ts'
import type { Figure } from '../figure.ts'
import { messageTo } from '../requests.ts'
import type { TestBed } from '../test-bed.ts'

/** Calls back to back on so many connections, and units in each call (1, or the events of a stream). */
export interface Saturated {
  readonly call: Call
  readonly connections: number
  readonly units: number
}

/** Bounds of the number of requests in a measurement. */
const MIN_REQUESTS = 200
const MAX_REQUESTS = 10_000
/** Requests in one step of the warm-up. */
const WARM_UP_STEP = 1000

/** Warms a candidate up, and finds how many requests cost the intended CPU time. */
export async function warmed(
  testBed: TestBed,
  name: CandidateName,
  running: Running,
  saturated: Saturated,
  warmUp: WarmUp,
  cpuMicros: number,
): Promise<number> {
  let each = 0
  let spent = 0
  for (let sent = 0; sent < warmUp.requests && spent < warmUp.cpuMicros; sent += WARM_UP_STEP) {
    each = await perRequest(testBed, name, running, saturated, WARM_UP_STEP)
    spent += each * WARM_UP_STEP
  }
  return Math.round(Math.min(MAX_REQUESTS, Math.max(MIN_REQUESTS, cpuMicros / Math.max(1, each))))
}

/** Measures CPU microseconds per unit. */
export async function measureSaturated(
  testBed: TestBed,
  name: CandidateName,
  running: Running,
  saturated: Saturated,
  requests: number,
): Promise<Figure> {
  return { cost: (await perRequest(testBed, name, running, saturated, requests)) / saturated.units }
}

async function perRequest(
  testBed: TestBed,
  name: CandidateName,
  { port, pid }: Running,
  { call, connections, units }: Saturated,
  requests: number,
): Promise<number> {
  const message = messageTo(CANDIDATES[name], port, call) ?? ''
  const before = cpuSeconds(pid)
  const { events } = await testBed.execute({ kind: 'saturate', port, message, requests, connections })
  const micros = (cpuSeconds(pid) - before) * 1e6
  if (units > 1 && events !== units * requests)
    throw new Error(`${name} passed on ${events} events of ${units * requests}`)
  return micros / requests
}
