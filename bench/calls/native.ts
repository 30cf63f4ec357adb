import process from 'node:process'
import { parseArgs } from 'node:util'
import { randomFrom } from '../../test/fixtures/random.ts'
import { shuffled } from '../measuring/interleaved.ts'
import { costOfRequest } from '../race/kinds/saturated.ts'
import { SCENARIOS } from '../race/scenarios.ts'
import { type Spread, spread } from '../measuring/statistics.ts'
import { openTestBed } from '../race/test-bed.ts'

/**
 * Measures the cost of a native call of each dialect, unstreamed and 2 KB in size, relative to one of chat:
 * CPU time of one gateway that serves them alternately, in a different order each round. `--check` fails if
 * the median of a dialect's ratios exceeds the limit.
 */
const LIMIT = 1.1
const DIALECTS = ['whole-2kb', 'whole-2kb-responses', 'whole-2kb-gemini'] as const
const BASE = DIALECTS[0]
const WARM_UP_ROUNDS = 4
const WARM_UP = 5_000

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
})
const ROUNDS = options.quick ? 11 : 41
const REQUESTS = 2_000

type Costs = Record<(typeof DIALECTS)[number], number>

async function main(): Promise<number> {
  console.log(`node ${process.version}, seed ${options.seed}`)
  const random = randomFrom(Number(options.seed))
  await using testBed = await openTestBed(['sluice'])
  const sluice = testBed.running.get('sluice')
  if (!sluice) throw new Error(testBed.skipped.join('\n'))
  const round = async (requests: number): Promise<Costs> => {
    const costs = { 'whole-2kb': 0, 'whole-2kb-responses': 0, 'whole-2kb-gemini': 0 }
    for (const name of shuffled(DIALECTS, random))
      costs[name] = await costOfRequest(testBed, 'sluice', sluice, SCENARIOS[name], requests)
    return costs
  }
  for (let i = 0; i < WARM_UP_ROUNDS; i++) await round(WARM_UP)
  const rounds: Costs[] = []
  for (let i = 0; i < ROUNDS; i++) rounds.push(await round(REQUESTS))

  let isWithin = true
  for (const name of DIALECTS) {
    const micros = spreadOf(rounds.map((costs) => costs[name]))
    const ratio = spreadOf(rounds.map((costs) => costs[name] / costs[BASE]))
    console.log(`${name.padEnd(20)} ${written(micros, 0)} µs, ${written(ratio, 3)} × chat`)
    if (ratio.median > LIMIT) isWithin = false
  }
  if (isWithin) return 0
  console.log(`a native call costs more than ${LIMIT} times one of chat`)
  return options.check ? 1 : 0
}

function spreadOf(values: readonly number[]): Spread {
  return spread(values) ?? { median: 0, p25: 0, p75: 0 }
}

function written({ median, p25, p75 }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${p25.toFixed(digits)} to ${p75.toFixed(digits)})`
}

process.exitCode = await main()
