import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { afterEach, expect, test } from 'vitest'
import { sluice } from '../fixtures/command.ts'
import { isStopped } from '../fixtures/process-state.ts'
import { freePort } from '../fixtures/port.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { temporaryFolder } from '../stores/rows.ts'
import { discard, type Program, type ProgramOptions, runProgram } from './program.ts'
import { atNight } from '../runner/tier.ts'

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'sluice.mjs')
const START: ProgramOptions = {}
const DEMO: ProgramOptions = { command: [process.execPath, BIN, 'demo'] }

const programs: Program[] = []
afterEach(async () => {
  for (const program of programs.splice(0).toReversed()) await discard(program)
})

async function run(options: ProgramOptions): Promise<Program> {
  const program = await runProgram({ ownProcess: true, ...options })
  programs.push(program)
  return program
}

/** Digest and modification time of each file of a folder; sockets have no digest. */
function stateOf(folder: string): unknown {
  return readdirSync(folder).map((name) => {
    const path = join(folder, name)
    const { mtimeMs, mode } = statSync(path)
    const isFile = statSync(path).isFile()
    return [name, mode, mtimeMs, isFile && createHash('sha256').update(readFileSync(path)).digest('hex')]
  })
}

test.each([
  ['start', START],
  ['demo', DEMO],
])(
  "while %s runs on a data folder, a second start exits with the first one's process id, and changes no file",
  async (_, one) => {
    const first = await run({ config: {}, ...one })
    await first.ready()
    const { folder } = first
    // The first process is stopped, because its own writes would count as changes.
    first.kill('SIGSTOP')
    await expect.poll(() => isStopped(first.pid)).toBe(true)
    const before = stateOf(folder.path)
    const others = [START, DEMO].map(async (other) => {
      const second = await run({ folder, port: await freePort(), ...other })
      return [(await second.exit).code, second.out(), second.err()]
    })
    const told =
      `sluice cannot start: the data folder ${folder.path} is in use by process ${first.pid}: ` +
      'stop the gateway that runs on it, or choose another DATA_DIR\n'
    expect(await Promise.all(others)).toEqual(others.map(() => [1, '', told]))
    expect(stateOf(folder.path)).toEqual(before)
  },
)

test("after kill -9 the next start can use the data folder, even if another process got the killed one's process id", async () => {
  const killed = await run({ config: {} })
  await killed.ready()
  const { folder } = killed
  killed.kill('SIGKILL')
  await killed.exit
  const name = join(folder.path, 'lock.pid')
  const text = readFileSync(name, 'utf8')
  expect(text).toContain(String(killed.pid))
  // The process of this test is running, and is not a gateway.
  writeFileSync(name, text.replace(String(killed.pid), String(process.pid)))
  const next = await run({ folder })
  await next.ready()
  const second = await run({ folder, port: await freePort() })
  expect((await second.exit).code).toBe(1)
  expect(second.err()).toContain(`is in use by process ${next.pid}:`)
})

test('while a gateway runs on a database, a start or a command with another data folder is refused, and says which folder it has', async () => {
  const database = join(temporaryFolder(), 'accounts.db')
  const env = { DATABASE_URL: `sqlite:${database}`, GATEWAY_SECRET }
  const first = await run({ config: {}, env })
  await first.ready()
  const told = `the database ${database} is in use by the gateway on ${first.folder.path}: set DATA_DIR to that folder, or choose another DATABASE_URL`
  const starts = [START, DEMO].map(async (other) => {
    const second = await run({ config: {}, ...other, env })
    return [(await second.exit).code, second.out(), second.err()]
  })
  expect(await Promise.all(starts)).toEqual(starts.map(() => [1, '', `sluice cannot start: ${told}\n`]))
  const command = async (...args: string[]) => {
    const { code, err } = await sluice(args, { ...env, DATA_DIR: temporaryFolder() })
    return [code, err]
  }
  expect(await command('user', 'disable', 'root')).toEqual([1, `sluice: ${told}\n`])
  expect(await command('secret', 'change')).toEqual([1, expect.stringContaining(told)])
  expect((await sluice(['user', 'list'], { ...env, DATA_DIR: first.folder.path })).code).toBe(0)
  first.kill('SIGTERM')
  await first.exit
  expect(await command('user', 'list')).toEqual([0, ''])
})

atNight(
  'with an empty DATA_DIR, which counts as unset, the demo has its own folder until its end',
  async () => {
    const program = await run({ ...DEMO, env: { DATA_DIR: '' } })
    await program.ready()
    program.kill('SIGTERM')
    expect(await program.exit).toMatchObject({ code: 0 })
  },
)
