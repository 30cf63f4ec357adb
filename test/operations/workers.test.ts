import { afterAll, expect, test, vi } from 'vitest'
import { call } from '../fixtures/client.ts'
import { isAlive, workerPids } from '../fixtures/worker-pids.ts'
import { sluice } from '../fixtures/command.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { type Program, runProgram } from './program.ts'

const programs: Program[] = []
afterAll(async () => {
  for (const program of programs) {
    program.kill('SIGKILL')
    await program.exit
    program.folder.discard()
  }
})

async function run(...options: Parameters<typeof runProgram>): Promise<Program> {
  const program = await runProgram(...options)
  programs.push(program)
  return program
}

/** A long timeout, because these waits assert nothing about time. */
const SOON = { timeout: 60_000, interval: 50 }

test.each(['0', 'x', '129'])(
  'an invalid number of workers is refused before anything is started: %s',
  async (workers) => {
    const program = await run({ config: {}, env: { WORKERS: workers } })
    expect((await program.exit).code).toBe(1)
    expect(program.err()).toContain('WORKERS: expected a number from 1 to 128, or auto')
  },
)

test('several workers with PostgreSQL are refused with a message that says what to do instead', async () => {
  const program = await run({
    config: {},
    env: { WORKERS: '2', DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' },
  })
  expect((await program.exit).code).toBe(1)
  expect(program.err()).toMatch(/^sluice cannot start: several workers share the embedded database/)
})

test('a gateway with workers on a port in use reports the port once, and leaves no process running', async () => {
  const one = await run({ config: {}, env: { WORKERS: '2' } })
  await one.ready()
  const two = await run({ config: {}, port: one.port, env: { WORKERS: '2' } })
  expect((await two.exit).code).toBe(1)
  expect(two.err()).toMatch(/^sluice cannot start: port \d+ of 127\.0\.0\.1 is taken/)
  expect(two.err().match(/taken/g)).toHaveLength(1)
})

test("with PORT=0 all workers listen on the one port that is printed, and the first user's credentials are printed once", async () => {
  const program = await run({ config: {}, env: { WORKERS: '3', PORT: '0', HOST: '127.0.0.1' } })
  await vi.waitFor(() => expect(program.out()).toMatch(/API key/), SOON)
  const [, url = ''] = /listens on (http:\S+)/.exec(program.out()) ?? []
  expect(program.out().match(/A root user was created/g)).toHaveLength(1)
  const [key = ''] = /sk-\w+/.exec(program.out()) ?? []
  for (let turn = 0; turn < 12; turn += 1) {
    const { status } = await call(url, undefined, { method: 'GET', path: '/v1/models', key: key.slice(3) })
    expect(status).toBe(200)
  }
})

test('SIGINT to the whole process group, as from a terminal, stops a gateway and its workers with exit code 0', async () => {
  const program = await run({ config: {}, env: { WORKERS: '2' }, group: true })
  await program.ready()
  const pids = workerPids(program.pid)
  program.kill('SIGINT')
  expect((await program.exit).code).toBe(0)
  expect(pids.filter(isAlive)).toEqual([])
  expect(program.err()).toBe('')
})

test('commands reach a gateway with workers, also after its first worker was replaced', async () => {
  const program = await run({ config: {}, env: { WORKERS: '2' } })
  await program.ready()
  const env = { DATA_DIR: program.folder.path, GATEWAY_SECRET }
  expect((await sluice(['user', 'create', 'ann', '--quota', '100'], env)).code).toBe(0)
  const [first = 0] = workerPids(program.pid)
  process.kill(first, 'SIGKILL')
  await vi.waitFor(async () => {
    const { out } = await sluice(['user', 'list'], env)
    expect(workerPids(program.pid)).not.toContain(first)
    expect(out).toContain('ann')
  }, SOON)
})

test('log lines that several workers write stay whole, and name their worker', async () => {
  const program = await run({ config: {}, env: { WORKERS: '2' } })
  await program.ready()
  const paths = Array.from({ length: 400 }, (_, index) => `/v1/models?page=${index}`)
  await Promise.all(paths.map((path) => call(program.url, undefined, { method: 'GET', path, key: 'x' })))
  await vi.waitFor(() => {
    const lines = program.log().filter(({ msg }) => msg === 'request')
    expect(lines.filter(({ path }) => path === '/v1/models')).toHaveLength(paths.length)
    expect(new Set(lines.map(({ worker }) => worker))).toEqual(new Set([1, 2]))
  }, SOON)
  for (const line of program.out().split('\n'))
    if (line.startsWith('{')) expect(() => JSON.parse(line) as unknown).not.toThrow()
})
