import process from 'node:process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Patch } from '../../test/fixtures/patch.ts'
import { patchedProgram } from '../../test/fixtures/patched-copy.ts'
import type { Call, Running } from '../candidates/candidate.ts'
import { CANDIDATES } from '../candidates/candidates.ts'
import { startSluice } from '../candidates/sluice.ts'
import { cpuSeconds } from './cpu-time.ts'
import { execute } from '../load/execute.ts'
import { messageTo } from '../load/requests.ts'
import { nextMessage, type Started, startHelper } from './started.ts'
import { spread } from './statistics.ts'

const WARM_UP = 15_000
const REQUESTS = 2_000
const CONNECTIONS = 64
/**
 * Times that all sides are started anew: two processes of the same program differ by some percent for as long as they
 * run, by what was compiled when and by where their memory is.
 */
const STARTS = 6

/** One of the gateways that are compared. */
export interface Side {
  /** Changes to a copy of the sources; without them the gateway runs from this checkout. */
  readonly patches?: readonly Patch[]
  readonly env?: Readonly<Record<string, string>>
  /** Further sections of gateway.yaml, or a function that makes them for the port of the upstream. */
  readonly sections?:
    | Readonly<Record<string, unknown>>
    | ((upstreamPort: number) => Readonly<Record<string, unknown>>)
  /** What the calls of this side use. */
  readonly uses?: Call['uses']
}

type Spread = ReturnType<typeof spreadOf>

/** The CPU time of a call on each side. */
interface Compared<Name extends string> {
  /** Microseconds of CPU time per call. */
  readonly cost: (side: Name) => Spread
  /** Cost on one side divided by that on another, round by round. */
  readonly ratio: (above: Name, below: Name) => Spread
}

/**
 * Measures the same call on several gateways, alternately on the same core, and prints the number of rounds. All are
 * started several times, each time in another order, and each round begins with another one. `STARTS` of the environment sets
 * another number of starts.
 */
export async function compareSides<Name extends string>(
  sides: Readonly<Record<Name, Side>>,
  call: Call,
  roundCount: number,
): Promise<Compared<Name>> {
  await using opened = new AsyncDisposableStack()
  const upstream = opened.use(startHelper('load/lean-upstream.ts'))
  const upstreamPort = await nextMessage<number>(upstream)
  const generator = opened.use(startHelper('load/generator.ts'))
  await nextMessage(generator)
  const names = Object.keys(sides) as Name[]
  const roots = new Map<Name, string>()
  for (const name of names) {
    const { patches } = sides[name]
    if (!patches) continue
    const copy = await patchedProgram(patches)
    opened.defer(() => copy.discard())
    roots.set(name, copy.root)
  }
  const starts = Math.min(Number(process.env['STARTS'] ?? STARTS), roundCount)
  const rounds: Record<Name, number>[] = []
  for (let start = 0; start < starts; start += 1) {
    await using group = new AsyncDisposableStack()
    const folder = mkdtempSync(join(tmpdir(), 'sluice-sides-'))
    group.defer(() => rmSync(folder, { recursive: true, force: true }))
    const running: (readonly [Name, Running])[] = []
    for (const name of orderOf(names, start)) {
      const { env, sections } = sides[name]
      const own = join(folder, name)
      mkdirSync(own)
      const more = typeof sections === 'function' ? sections(upstreamPort) : sections
      const gateway = await startSluice(upstreamPort, own, roots.get(name), env, more)
      running.push([name, group.use(gateway)])
    }
    const callOf = (name: Name): Call => ({ ...call, uses: sides[name].uses })
    for (const [name, gateway] of running) await perCall(generator, gateway, callOf(name), WARM_UP)
    const until = Math.round((roundCount * (start + 1)) / starts)
    for (let round = rounds.length; round < until; round += 1) {
      const costs: [Name, number][] = []
      for (const [name, gateway] of orderOf(running, round))
        costs.push([name, await perCall(generator, gateway, callOf(name), REQUESTS)])
      rounds.push(Object.fromEntries(costs) as Record<Name, number>)
    }
  }
  console.log(
    `node ${process.version}, ${rounds.length} rounds of ${REQUESTS} calls in ${starts} starts, ${call.behaviour}`,
  )
  return {
    cost: (side) => spreadOf(rounds.map((costs) => costs[side])),
    ratio: (above, below) => spreadOf(rounds.map((costs) => costs[above] / costs[below])),
  }
}

/** Another order each time: each one is the first in turn, forwards and then backwards. */
function orderOf<One>(all: readonly One[], turn: number): readonly One[] {
  const first = turn % all.length
  const turned = [...all.slice(first), ...all.slice(0, first)]
  return Math.floor(turn / all.length) % 2 === 0 ? turned : turned.toReversed()
}

async function perCall(
  generator: Started,
  { port, pid }: Running,
  call: Call,
  requests: number,
): Promise<number> {
  const message = messageTo(CANDIDATES.sluice, port, call) ?? ''
  const before = cpuSeconds(pid)
  await execute(generator, { kind: 'saturate', port, message, requests, connections: CONNECTIONS })
  return ((cpuSeconds(pid) - before) * 1e6) / requests
}

function spreadOf(values: readonly number[]) {
  return spread(values) ?? { median: 0, p25: 0, p75: 0 }
}

/** A ratio as text: its median, and its quartiles. */
export function written({ median, p25, p75 }: Spread): string {
  return `${median.toFixed(3)} times (${p25.toFixed(3)} to ${p75.toFixed(3)})`
}
