import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { databaseOf } from '../fixtures/database.ts'
import { call } from '../fixtures/client.ts'
import { SECRET, sluice } from '../fixtures/command.ts'
import {
  discard,
  eventually,
  type Folder,
  newFolder,
  type Program,
  type ProgramOptions,
  runProgram,
} from './program.ts'

const CONFIG = { models: { m: { price: { input: 1, output: 1 } } } }

const programs: Program[] = []
afterAll(async () => {
  await Promise.all(programs.map(discard))
})

async function run(options: ProgramOptions): Promise<Program> {
  const program = await runProgram(options)
  programs.push(program)
  return program
}

/** A copy of a data folder as an operator has it after a start and a stop. */
async function usedFolder(): Promise<Folder> {
  const { path } = await (used ??= useFolder())
  const folder = newFolder()
  cpSync(path, folder.path, { recursive: true })
  return folder
}

let used: Promise<Folder> | undefined
async function useFolder(): Promise<Folder> {
  const program = await run({ config: CONFIG })
  await program.ready()
  program.kill('SIGTERM')
  expect((await program.exit).code).toBe(0)
  return program.folder
}

/** Asserts that the program exits with 1 and a sentence, without a stack and without standard output. */
async function refusal(options: ProgramOptions): Promise<string> {
  return refusalOf(await run({ ...options, ownProcess: true }))
}

async function refusalOf(program: Program): Promise<string> {
  expect(await program.exit).toMatchObject({ code: 1, signal: null })
  expect(program.err()).not.toMatch(/^\s+at /m)
  expect(program.out()).toBe('')
  return program.err()
}

