import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Call, Running } from './candidate.ts'
import { CANDIDATES } from './candidates.ts'
import { startSluice } from './candidates/sluice.ts'
import { cpuSeconds } from './cpu-time.ts'
import { execute } from './load/execute.ts'
import { messageTo } from './requests.ts'
import { nextMessage, type Started, startHelper } from './started.ts'
import { spread } from './statistics.ts'

/**
 * Measures what guards cost a call that none applies to: CPU time of this gateway with a guard of another user, beside
 * that of one without guards, alternately on the same core. A second gateway with the guard shows how much two of the
 * same differ. `--check` fails if the median ratio exceeds the limit.
 */
const LIMIT = 1.01
const WARM_UP = 15_000
const REQUESTS = 2_000
const CONNECTIONS = 64

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'stating', bytes: 2_000 }

/** A guard that checks no call of the benchmark. */
const GUARDS = [{ name: 'secrets', do: 'block', match: { secrets: true }, users: ['nobody'] }]

const SIDES = ['without', 'with', 'same'] as const

async function main(): Promise<number> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-guard-cost-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const upstream = opened.use(startHelper('./lean-upstream.ts'))
  const upstreamPort = await nextMessage<number>(upstream)
  const generator = opened.use(startHelper('./load/generator.ts'))
  await nextMessage(generator)
  const running = new Map<(typeof SIDES)[number], Running>()
  for (const side of SIDES) {
    const own = join(folder, side)
    mkdirSync(own)
    running.set(
      side,
      opened.use(
        await startSluice(upstreamPort, own, 1, undefined, {}, { guards: side === 'without' ? [] : GUARDS }),
      ),
    )
  }
  const costOf = (side: (typeof SIDES)[number], requests: number): Promise<number> =>
    perCall(generator, running.get(side) as Running, requests)
  for (const side of SIDES) await costOf(side, WARM_UP)
  const rounds: Record<(typeof SIDES)[number], number>[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const costs = { without: 0, with: 0, same: 0 }
    // Begins with another side each round, so that other load affects all of them.
    for (let at = 0; at < SIDES.length; at += 1) {
      const side = SIDES[(round + at) % SIDES.length] ?? 'with'
      costs[side] = await costOf(side, REQUESTS)
    }
    rounds.push(costs)
  }
  const { median: without } = spreadOf(rounds.map((costs) => costs.without))
  const ratio = (above: 'with' | 'same', below: 'with' | 'without') =>
    spreadOf(rounds.map((costs) => costs[above] / costs[below]))
  const found = ratio('with', 'without')
  console.log(`node ${process.version}, ${ROUNDS} rounds of ${REQUESTS} calls`)
  console.log(`a call without guards: ${without.toFixed(0)} µs of CPU`)
  console.log(`with a guard of others, beside without: ${written(found)}`)
  console.log(`a second copy with a guard of others, beside without: ${written(ratio('same', 'without'))}`)
  console.log(`the same twice: ${written(ratio('same', 'with'))}`)
  if (found.median <= LIMIT) return 0
  console.log(`guards cost a call more than ${((LIMIT - 1) * 100).toFixed(0)} %`)
  return options.check ? 1 : 0
}

/** Microseconds of CPU time per call. */
async function perCall(generator: Started, { port, pid }: Running, requests: number): Promise<number> {
  const message = messageTo(CANDIDATES.sluice, port, CALL) ?? ''
  const before = cpuSeconds(pid)
  await execute(generator, { kind: 'saturate', port, message, requests, connections: CONNECTIONS })
  return ((cpuSeconds(pid) - before) * 1e6) / requests
}

function spreadOf(values: readonly number[]) {
  return spread(values) ?? { median: 0, p25: 0, p75: 0 }
}

function written({ median, p25, p75 }: ReturnType<typeof spreadOf>): string {
  return `${median.toFixed(3)} times (${p25.toFixed(3)} to ${p75.toFixed(3)})`
}

process.exitCode = await main()
