import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { channel, priced, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { open } from '../../test/fixtures/client.ts'
import { startFixture } from '../../test/fixtures/fixture.ts'
import { randomFrom } from '../../test/fixtures/random.ts'
import { streamedResponse } from '../../test/fixtures/responses-behaviour.ts'
import { openSocket, type SocketClient } from '../../test/fixtures/web-socket-client.ts'
import { ownCpuSeconds } from '../measuring/cpu-time.ts'
import { FULL } from '../measuring/effort.ts'
import { interleaved } from '../measuring/interleaved.ts'
import { residentKilobytes } from '../measuring/resident.ts'
import { spread } from '../measuring/statistics.ts'

/**
 * Measures WebSockets on one node: the memory and the CPU time of idle sockets and of running turns, and in turns the CPU time
 * and the latency of a turn beside those of the same request by POST.
 */
const { values: options } = parseArgs({
  options: {
    sockets: { type: 'string', default: '1000' },
    running: { type: 'string', default: '200' },
    turns: { type: 'string', default: '600' },
    rounds: { type: 'string', default: '8' },
    idle: { type: 'string', default: '60' },
  },
})
const SOCKETS = Number(options.sockets)
const RUNNING = Number(options.running)
const TURNS = Number(options.turns)
const ROUNDS = Number(options.rounds)
/** Seconds for which the CPU time of sockets that say nothing is measured: twice the time between two pings. */
const IDLE_S = Number(options.idle)
/** Turns of one socket that run at the same time, each in its lane. */
const LANES = 8
const AT_ONCE = 16

const fixture = await startFixture((upstream) => ({
  options: { retries: 0 },
  models: priced(['m', 'endless']),
  channels: ['m', 'endless'].map((name) =>
    channel(name, upstream.baseUrl(name), { protocol: name === 'm' ? 'responses' : 'chat' }),
  ),
  users: [ROOT, user(2, 'ann', [token('ann')])],
}))
process.once('exit', () => void fixture.close())
const { gateway, upstream } = fixture
upstream.script('m', streamedResponse({ text: 'Hello there, friend.' }))
upstream.script('endless', { kind: 'stream', events: 3, ending: 'stall' })

const byPost = async (): Promise<void> => {
  const answer = await open(
    gateway.url,
    { model: 'm', input: 'hi', stream: true },
    { key: 'ann', path: '/v1/responses' },
  )
  await answer.end()
}
const bySocket = async (client: SocketClient): Promise<void> =>
  void (await client.turn({ model: 'm', input: 'hi' }))

/** Makes calls side by side; resolves to the CPU time and the latency of one, in microseconds. */
async function made(
  calls: number,
  call: (client: number) => Promise<void>,
): Promise<{ cost: number; p50: number }> {
  const took: number[] = []
  let left = calls
  const before = ownCpuSeconds(gateway.pid)
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, client) => {
      while (left-- > 0) {
        const began = performance.now()
        await call(client)
        took.push((performance.now() - began) * 1000)
      }
    }),
  )
  const cost = ((ownCpuSeconds(gateway.pid) - before) * 1e6) / calls
  return { cost, p50: spread(took)?.median ?? 0 }
}

// Memory is measured first: afterwards, there is room that earlier calls have left.
const warm = await openSocket(gateway.url, 'ann')
await bySocket(warm)
warm.socket.terminate()
const idleBefore = residentKilobytes(gateway.pid)
const openingBefore = ownCpuSeconds(gateway.pid)
const idle: SocketClient[] = []
while (idle.length < SOCKETS)
  idle.push(...(await Promise.all(Array.from({ length: 100 }, () => openSocket(gateway.url, 'ann')))))
const idleAfter = residentKilobytes(gateway.pid)
const opening = ((ownCpuSeconds(gateway.pid) - openingBefore) * 1e6) / idle.length
console.log(
  `${idle.length} idle sockets: ${((idleAfter - idleBefore) / idle.length).toFixed(1)} KiB each, opened in ${opening.toFixed(0)} CPU µs each`,
)

const busy = idle.slice(0, Math.ceil(RUNNING / LANES))
for (const client of busy)
  for (let lane = 0; lane < LANES; lane++)
    client.send({ type: 'response.create', model: 'endless', input: 'hi', stream_id: `lane-${lane}` })
const lanesOf = ({ events }: SocketClient): number => new Set(events.map(({ stream_id: id }) => id)).size
while (busy.some((client) => lanesOf(client) < LANES)) await setTimeout(20)
const runningAfter = residentKilobytes(gateway.pid)
const turns = busy.length * LANES
console.log(`${turns} running turns: ${((runningAfter - idleAfter) / turns).toFixed(1)} KiB each`)

// Last, because the memory of earlier calls is given back meanwhile.
const quietBefore = ownCpuSeconds(gateway.pid)
await setTimeout(IDLE_S * 1000)
const quiet = ((ownCpuSeconds(gateway.pid) - quietBefore) * 1000) / IDLE_S
console.log(
  `${idle.length} sockets with ${turns} turns that wait for providers: ${quiet.toFixed(1)} CPU ms a second`,
)
for (const { socket } of idle) socket.terminate()

const clients = await Promise.all(Array.from({ length: AT_ONCE }, () => openSocket(gateway.url, 'ann')))
const ways = {
  post: () => made(TURNS, byPost),
  socket: () => made(TURNS, (client) => bySocket(clients[client] as SocketClient)),
}
for (const way of Object.values(ways)) await way()
const rounds = await interleaved(
  ['post', 'socket'] as const,
  { ...FULL, rounds: [ROUNDS, ROUNDS] },
  randomFrom(20_261_127),
  (name) => ways[name](),
)
for (const [figure, title] of [
  ['cost', 'CPU µs'],
  ['p50', 'median µs'],
] as const) {
  const of = (name: 'post' | 'socket'): number[] => rounds.map((round) => round[name]?.[figure] ?? 0)
  const ratio = spread(of('socket').map((value, at) => value / (of('post')[at] ?? 1)))
  console.log(
    `${title}: by POST ${spread(of('post'))?.median.toFixed(0)}, a turn ${spread(of('socket'))?.median.toFixed(0)}, ratio ${ratio?.median.toFixed(2)} (${ratio?.p25.toFixed(2)} to ${ratio?.p75.toFixed(2)})`,
  )
}

for (const { socket } of clients) socket.terminate()
await fixture.close()
process.exit()
