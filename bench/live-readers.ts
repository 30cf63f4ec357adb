import process from 'node:process'
import { ROOT } from '../test/equipment/configuration.ts'
import { CERTAINLY_GONE_MS, type LiveResponse, open } from '../test/equipment/client.ts'
import { logIn } from '../test/equipment/console.ts'
import { randomFrom } from '../test/equipment/random.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { FULL } from './effort.ts'
import { interleaved } from './interleaved.ts'
import { measureArrivals } from './kinds/arrivals.ts'
import { CANDIDATES } from './candidates.ts'
import { messageTo } from './requests.ts'
import { SCENARIOS } from './scenarios.ts'
import { quantile } from './statistics.ts'
import { openTestBed } from './test-bed.ts'

/**
 * Measures what ten readers of the live stream of calls cost the relay: calls a second with 16 connections
 * back to back, and the added latency of 500 calls a second; rounds with and without readers by turns.
 * `node bench/live-readers.ts [ROUNDS]`.
 */
const SESSIONS = 5
const STREAMS_EACH = 2
const REQUESTS = 6_000
const CONNECTIONS = 16
const WINDOW_MS = 4_000
const ROUNDS = Number(process.argv[2] ?? 12)
const CASES = ['alone', 'ten readers'] as const

await using testBed = await openTestBed(['sluice'])
const running = testBed.running.get('sluice')
if (!running) throw new Error(testBed.skipped.join())
const { port } = running
const url = `http://127.0.0.1:${port}`
const cookies: string[] = []
for (let n = 0; n < SESSIONS; n += 1)
  cookies.push((await logIn(url, { access_token: ROOT.access_token })).cookie)

const message = messageTo(CANDIDATES.sluice, port, SCENARIOS['whole-2kb'].call) ?? ''
const saturate = (requests: number) =>
  testBed.execute({ kind: 'saturate', port, message, requests, connections: CONNECTIONS })

/** Opens ten streams of all calls. */
async function readers(): Promise<readonly LiveResponse[]> {
  const opened: LiveResponse[] = []
  for (const cookie of cookies)
    for (let n = 0; n < STREAMS_EACH; n += 1) {
      const stream = await open(url, undefined, {
        method: 'GET',
        path: '/api/log/stream',
        headers: { cookie },
      })
      if (stream.status !== 200) throw new Error(`${stream.status}: ${(await stream.end()).text}`)
      opened.push(stream)
    }
  return opened
}

for (let n = 0; n < 3; n += 1) await saturate(REQUESTS)
let sent = 0
const rounds = await interleaved(
  CASES,
  { ...FULL, rounds: [ROUNDS, ROUNDS] },
  randomFrom(20_261_122),
  async (name) => {
    const streams = name === 'alone' ? [] : await readers()
    const began = performance.now()
    await saturate(REQUESTS)
    const perSecond = (REQUESTS / (performance.now() - began)) * 1000
    const { p50 = 0, p99 = 0 } = await measureArrivals(
      testBed,
      'sluice',
      running,
      SCENARIOS['rate-500'],
      WINDOW_MS,
    )
    await sleep(CERTAINLY_GONE_MS)
    for (const stream of streams) stream.abort()
    for (const stream of streams) sent += (await stream.end()).text.split('event: call').length - 1
    return { cost: perSecond, p50, p99 }
  },
)

for (const figure of ['cost', 'p50', 'p99'] as const) {
  const of = (name: string): number[] => rounds.map((round) => round[name]?.[figure] ?? 0)
  const ratios = of('ten readers').map((value, n) => value / (of('alone')[n] ?? 1))
  const median = (values: readonly number[]): number =>
    quantile(
      values.toSorted((a, b) => a - b),
      0.5,
    )
  console.log(
    `${figure === 'cost' ? 'calls a second' : `${figure} µs`}: alone ${median(of('alone')).toFixed(0)}, with ten readers ${median(of('ten readers')).toFixed(0)}, ratio by rounds ${median(ratios).toFixed(3)}`,
  )
}
console.log(`${rounds.length} rounds; the readers were sent ${sent} calls`)
