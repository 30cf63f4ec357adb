import { setTimeout as sleep } from 'node:timers/promises'
import type { Running } from '../candidates/candidate.ts'
import { earlierCheckout } from '../candidates/sluice.ts'
import type { CandidateName } from '../candidates/candidates.ts'
import type { Effort } from '../measuring/effort.ts'
import type { Figure, Round } from '../measuring/figure.ts'
import { interleaved } from '../measuring/interleaved.ts'
import { measureArrivals } from './kinds/arrivals.ts'
import { measureBursts } from './kinds/bursts.ts'
import { measureIdleMemory } from './kinds/idle-memory.ts'
import { measurePaced } from './kinds/paced.ts'
import { measureSaturated, warmed } from './kinds/saturated.ts'
import { STARTS, StartUps } from './kinds/start-up.ts'
import { measureStreamMemory } from './kinds/stream-memory.ts'
import { SCENARIOS, type Scenario } from './scenarios.ts'
import type { TestBed } from './test-bed.ts'

/** Measures a scenario in rounds, with those of its candidates that could be started. */
export async function measure(
  testBed: TestBed,
  scenario: Scenario,
  candidates: readonly CandidateName[],
  effort: Effort,
  random: () => number,
): Promise<Round[]> {
  const names = candidates.filter((name) => testBed.running.has(name))
  const running = (name: CandidateName): Running =>
    testBed.running.get(name) ?? { port: 0, pid: 0, ...NOTHING }
  const rounds = (one: (name: CandidateName) => Promise<Figure>): Promise<Round[]> =>
    interleaved(names, effort, random, (name) => retry(testBed, () => one(name)))
  switch (scenario.kind) {
    case 'saturated': {
      const requests = new Map<CandidateName, number>()
      for (const name of names)
        requests.set(
          name,
          await retry(testBed, () =>
            warmed(testBed, name, running(name), scenario, effort.warmUp, effort.cpuMicros),
          ),
        )
      return rounds((name) =>
        measureSaturated(testBed, name, running(name), scenario, requests.get(name) ?? 0),
      )
    }
    case 'paced':
      for (const name of names)
        await retry(testBed, () => measurePaced(testBed, name, running(name), scenario, WARM_UP_MS))
      return rounds((name) => measurePaced(testBed, name, running(name), scenario, effort.windowMs))
    case 'arrivals':
      for (const name of names)
        await retry(testBed, () => measureArrivals(testBed, name, running(name), scenario, WARM_UP_MS))
      return rounds((name) => measureArrivals(testBed, name, running(name), scenario, effort.windowMs))
    case 'bursts':
      return await retry(testBed, () => measureBursts(testBed, names, scenario, effort.pauses, random))
    case 'stream memory':
      return interleaved(names, { ...effort, rounds: [1, 2] }, random, (name) =>
        retry(testBed, () => measureStreamMemory(testBed, name, scenario)),
      )
    case 'idle memory':
      return interleaved(names, { ...effort, rounds: [1, 1] }, random, (name) =>
        retry(testBed, () => measureIdleMemory(testBed, name, scenario)),
      )
    case 'start-up': {
      using startUps = new StartUps()
      const starts = STARTS.filter((start) => !start.startsWith('earlier') || earlierCheckout.folder !== '')
      for (const start of starts) if (start.endsWith('later')) await startUps.measure(start)
      return await interleaved(starts, effort, random, (start) => startUps.measure(start))
    }
  }
}

/** Warms up the compiler before anything is measured. */
export async function warmUp(testBed: TestBed, effort: Effort): Promise<void> {
  for (const [name, running] of testBed.running)
    if (running.pid > 0)
      await retry(testBed, () =>
        warmed(testBed, name, running, SCENARIOS['whole-2kb'], effort.firstWarmUp, effort.cpuMicros),
      )
}

/** Repeats the measurement if a busy machine refused a call. */
async function retry<Value>(testBed: TestBed, one: () => Promise<Value>): Promise<Value> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await one()
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
      console.error(`measured again: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`)
      await testBed.recover()
      await sleep(PAUSE_MS)
    }
  }
}

const ATTEMPTS = 4
const PAUSE_MS = 2000
const WARM_UP_MS = 400
const NOTHING = { [Symbol.asyncDispose]: () => Promise.resolve() }
