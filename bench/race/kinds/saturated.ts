import { type Call, type Running } from '../../candidates/candidate.ts'
import { CANDIDATES, type CandidateName } from '../../candidates/candidates.ts'
import { cpuSeconds } from '../../measuring/cpu-time.ts'
import type { WarmUp } from '../../measuring/effort.ts'
import type { Figure } from '../../measuring/figure.ts'
import { messageTo } from '../../load/requests.ts'
import type { TestBed } from '../test-bed.ts'

/**
 * Calls in immediate succession on a number of connections, and the units in each call (1, or the events of a
 * stream).
 */
export interface Saturated {
  readonly call: Call
  readonly connections: number
  readonly units: number
}

/** Bounds of the number of requests in a measurement. */
const MIN_REQUESTS = 40
const MAX_REQUESTS = 10_000
/** Requests in the first step of the warm-up, and the maximum in a step. */
const FIRST_STEP = 50
const WARM_UP_STEP = 1000

/** Warms up a candidate, and finds the number of requests that cost the intended CPU time. */
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
  let sent = 0
  while (sent < warmUp.requests && spent < warmUp.cpuMicros) {
    const affordable = Math.ceil((warmUp.cpuMicros - spent) / Math.max(1, each))
    const step = sent === 0 ? FIRST_STEP : Math.max(FIRST_STEP, Math.min(WARM_UP_STEP, affordable))
    each = await costOfRequest(testBed, name, running, saturated, step)
    spent += each * step
    sent += step
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
  return { cost: (await costOfRequest(testBed, name, running, saturated, requests)) / saturated.units }
}

/** CPU microseconds per request, over this number of requests. */
export async function costOfRequest(
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
