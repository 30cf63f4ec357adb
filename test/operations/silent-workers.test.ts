import { setTimeout as sleep } from 'node:timers/promises'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { call, open } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { askStream } from '../fixtures/fixture.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { isAlive, workerPids } from '../fixtures/worker-pids.ts'
import { eventually, type Program, readyProgram } from './program.ts'

const WORKERS = 3

/** The statuses of requests on separate connections that are all opened at once. */
function statuses({ url }: Program, count: number): Promise<(number | string)[]> {
  const one = async (): Promise<number | string> => {
    const request = { method: 'GET', path: '/v1/models', key: 'unknown' }
    const answer = call(url, undefined, request).catch(String)
    const first = await Promise.race([answer, sleep(20_000, 'no answer', { ref: false })])
    return typeof first === 'string' ? first : first.status
  }
  return Promise.all(Array.from({ length: count }, one))
}

const all = (count: number): number[] => Array.from({ length: count }, () => 401)

/** The numbers of the workers that answered after a line of the log. */
function workersSince(program: Program, line: number): Set<unknown> {
  const requests = program
    .log()
    .slice(line)
    .filter(({ msg }) => msg === 'request')
  return new Set(requests.map(({ worker }) => worker))
}

test('a worker that is silent for two seconds gets no new connections, and serves again once it responds', async () => {
  const program = await readyProgram({ config: {}, env: { WORKERS: String(WORKERS) } })
  const [stopped = 0] = workerPids(program.pid)
  // Twice, because the others must return the connections that they took over, and be able to take them over
  // again.
  for (const _ of [1, 2]) {
    process.kill(stopped, 'SIGSTOP')
    const early = statuses(program, 50)
    // Those of the silent worker waited until the others took them over.
    expect(await early).toEqual(all(50))
    const before = program.log().length
    expect(await statuses(program, 200)).toEqual(all(200))
    for (let turn = 0; turn < 20; turn += 1) expect(await statuses(program, 1)).toEqual(all(1))
    expect(workersSince(program, before)).toEqual(new Set([2, 3]))
    process.kill(stopped, 'SIGCONT')
    await eventually(async () => {
      const line = program.log().length
      expect(await statuses(program, 30)).toEqual(all(30))
      return workersSince(program, line).size === WORKERS
    }, 'the worker serves again')
  }
  expect(isAlive(stopped)).toBe(true)
})

test('while a killed worker is replaced, every new connection is answered', async () => {
  const program = await readyProgram({ config: {}, env: { WORKERS: String(WORKERS) } })
  const [killed = 0] = workerPids(program.pid)
  process.kill(killed, 'SIGKILL')
  for (let turn = 0; turn < 20; turn += 1) expect(await statuses(program, 20)).toEqual(all(20))
  await eventually(async () => {
    const line = program.log().length
    expect(await statuses(program, 30)).toEqual(all(30))
    return workersSince(program, line).size === WORKERS
  }, 'another one serves')
})

test('a single worker that gets SIGTERM finishes its streams and is replaced, while others answer new requests', async () => {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const streams = Promise.withResolvers<void>()
  upstream.script('m', { kind: 'stream', endsAfter: streams.promise })
  const config = plainConfiguration(upstream.baseUrl('m'))
  const program = await readyProgram({ config, env: { WORKERS: String(WORKERS) } })
  // Enough streams that each worker has one: a worker stops once its streams have ended.
  const live = await Promise.all(
    Array.from({ length: 24 }, () => open(program.url, askStream('m'), { key: 'ann' })),
  )
  await Promise.all(live.map((stream) => stream.until(' word1')))
  const [leaving = 0] = workerPids(program.pid)
  process.kill(leaving, 'SIGTERM')
  // A late request on a connection of the stopping worker is refused; every request is answered.
  const early = await Promise.all(
    Array.from({ length: 20 }, (_, turn) => sleep(100 * turn).then(() => statuses(program, 20))),
  )
  expect(early.flat().filter((status) => status !== 401 && status !== 503)).toEqual([])
  streams.resolve()
  for (const { broken } of await Promise.all(live.map((stream) => stream.end()))) expect(broken).toBe(false)
  await eventually(() => !workerPids(program.pid).includes(leaving), 'it has ended')
  expect(await statuses(program, 20)).toEqual(all(20))
})
