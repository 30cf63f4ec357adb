import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { randomFrom } from '../../test/fixtures/random.ts'
import { CANDIDATES } from '../candidates/candidates.ts'
import { cores } from '../measuring/cores.ts'
import { type Clients, openConsoles, openReaders, sessions } from '../race/consoles/open-consoles.ts'
import { cpuSeconds } from '../measuring/cpu-time.ts'
import { FULL } from '../measuring/effort.ts'
import { interleaved } from '../measuring/interleaved.ts'
import { measureArrivals } from '../race/kinds/arrivals.ts'
import { warmed } from '../race/kinds/saturated.ts'
import { messageTo } from '../load/requests.ts'
import { SCENARIOS } from '../race/scenarios.ts'
import { spread } from '../measuring/statistics.ts'
import { openTestBed } from '../race/test-bed.ts'

/**
 * Measures the cost for the relay of people who watch the log: ten readers of the live stream of calls, and
 * ten open consoles with their lists and sums. Each round measures all cases in a different order, and each
 * case is compared with the measurement of that round without them. Prints medians and quartiles of these
 * ratios.
 */
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    consoles: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '5' },
    latency: { type: 'boolean', default: false },
  },
})
const ROUNDS = Number(positionals[0] ?? 8)
const COUNT = Number(options.consoles)
const SLICE_MS = Number(options.seconds) * 1000
const CONNECTIONS = 64
/** Number of calls by which the speed of this machine is determined. */
const STEP = 5_000
const STREAMS_EACH = 2
const CASES = ['alone', 'readers', 'consoles'] as const

// The clients are in this process, and take nothing from the core of the measured program.
if (cores) spawnSync('taskset', ['-acp', cores.others, String(process.pid)], { stdio: 'ignore' })
await using testBed = await openTestBed(['sluice'])
const running = testBed.running.get('sluice')
if (!running) throw new Error(testBed.skipped.join())
const { port, pid } = running
const url = `http://127.0.0.1:${port}`
const scenario = SCENARIOS['whole-2kb']
const message = messageTo(CANDIDATES.sluice, port, scenario.call) ?? ''
const saturate = (requests: number) =>
  testBed.execute({ kind: 'saturate', port, message, requests, connections: CONNECTIONS })

const OPEN: Readonly<Record<string, (cookies: readonly string[]) => Promise<Clients>>> = {
  alone: () => openReaders(url, []),
  readers: (cookies) => openReaders(url, cookies.slice(0, COUNT / STREAMS_EACH), STREAMS_EACH),
  consoles: (cookies) => openConsoles(url, cookies),
}

const cookies = await sessions(url, COUNT)
await warmed(testBed, 'sluice', running, scenario, FULL.firstWarmUp, FULL.cpuMicros)
const began = performance.now()
await saturate(STEP)
const requests = Math.round((STEP * SLICE_MS) / (performance.now() - began))
let sent = 0
const rounds = await interleaved(
  CASES,
  { ...FULL, rounds: [ROUNDS, ROUNDS] },
  randomFrom(20_261_122),
  async (name) => {
    const clients = await OPEN[name]?.(cookies)
    if (!clients) throw new Error(name)
    const started = performance.now()
    const before = cpuSeconds(pid)
    if (!options.latency) await saturate(requests)
    const cost = ((cpuSeconds(pid) - before) * 1e6) / requests
    const perSecond = (requests / (performance.now() - started)) * 1000
    const figure = options.latency
      ? await measureArrivals(testBed, 'sluice', running, SCENARIOS['rate-500'], SLICE_MS)
      : { cost, p50: perSecond }
    await clients[Symbol.asyncDispose]()
    sent += clients.sent()
    return figure
  },
)

const FIGURES = options.latency
  ? ([
      ['cost', 'CPU µs a call'],
      ['p50', 'added p50 µs'],
      ['p99', 'added p99 µs'],
    ] as const)
  : ([
      ['cost', 'CPU µs a call'],
      ['p50', 'calls a second'],
    ] as const)
for (const [figure, title] of FIGURES) {
  const of = (name: string): number[] => rounds.map((round) => round[name]?.[figure] ?? 0)
  const alone = of('alone')
  console.log(`${title}: alone ${spread(alone)?.median.toFixed(1)}`)
  for (const name of CASES.slice(1)) {
    const ratios = spread(of(name).map((value, n) => value / (alone[n] ?? 1)))
    console.log(
      `  with ${COUNT} ${name}: ${spread(of(name))?.median.toFixed(1)}, ratio ${ratios?.median.toFixed(3)} (${ratios?.p25.toFixed(3)} to ${ratios?.p75.toFixed(3)})`,
    )
  }
}
console.log(
  `${rounds.length} rounds of ${options.latency ? `${SLICE_MS} ms` : `${requests} calls`}; the clients were sent ${sent} calls`,
)
