import { residentBytes } from '../equipment/resident-memory.ts'
import type { ArrivalsResult, Latencies } from './arrivals.ts'
import { type LoadPlan, setLoadStage } from './load-stage.ts'

/** How many more calls come than can be served, and for how long. */
export interface OverloadPlan extends LoadPlan {
  /** Callers that wait for their answers: they find out how many can be served. */
  readonly callers: number
  readonly measuredSeconds: number
  readonly times: number
  readonly seconds: number
  /** What it may take until it is seen that more come than can be served. */
  readonly settlingSeconds: number
  /** How long after the storm calls come again, and what part of what can be served. */
  readonly restSeconds: number
  readonly afterwards: number
}

/** What came of it. */
export interface OverloadReport {
  /** Calls served in a second, at the most that the same run found, and of the storm. */
  readonly most: number
  readonly served: number
  /** Of the storm: answers by status, 0 for none. */
  readonly counts: ArrivalsResult['counts']
  /** Milliseconds from when a call was due. */
  readonly answers: Latencies | undefined
  readonly refusals: Latencies | undefined
  /** Of both, once it is seen that more come than can be served. */
  readonly settledAnswers: Latencies | undefined
  readonly settledRefusals: Latencies | undefined
  readonly sentLate: Latencies
  /** Answers by status, of the calls that came when it was over. */
  readonly afterwards: ArrivalsResult['counts']
  readonly residentMb: number
  /** Answers with 200, and rows that were charged: the same. */
  readonly answered: number
  readonly charged: number
}

/** Offers a gateway several times what it can serve, which is measured before. */
export async function runOverload(plan: OverloadPlan): Promise<OverloadReport> {
  const stage = await setLoadStage(plan)
  let residentMb = 0
  const look = setInterval(() => {
    residentMb = Math.max(residentMb, residentBytes(stage.gateway.pid) / 1e6)
  }, 500)
  try {
    const { callers, measuredSeconds, times, seconds, settlingSeconds } = plan
    const warm = await stage.arrive({ callers }, measuredSeconds / 2)
    const calm = await stage.arrive({ callers }, measuredSeconds)
    const most = servedIn(calm, measuredSeconds)
    const storm = await stage.arrive({ perSecond: most * times }, seconds, { settlingSeconds })
    await new Promise((resolve) => setTimeout(resolve, plan.restSeconds * 1000))
    const after = await stage.arrive({ perSecond: most * plan.afterwards }, measuredSeconds)
    const all = [warm, calm, storm, after]
    return {
      most,
      served: servedIn(storm, seconds),
      counts: storm.counts,
      answers: storm.latencies['200'],
      refusals: storm.latencies['503'],
      settledAnswers: storm.settled['200'],
      settledRefusals: storm.settled['503'],
      sentLate: storm.sentLate,
      afterwards: after.counts,
      residentMb: Math.round(residentMb),
      answered: all.reduce((sum, { counts }) => sum + (counts['200'] ?? 0), 0),
      charged: stage.charged(),
    }
  } finally {
    clearInterval(look)
    await stage.close()
  }
}

function servedIn({ bySecond }: ArrivalsResult, seconds: number): number {
  return bySecond.slice(0, seconds).reduce((sum, answers) => sum + (answers['200'] ?? 0), 0) / seconds
}
