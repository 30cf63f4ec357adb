import { parseArgs } from 'node:util'
import { randomFrom } from '../../test/fixtures/random.ts'
import { cores } from '../measuring/cores.ts'
import { interleaved } from '../measuring/interleaved.ts'
import { nextMessage, type Started, startHelper } from '../measuring/started.ts'
import { type Spread, spread } from '../measuring/statistics.ts'
import { type ClientName, CLIENTS } from './upstream-client/clients.ts'
import type { Driven, DriveOrder } from './upstream-client/driver.ts'

/**
 * Measures the cost of a request with the upstream client (`packages/http1/src/client/`), as a ratio to
 * undici's dispatcher, alone and with the same batching: CPU time of a process that only sends and receives.
 * Each client has its own process, and they take turns within a round. A difference is significant if the
 * quartiles of the ratios, which compare measurements of one round, lie on the same side of 1.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const ROUNDS = Number(options.rounds)

type Load = Omit<DriveOrder, 'client' | 'port'>
interface Case {
  readonly name: string
  readonly load: Load
  readonly warmUps: number
}

const CASES: readonly Case[] = [
  {
    name: 'whole answers, requests of 2 KB, 64 connections',
    load: { behaviour: 'whole', bytes: 2_000, connections: 64, requests: 6_000 },
    warmUps: 4,
  },
  {
    name: 'whole answers, requests of 100 KB, 16 connections',
    load: { behaviour: 'whole', bytes: 100_000, connections: 16, requests: 1_500 },
    warmUps: 2,
  },
  {
    name: 'streams of 200 events at once, 16 connections',
    load: { behaviour: 'burst', bytes: 2_000, connections: 16, requests: 2_000 },
    warmUps: 2,
  },
  {
    name: '200 streams of 20 events/s, for each event',
    load: { behaviour: 'paced', bytes: 2_000, connections: 200, windowMs: 1_000 },
    warmUps: 1,
  },
]

interface Result {
  readonly name: string
  /** CPU microseconds of each client. */
  readonly micros: Readonly<Record<string, number>>
  /** Cost of our client divided by that of another. */
  readonly oursOver: Readonly<Record<string, Spread>>
}

const names = Object.keys(CLIENTS) as ClientName[]
const random = randomFrom(Number(options.seed))

async function measure(one: Case, cost: (name: ClientName, load: Load) => Promise<number>): Promise<Result> {
  for (let i = 0; i < one.warmUps; i++) for (const name of names) await cost(name, one.load)
  const effort = { rounds: [ROUNDS, ROUNDS], budgetMs: 0 } as const
  const rounds = await interleaved(names, effort, random, async (name) => ({
    cost: await cost(name, one.load),
  }))
  const figures = (name: ClientName): number[] => rounds.map((round) => round[name]?.cost ?? 0)
  const over = (name: ClientName): Spread =>
    spread(figures('ours').map((ours, at) => ours / (figures(name)[at] ?? 0))) ?? {
      median: 0,
      p25: 0,
      p75: 0,
    }
  return {
    name: one.name,
    micros: Object.fromEntries(names.map((name) => [name, spread(figures(name))?.median ?? 0])),
    oursOver: Object.fromEntries(names.filter((name) => name !== 'ours').map((name) => [name, over(name)])),
  }
}

async function main(): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const upstream = opened.use(startHelper('load/lean-upstream.ts'))
  const port = await nextMessage<number>(upstream)
  const drivers = new Map<ClientName, Started>()
  for (const name of names) {
    const driver = opened.use(startHelper('parts/upstream-client/driver.ts', cores?.measured))
    await nextMessage(driver)
    drivers.set(name, driver)
  }
  const cost = async (name: ClientName, load: Load): Promise<number> => {
    const driver = drivers.get(name) as Started
    const order: DriveOrder = { client: name, port, ...load }
    driver.child.send(order)
    let driven = await nextMessage<Driven | 'observed'>(driver)
    if (driven === 'observed') {
      upstream.child.send('finish')
      driven = await nextMessage<Driven>(driver)
    }
    if (driven.failed > 0) throw new Error(`${name}: ${driven.failed} requests failed`)
    return driven.cpuMicros / driven.units
  }
  const results: Result[] = []
  for (const one of CASES) {
    const result = await measure(one, cost)
    results.push(result)
    if (options.json) continue
    console.log(result.name)
    for (const name of names) {
      const over = result.oursOver[name]
      const ratio = over
        ? `, ours ${over.median.toFixed(2)} times that (quartiles ${over.p25.toFixed(2)} and ${over.p75.toFixed(2)})`
        : ''
      console.log(`  ${name}: ${result.micros[name]?.toFixed(1)} µs${ratio}`)
    }
  }
  if (options.json) console.log(JSON.stringify({ rounds: ROUNDS, results }, null, 2))
}

await main()
