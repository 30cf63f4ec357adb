import { setTimeout as sleep } from 'node:timers/promises'
import type { Call, Running } from '../../candidates/candidate.ts'
import type { CandidateName } from '../../candidates/candidates.ts'
import type { Figure, Round } from '../../measuring/figure.ts'
import { shuffled } from '../../measuring/interleaved.ts'
import type { TestBed } from '../test-bed.ts'
import { costOfRequest } from './saturated.ts'

/** Bursts of calls, with idle times before and between them, in separate processes. */
export interface Bursts {
  readonly call: Call
  readonly connections: number
}

/** Parts of the measurement; they are appended to the name of a candidate in the table. */
const FIRST_CALLS = 'calls 2,000 to 4,000'
const AFTER_4_S = 'after 4 s'
const AFTER_15_S = 'after 15 s'

/** Idle time before the first call, in which this gateway releases the memory of its start. */
const QUIET_AFTER_START_MS = 4500
const QUIET_MS = 4000
/** Number of short pauses in a long one, which lasts at least 15 seconds. */
const PAUSES_IN_A_LONG_ONE = 4
const CALLS_BEFORE = 2000
const FIRST_MEASURED = 2000
const CALLS_UNTIL_STEADY = 16_000
const CALLS_OF_A_BURST = 3000
const STEADY_MEASUREMENTS = 3

/** A process, and the cost of a call in it under load. */
interface Subject {
  readonly name: CandidateName
  readonly running: Running
  /** True if it gets a burst after each short pause. */
  readonly isOften: boolean
  readonly steady: number
}

/**
 * Measures CPU microseconds per call: of the first calls of a process, and of bursts after pauses, each
 * together with the steady cost in the same process. Each candidate has two processes: one gets a burst after
 * each pause, the other after every fourth.
 */
export async function measureBursts(
  testBed: TestBed,
  names: readonly CandidateName[],
  bursts: Bursts,
  pauses: number,
  random: () => number,
): Promise<Round[]> {
  await using opened = new AsyncDisposableStack()
  const cost = (name: CandidateName, running: Running, requests: number): Promise<number> =>
    costOfRequest(testBed, name, running, { ...bursts, units: 1 }, requests)
  const started: Pick<Subject, 'name' | 'running' | 'isOften'>[] = []
  for (const name of names)
    for (const isOften of [true, false])
      started.push({ name, running: opened.use(await testBed.startAnother(name)), isOften })
  await sleep(QUIET_AFTER_START_MS)

  const beginnings: [Record<string, Figure>, Record<string, Figure>] = [{}, {}]
  const subjects: Subject[] = []
  for (const one of shuffled(started, random)) {
    const { name, running } = one
    await cost(name, running, CALLS_BEFORE)
    const first = await cost(name, running, FIRST_MEASURED)
    await cost(name, running, CALLS_UNTIL_STEADY)
    const costs: number[] = []
    for (let i = 0; i < STEADY_MEASUREMENTS; i++) costs.push(await cost(name, running, CALLS_OF_A_BURST))
    const steady = costs.toSorted((a, b) => a - b)[1] ?? 0
    subjects.push({ ...one, steady })
    beginnings[one.isOften ? 0 : 1][`${name}, ${FIRST_CALLS}`] = { cost: first, steady }
  }
  const rounds: Round[] = beginnings
  for (let pause = 1; pause <= pauses; pause++) {
    await sleep(QUIET_MS)
    const isLong = pause % PAUSES_IN_A_LONG_ONE === 0
    const round: Record<string, Figure> = {}
    for (const { name, running, isOften, steady } of shuffled(subjects, random))
      if (isOften || isLong)
        round[`${name}, ${isOften ? AFTER_4_S : AFTER_15_S}`] = {
          cost: await cost(name, running, CALLS_OF_A_BURST),
          steady,
        }
    rounds.push(round)
  }
  return rounds
}
