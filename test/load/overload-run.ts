import { residentBytes } from '../fixtures/resident-memory.ts'
import type { ArrivalsResult, Latencies } from './arrivals.ts'
import { type LoadPlan, startLoadFixture } from './load-fixture.ts'

/** The overload and its duration. */
export interface OverloadPlan extends LoadPlan {
  /** Clients in a closed loop, which measure the capacity. */
  readonly clients: number
  readonly measuredSeconds: number
  readonly times: number
  readonly seconds: number
  /** Seconds until the gateway detects the overload. */
  readonly settlingSeconds: number
  /** Seconds after the storm in which calls are made again, and their rate as a share of the capacity. */
  readonly restSeconds: number
  readonly afterwards: number
}

/** The result of an overload. */
export interface OverloadReport {
  /** Calls served per second: the capacity measured in the same run, and during the storm. */
  readonly capacity: number
  readonly served: number
  /** Responses during the storm by status, 0 for none. */
  readonly counts: ArrivalsResult['counts']
  readonly unanswered: ArrivalsResult['unanswered']
  /** Milliseconds from the time at which a call was due. */
  readonly answers: Latencies | undefined
  readonly refusals: Latencies | undefined
  /** Latencies of responses and refusals after the overload was detected. */
  readonly settledAnswers: Latencies | undefined
  readonly settledRefusals: Latencies | undefined
  readonly sentLate: Latencies
  /** Responses by status after the storm. */
  readonly afterwards: ArrivalsResult['counts']
  readonly residentMb: number
  /** The number of responses with 200, and of charged rows, which must be equal. */
  readonly answered: number
  readonly charged: number
}

/** Sends a gateway several times its capacity, which is measured before. */
export async function runOverload(plan: OverloadPlan): Promise<OverloadReport> {
  const fixture = await startLoadFixture(plan)
  let residentMb = 0
  const look = setInterval(() => {
    residentMb = Math.max(residentMb, residentBytes(fixture.gateway.pid) / 1e6)
  }, 500)
  try {
    const { clients, measuredSeconds, times, seconds, settlingSeconds } = plan
    const warm = await fixture.arrive({ clients }, measuredSeconds / 2)
    const calm = await fixture.arrive({ clients }, measuredSeconds)
    const capacity = servedIn(calm, measuredSeconds)
    const storm = await fixture.arrive({ perSecond: capacity * times }, seconds, { settlingSeconds })
    await new Promise((resolve) => setTimeout(resolve, plan.restSeconds * 1000))
    const after = await fixture.arrive({ perSecond: capacity * plan.afterwards }, measuredSeconds)
    const all = [warm, calm, storm, after]
    return {
      capacity: capacity,
      served: servedIn(storm, seconds),
      counts: storm.counts,
      unanswered: storm.unanswered,
      answers: storm.latencies['200'],
      refusals: storm.latencies['503'],
      settledAnswers: storm.settled['200'],
      settledRefusals: storm.settled['503'],
      sentLate: storm.sentLate,
      afterwards: after.counts,
      residentMb: Math.round(residentMb),
      answered: all.reduce((sum, { counts }) => sum + (counts['200'] ?? 0), 0),
      charged: fixture.charged(),
    }
  } finally {
    clearInterval(look)
    await fixture.close()
  }
}

function servedIn({ bySecond }: ArrivalsResult, seconds: number): number {
  return bySecond.slice(0, seconds).reduce((sum, answers) => sum + (answers['200'] ?? 0), 0) / seconds
}