function fingerprint(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

const keyIn = (text: string): string => /API key\s+sk-(\S+)/.exec(text)?.[1] ?? ''

describe.concurrent('a gateway that cannot start prints a hint, exits with 1, and damages nothing', () => {
  test('a start on a port in use fails before anything is created, and the next start prints the first credentials', async () => {
    const other = createServer((_, response) => response.end('mine'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    const program = await run({ config: CONFIG, port, ownProcess: true })
    expect(await refusalOf(program)).toMatch(new RegExp(`port ${port} .*taken.*set PORT`))
    expect((await call(`http://127.0.0.1:${port}`, undefined, { method: 'GET', path: '/' })).text).toBe(
      'mine',
    )
    const closed = new Promise((resolve) => other.close(resolve))
    other.closeAllConnections()
    await closed

    const next = await run({ folder: program.folder, port })
    await next.ready()
    // `expect.poll` needs the current test, which is lost when tests run concurrently.
    await eventually(() => keyIn(next.out()) !== '', 'the first credentials are printed')
    const key = keyIn(next.out())
    expect((await call(next.url, { model: 'm', messages: [] }, { key })).status).not.toBe(401)
  })

  test('a gateway does not start on a data folder in use, and the running gateway continues', async () => {
    const holder = await run({ config: CONFIG })
    await holder.ready()
    expect(await refusal({ folder: holder.folder })).toMatch(/data folder .* in use.*another DATA_DIR/)
    await eventually(() => keyIn(holder.out()) !== '', 'the first credentials are printed')
    const key = keyIn(holder.out())
    expect((await call(holder.url, { model: 'm', messages: [] }, { key })).status).not.toBe(401)
  })

  test('a start with another GATEWAY_SECRET than that of the database fails, and leaves the database unchanged', async () => {
    const folder = await usedFolder()
    const other = { GATEWAY_SECRET: 'quite-another-secret-0123456789' }
    const before = fingerprint(join(folder.path, 'sluice.db'))
    expect(await refusal({ folder, env: other })).toMatch(/another secret.*set GATEWAY_SECRET/)
    expect(fingerprint(join(folder.path, 'sluice.db'))).toBe(before)
    const again = await run({ folder })
    await again.ready()
  })

  test('a start without the secret of the database fails, and makes none that would look like it', async () => {
    const folder = await usedFolder()
    const before = fingerprint(join(folder.path, 'sluice.db'))
    expect(await refusal({ folder, env: { GATEWAY_SECRET: '' } })).toMatch(
      /GATEWAY_SECRET is not set, and there is no file "secret" in .*made with/,
    )
    expect(existsSync(join(folder.path, 'secret'))).toBe(false)
    expect(fingerprint(join(folder.path, 'sluice.db'))).toBe(before)
  })

  test.each([
    [
      'with an unknown key and a variable that is not set',
      'options:\n  retrys: 3\n  metrics_token: "${NOT_THERE}"\n',
      /gateway\.yaml:2: options\.retrys: .*retries[^]*gateway\.yaml:3: .*NOT_THERE/,
    ],
    ['that is no YAML', 'options:\n  retries: [1\nchannels:\n', /gateway\.yaml:\d+: /],
  ])('a start with a gateway.yaml %s fails, and names file and line', async (_, config, said) => {
    const told = await refusal({ config })
    expect(told).toMatch(said)
    expect(told).toContain('Nothing was started')
  })

  test('a start with an unreadable or missing gateway.yaml fails', async () => {
    const folder = newFolder()
    mkdirSync(folder.configFile)
    expect(await refusal({ folder })).toMatch(/gateway\.yaml: expected a file that can be read/)
    const absent = newFolder()
    expect(await refusal({ folder: absent })).toMatch(/there is none at .*gateway\.yaml/)
  })

  test('a start with a data file that is not a database fails, and leaves the file unchanged', async () => {
    const folder = newFolder()
    const file = join(folder.path, 'sluice.db')
    writeFileSync(file, 'this was never a database, and it is longer than a page header. '.repeat(100))
    const before = fingerprint(file)
    expect(await refusal({ folder, config: CONFIG })).toMatch(/sluice\.db is not a database.*backup/)
    expect(fingerprint(file)).toBe(before)
  })

  test('a start and commands with the database of another program fail, and leave its content and mode unchanged', async () => {
    const folder = newFolder()
    const file = join(folder.path, 'one-api.db')
    const foreign = new DatabaseSync(file)
    foreign.exec('CREATE TABLE users (id INTEGER); CREATE TABLE options (key TEXT)')
    foreign.close()
    chmodSync(file, 0o644)
    const before = fingerprint(file)
    const env = { DATABASE_URL: `sqlite:${file}`, GATEWAY_SECRET: SECRET }
    const told = /database of another program \(tables options, users\).*"sluice import"/
    expect(await refusal({ folder, config: CONFIG, env })).toMatch(told)
    const onFile = { ...env, DATA_DIR: folder.path, GATEWAY_SECRET_NEW: `another-${SECRET}` }
    for (const command of ['logs', 'user create ann', 'schema', 'secret change'])
      expect(await sluice(command.split(' '), onFile)).toMatchObject({
        code: 1,
        out: '',
        err: expect.stringMatching(told),
      })
    expect([fingerprint(file), statSync(file).mode & 0o777]).toEqual([before, 0o644])
  })

  test('a command with a database that another program keeps locked fails, and leaves its mode unchanged', async () => {
    const folder = newFolder()
    const file = join(folder.path, 'one-api.db')
    const foreign = new DatabaseSync(file)
    foreign.exec('CREATE TABLE users (id INTEGER); BEGIN EXCLUSIVE')
    chmodSync(file, 0o644)
    const env = { DATABASE_URL: `sqlite:${file}`, GATEWAY_SECRET: SECRET, DATA_DIR: folder.path }
    for (const command of ['logs', 'user create ann'])
      expect(await sluice(command.split(' '), env)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/one-api\.db is locked by another program.*end that program/),
      })
    foreign.close()
    expect(statSync(file).mode & 0o777).toBe(0o644)
    folder.discard()
  })

  test('a database whose tables were all dropped is an empty one', async () => {
    const folder = newFolder()
    const file = join(folder.path, 'sluice.db')
    const emptied = new DatabaseSync(file)
    emptied.exec('CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE users')
    emptied.close()
    const env = { DATABASE_URL: `sqlite:${file}`, GATEWAY_SECRET: SECRET, DATA_DIR: folder.path }
    expect(await sluice(['schema'], env)).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^The database is new/),
    })
    folder.discard()
  })

  test('a start with a database that is damaged in the middle fails', async () => {
    const folder = await usedFolder()
    const file = join(folder.path, 'sluice.db')
    const bytes = readFileSync(file)
    bytes.fill(0xa5, 4096, 3 * 4096)
    writeFileSync(file, bytes)
    expect(await refusal({ folder })).toMatch(/sluice\.db is damaged.*backup/)
    expect(readFileSync(file).equals(bytes)).toBe(true)
  })

  test('a start with a database of a newer version of the program fails', async () => {
    const folder = await usedFolder()
    databaseOf(folder.path).write(
      "insert into kysely_migration (name, timestamp) values ('9999-from-the-future', '2030-01-01')",
    )
    const before = fingerprint(join(folder.path, 'sluice.db'))
    expect(await refusal({ folder })).toMatch(/newer version/)
    expect(fingerprint(join(folder.path, 'sluice.db'))).toBe(before)
  })

  test('a start with a database of a build from before the first release fails', async () => {
    const folder = await usedFolder()
    databaseOf(folder.path).write(
      "update kysely_migration set name = '0001-accounts-and-ledger' where name = '0001-schema'",
    )
    const before = fingerprint(join(folder.path, 'sluice.db'))
    expect(await refusal({ folder })).toMatch(/a build of sluice from before version 0\.1\.0/)
    expect(fingerprint(join(folder.path, 'sluice.db'))).toBe(before)
  })

  test('a start with invalid environment variables fails, and reports all of them at once', async () => {
    const env = { PORT: 'many', LOG_LEVEL: 'loud', GATEWAY_SECRET: 'short', REDIS_URL: 'localhost:6379' }
    const told = await refusal({ config: CONFIG, env })
    expect(told).toMatch(/PORT: expected a port/)
    expect(told).toMatch(/LOG_LEVEL: expected one of/)
    expect(told).toMatch(/GATEWAY_SECRET: expected at least 16 characters/)
    expect(told).toMatch(/REDIS_URL: expected redis:\/\/HOST:PORT/)
  })
})
