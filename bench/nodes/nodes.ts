import type { ChildProcess } from 'node:child_process'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { plainConfiguration } from '../../test/fixtures/configuration.ts'
import type { RunningGateway } from '../../test/fixtures/gateway.ts'
import { startCluster } from '../../test/fixtures/cluster.ts'
import type { ArrivalsOrder, ArrivalsResult } from '../../test/load/arrivals.ts'
import { nextMessage, start } from '../../test/load/child.ts'
import { cpuSeconds } from '../measuring/cpu-time.ts'

/**
 * Measures the cost of a call on three nodes that share PostgreSQL and Redis, relative to that on one of
 * them: CPU time of the nodes per call, with each node called at the same rate. `--check` fails if the median
 * ratio exceeds the limit.
 */
const LIMIT = 1.15
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    rate: { type: 'string', default: '300' },
  },
})
const ROUNDS = options.quick ? 5 : 15
const SECONDS = options.quick ? 3 : 6
const PER_SECOND = Number(options.rate)
const WARM_UPS = 3
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 500 })

const children: ChildProcess[] = []
const child = (name: string): ChildProcess => {
  const started = start(new URL(name, import.meta.url))
  children.push(started)
  return started
}

/** Microseconds of CPU time per call, on these nodes. */
async function perCall(
  nodes: readonly RunningGateway[],
  generators: readonly ChildProcess[],
): Promise<number> {
  const used = (): number => nodes.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0)
  const before = used()
  const results = await Promise.all(
    nodes.map((node, index) => {
      const generator = generators[index]
      if (!generator) throw new Error('each node needs a generator')
      const order: ArrivalsOrder = {
        port: node.port,
        key: 'ann',
        body: BODY,
        seconds: SECONDS,
        pace: { perSecond: PER_SECOND },
      }
      const result = nextMessage<ArrivalsResult>(generator)
      generator.send(order)
      return result
    }),
  )
  for (const { counts } of results)
    if (Object.keys(counts).join() !== '200')
      throw new Error(`not every call was answered: ${JSON.stringify(counts)}`)
  return ((used() - before) / (nodes.length * PER_SECOND * SECONDS)) * 1e6
}

async function main(): Promise<number> {
  const port = await nextMessage<number>(child('../load/lean-upstream.ts'))
  const ground = await startCluster({
    nodes: 3,
    configure: () => plainConfiguration(`http://127.0.0.1:${port}/v1`),
  })
  try {
    const { nodes } = ground.fleet
    const generators = nodes.map(() => child('../../test/load/arrivals.ts'))
    // Warms up the compiler on every node before the first measurement.
    for (let warm = 0; warm < WARM_UPS; warm++) await perCall(nodes, generators)
    const ratios: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const alone = nodes.slice(round % nodes.length, (round % nodes.length) + 1)
      // Alternates both and their order, so that other load affects both.
      const before = round % 2 === 0 ? await perCall(alone, generators) : undefined
      const three = await perCall(nodes, generators)
      const one = before ?? (await perCall(alone, generators))
      ratios.push(three / one)
      console.log(
        `round ${round + 1}: ${one.toFixed(0)} µs of CPU a call over one node, ${three.toFixed(0)} µs over three, ratio ${(three / one).toFixed(2)}`,
      )
    }
    const ratio = median(ratios)
    console.log(
      `median ratio ${ratio.toFixed(2)} (limit ${LIMIT}): CPU of three nodes a call over that of one`,
    )
    return options.check && ratio > LIMIT ? 1 : 0
  } finally {
    await ground.clear()
    for (const one of children) one.kill()
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle) - 1] ?? 0)) / 2
}

process.exitCode = await main()
