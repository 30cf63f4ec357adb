import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Call, Running } from '../candidates/candidate.ts'
import { sluice, startSluice } from '../candidates/sluice.ts'
import { cpuSeconds, ownCpuSeconds } from '../measuring/cpu-time.ts'
import { execute } from '../load/execute.ts'
import type { Order } from '../load/orders.ts'
import { messageTo } from '../load/requests.ts'
import { nextMessage, type Started, startHelper } from '../measuring/started.ts'
import { PACE_MS } from '../load/wire.ts'

/**
 * Measures the cost of a call in a gateway of several workers, relative to one of a single process: CPU time
 * of all its processes per call, both alternately on the same core. Then shows how the time is divided
 * between the owner and the workers, and what follows for eight cores. `--check` fails if a median ratio
 * exceeds the limit.
 */
const LIMIT = 1.15
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    workers: { type: 'string', default: '2' },
  },
})
const ROUNDS = options.quick ? 5 : 11
const WARM_UP = 40_000
const REQUESTS = options.quick ? 3_000 : 6_000
const SECONDS = options.quick ? 2 : 4

const call: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2000 }

type Load = (port: number) => Order
const LOADS: Readonly<Record<string, Load>> = {
  '64 connections': (port) => saturate(port, REQUESTS),
  '500 a second': (port) => ({
    kind: 'arrive',
    port,
    message: messageTo(sluice, port, call) ?? '',
    perSecond: 500,
    seconds: SECONDS,
  }),
  '50 a second': (port) => ({
    kind: 'arrive',
    port,
    message: messageTo(sluice, port, call) ?? '',
    perSecond: 50,
    seconds: 2 * SECONDS,
  }),
}

function saturate(port: number, requests: number): Order {
  return { kind: 'saturate', port, message: messageTo(sluice, port, call) ?? '', requests, connections: 64 }
}

/** Microseconds of CPU time per call. */
async function perCall(generator: Started, { port, pid }: Running, load: Load): Promise<number> {
  const before = cpuSeconds(pid)
  const { events } = await execute(generator, load(port))
  return ((cpuSeconds(pid) - before) * 1e6) / events
}

async function main(): Promise<number> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-workers-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const upstream = opened.use(startHelper('load/lean-upstream.ts'))
  const upstreamPort = await nextMessage<number>(upstream)
  const generator = opened.use(startHelper('load/generator.ts'))
  await nextMessage(generator)
  const started = async (workers: number): Promise<Running> => {
    const own = join(folder, `${workers}`)
    mkdirSync(own)
    return opened.use(await startSluice(upstreamPort, own, workers))
  }
  const one = await started(1)
  const several = await started(Number(options.workers))
  for (const { port } of [one, several]) await execute(generator, saturate(port, WARM_UP))
  let worst = 0
  for (const [name, load] of Object.entries(LOADS)) {
    const ratios: number[] = []
    const costs: [number, number][] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      // Alternates the order, so that other load affects both.
      const first = round % 2 === 0 ? await perCall(generator, one, load) : undefined
      const withWorkers = await perCall(generator, several, load)
      const alone = first ?? (await perCall(generator, one, load))
      costs.push([alone, withWorkers])
      ratios.push(withWorkers / alone)
    }
    const ratio = median(ratios)
    worst = Math.max(worst, ratio)
    const [alone, withWorkers] = [0, 1].map((side) => median(costs.map((pair) => pair[side] ?? 0)))
    // Other work on the machine can only add to a cost.
    const [least = 1, leastWithWorkers = 1] = [0, 1].map((side) =>
      Math.min(...costs.map((pair) => pair[side] ?? 0)),
    )
    console.log(
      `${name}: ${alone?.toFixed(0)} µs of CPU a call in one process, ${withWorkers?.toFixed(0)} µs with ` +
        `${options.workers} workers; median ratio ${ratio.toFixed(2)} ` +
        `(${ratios
          .map((value) => value.toFixed(2))
          .toSorted()
          .join(' ')}); at the least ${least.toFixed(0)} and ${leastWithWorkers.toFixed(0)} µs, ratio ` +
        (leastWithWorkers / least).toFixed(2),
    )
  }
  const short = async (port: number): Promise<number> =>
    (await execute(generator, saturate(port, REQUESTS))).events
  const streams = async (port: number): Promise<number> => stream(generator, upstream, port)
  for (const [name, run] of [
    ['short calls', short],
    [`streams of ${STREAM_EVENTS} events`, streams],
  ] as const) {
    const { owner, workers } = await divided(one.pid, () => run(one.port))
    console.log(division(name, owner + workers, await divided(several.pid, () => run(several.port))))
  }
  return options.check && worst > LIMIT ? 1 : 0
}

/** Number of events of each measured stream, and of concurrent streams. */
const STREAM_EVENTS = 300
const STREAMS = options.quick ? 100 : 200

/** Runs streams of 300 events at the upstream's pace to their end. Returns their number. */
async function stream(generator: Started, upstream: Started, port: number): Promise<number> {
  const paced: Call = { ...call, behaviour: 'paced' }
  const message = messageTo(sluice, port, paced) ?? ''
  await execute(generator, { kind: 'open', port, message, streams: STREAMS })
  await sleep(STREAM_EVENTS * PACE_MS)
  upstream.child.send('finish')
  await execute(generator, { kind: 'ended' })
  return STREAMS
}

/** Microseconds of CPU time of the owner, and of its workers, per call. */
async function divided(pid: number, run: () => Promise<number>): Promise<{ owner: number; workers: number }> {
  const [own, all] = [ownCpuSeconds(pid), cpuSeconds(pid)]
  const calls = await run()
  const owner = ((ownCpuSeconds(pid) - own) * 1e6) / calls
  return { owner, workers: ((cpuSeconds(pid) - all) * 1e6) / calls - owner }
}

/**
 * Formats a line about one kind of call. The owner is assumed to use at most one core, so that eight cores
 * serve as many calls as the owner can, or as all processes can.
 */
function division(
  name: string,
  alone: number,
  { owner, workers }: { owner: number; workers: number },
): string {
  const micros = Math.max(owner, (owner + workers) / 8)
  return (
    `${name}: ${owner.toFixed(0)} µs of the owner and ${workers.toFixed(0)} µs of workers a call; 8 cores carry ` +
    `${(alone / micros).toFixed(1)} times the calls of one process (${alone.toFixed(0)} µs)`
  )
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

process.exitCode = await main()
