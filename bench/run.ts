import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { channel, priced, ROOT, token, user } from '../test/equipment/configuration.ts'
import { startGateway } from '../test/equipment/gateway.ts'
import { cpuSeconds } from './cpu-time.ts'
import type { LoadOrder, LoadResult } from './load.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
})
const ROUNDS = options.quick ? 5 : 15
const REQUESTS = options.quick ? 4000 : 10_000
const CONNECTIONS = 64
const LIMIT = 'whole answers of 2 KB, 64 connections: CPU of the gateway over a bare forwarder'

interface Measured {
  /** Microseconds of CPU time a request. */
  readonly bare: number
  readonly gateway: number
  readonly ratio: number
}

const children: ChildProcess[] = []

/** Starts a program of this folder. */
function start(name: string, ...args: string[]): ChildProcess {
  const child = fork(new URL(name, import.meta.url), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

/** What it says next. */
function told<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void =>
      reject(new Error(`a process of the measurement ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message as Message)
    })
  })
}

async function main(): Promise<number> {
  const upstreamPort = await told<number>(start('./lean-upstream.ts'))
  const bare = start('./bare-forwarder.ts', `http://127.0.0.1:${upstreamPort}`)
  const barePort = await told<number>(bare)
  const generator = start('./load.ts')
  const gateway = await startGateway({
    config: {
      models: priced(['bench']),
      channels: [channel('bench', `http://127.0.0.1:${upstreamPort}/v1`)],
      users: [ROOT, user(2, 'ann', [token('bench')])],
    },
  })
  const perRequest = async (pid: number, port: number, requests: number): Promise<number> => {
    const before = cpuSeconds(pid)
    const order: LoadOrder = { port, key: 'bench', requests, connections: CONNECTIONS }
    const result = told<LoadResult>(generator)
    generator.send(order)
    const { failed } = await result
    if (failed > 0) throw new Error(`${failed} of ${requests} requests failed at port ${port}`)
    return ((cpuSeconds(pid) - before) / requests) * 1e6
  }
  try {
    const candidates = { bare: [bare.pid ?? 0, barePort], gateway: [gateway.pid, gateway.port] } as const
    // Neither is measured before the compiler has had its say.
    for (let warm = 0; warm < 3; warm++)
      for (const [pid, port] of Object.values(candidates)) await perRequest(pid, port, REQUESTS)
    const rounds: Measured[] = []
    for (let round = 0; round < ROUNDS; round++) {
      // Interleaved, and in turns, so that a neighbour's load meets both.
      const order = round % 2 === 0 ? (['bare', 'gateway'] as const) : (['gateway', 'bare'] as const)
      const cost = { bare: 0, gateway: 0 }
      for (const name of order) cost[name] = await perRequest(...candidates[name], REQUESTS)
      rounds.push({ ...cost, ratio: cost.gateway / cost.bare })
      if (!options.json) print(rounds.length, rounds.at(-1))
    }
    return report(rounds)
  } finally {
    await gateway.discard()
    for (const child of children) child.kill()
  }
}

function print(round: number, measured: Measured | undefined): void {
  if (!measured) return
  const { bare, gateway, ratio } = measured
  console.log(
    `round ${round}: bare ${bare.toFixed(0)} µs, gateway ${gateway.toFixed(0)} µs of CPU a request, ratio ${ratio.toFixed(2)}`,
  )
}

function report(rounds: readonly Measured[]): number {
  const limits = JSON.parse(readFileSync(new URL('./limits.json', import.meta.url), 'utf8')) as Record<
    string,
    number
  >
  const limit = limits[LIMIT] ?? 0
  const ratio = median(rounds.map((round) => round.ratio))
  const bare = median(rounds.map((round) => round.bare))
  const gateway = median(rounds.map((round) => round.gateway))
  if (options.json)
    console.log(JSON.stringify({ name: LIMIT, rounds, median: { bare, gateway, ratio }, limit }, null, 2))
  else console.log(`median ratio ${ratio.toFixed(2)} (limit ${limit}): ${LIMIT}`)
  return options.check && ratio > limit ? 1 : 0
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle) - 1] ?? 0)) / 2
}

process.exitCode = await main()
