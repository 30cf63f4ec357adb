import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { lockDataFolder } from '../../src/store/data-folder.ts'
import { commandOn, processOn, SECRET, sluice } from '../equipment/command.ts'
import { ROOT, user } from '../equipment/configuration.ts'
import { type RunningGateway, startGateway } from '../equipment/gateway.ts'

const CONFIG = { users: [ROOT, user(2, 'ann', [])] }
const ENV = { GATEWAY_SECRET: SECRET }

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-commands-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

let gateway: RunningGateway | undefined
async function started(env: Record<string, string> = {}): Promise<RunningGateway> {
  gateway = await startGateway({ config: CONFIG, env: { ...ENV, ...env } })
  return gateway
}
afterEach(async () => {
  await gateway?.discard()
  gateway = undefined
})

/** Sends a request to the gateway's socket, without a command. */
function ask(socketPath: string, method: string, path: string, body?: string): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method, path, agent: false }, (reply) => {
      let text = ''
      reply.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      reply.on('end', () => resolve([reply.statusCode ?? 0, text]))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

describe('the socket of a running gateway', () => {
  test('belongs to its owner alone, and is gone when the gateway stops', async () => {
    const running = await started()
    const { dataDir } = running
    const socket = join(dataDir, 'control.sock')
    const { mode } = statSync(socket)
    expect([statSync(socket).isSocket(), mode & 0o777]).toEqual([true, 0o600])
    await running.stop()
    expect(existsSync(socket)).toBe(false)
  })

  test('needs nothing but DATA_DIR: neither the configuration nor the secret of the gateway', async () => {
    const { dataDir } = await started()
    const { code, out } = await sluice(['user', 'list', '--json'], { DATA_DIR: dataDir })
    expect(code).toBe(0)
    expect(JSON.parse(out)).toHaveLength(2)
  })

  test('does not stand in the way after a gateway was killed', async () => {
    const killed = await started()
    await killed.kill()
    expect(existsSync(join(killed.dataDir, 'control.sock'))).toBe(true)
    expect((await commandOn(killed, 'user', 'list')).code).toBe(0)
    await killed.restart()
    expect((await commandOn(killed, 'user', 'list')).code).toBe(0)
  })

  test('is reached in a folder whose path is too long for a socket', async () => {
    const dataDir = join(folder, 'x'.repeat(120))
    mkdirSync(dataDir)
    const running = await started({ DATA_DIR: dataDir })
    expect(statSync(join(dataDir, 'control.sock')).isSocket()).toBe(true)
    const { code, out } = await sluice(['user', 'create', 'bob', '--json'], { DATA_DIR: dataDir })
    expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ username: 'bob' })])
    await running.stop()
    expect(existsSync(join(dataDir, 'control.sock'))).toBe(false)
  })

  test('answers invalid requests with an error, and keeps serving', async () => {
    const running = await started()
    const socket = join(running.dataDir, 'control.sock')
    const codes = [
      await ask(socket, 'POST', '/constructor', '{}'),
      await ask(socket, 'GET', '/listUsers'),
      await ask(socket, 'POST', '/createUser', '{"username":'),
      await ask(socket, 'POST', '/createUser', '[]'),
      await ask(socket, 'POST', '/createUser', '{"username":{"a":1}}'),
      await ask(socket, 'POST', '/createUser', JSON.stringify({ username: 'x'.repeat(2 * 1024 * 1024) })),
    ].map(([status, text]) => [status, JSON.parse(text).error.code])
    expect(codes).toEqual([
      [404, 'not_found'],
      [404, 'not_found'],
      [400, 'invalid_json'],
      [400, 'invalid_request'],
      [400, 'invalid_request'],
      [413, 'request_too_large'],
    ])
    expect((await commandOn(running, 'user', 'list')).code).toBe(0)
  })
})

describe('a data folder', () => {
  test('without a database is not created by a command that reads it', async () => {
    const dataDir = join(folder, 'nothing')
    const { code, err } = await sluice(['user', 'list'], { DATA_DIR: dataDir })
    expect([code, err]).toEqual([
      1,
      `sluice: there is no database of a gateway in ${dataDir}: set DATA_DIR to its folder, or start it once with "sluice start"\n`,
    ])
    expect(existsSync(dataDir)).toBe(false)
  })

  test('may begin with user create, which also makes everything that a first start makes', async () => {
    const dataDir = join(folder, 'new')
    const made = await sluice(['user', 'create', 'ann', '--json'], { DATA_DIR: dataDir, ...ENV })
    expect([made.code, JSON.parse(made.out)]).toEqual([
      0,
      expect.objectContaining({ id: 2, username: 'ann' }),
    ])
    expect(made.err).toMatch(
      /root user was created.*\n +user id +1\n +access token +\S+\n +API key +sk-\w+\n$/s,
    )
    const listed = await sluice(['user', 'list', '--json'], { DATA_DIR: dataDir, ...ENV })
    expect(JSON.parse(listed.out)).toMatchObject([{ username: 'root', role: 100 }, { username: 'ann' }])
  })

  test('takes several commands at once', async () => {
    const stopped = await started()
    await stopped.stop()
    const made = await Promise.all(['a', 'b', 'c'].map((name) => processOn(stopped, 'user', 'create', name)))
    expect(made.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ])
  })

  test('locked by another command is waited for, by commands and by a starting gateway', async () => {
    const stopped = await started()
    await stopped.stop()
    const lock = lockDataFolder(stopped.dataDir, 'command')
    const waiting = Promise.all([processOn(stopped, 'user', 'list'), stopped.restart()])
    // Longer than a process may hold the folder without being a command or listening.
    await sleep(6_000)
    lock.release()
    const [{ code, err }] = await waiting
    expect([code, err]).toEqual([0, ''])
    expect(stopped.isRunning).toBe(true)
  })

  test('locked by a process that does not listen is reported', async () => {
    const dataDir = join(folder, 'held')
    const lock = lockDataFolder(dataDir, 'gateway')
    try {
      const { code, err } = await sluice(['user', 'list'], { DATA_DIR: dataDir })
      expect(code).toBe(1)
      expect(err).toMatch(/^sluice: another process holds the data folder \S+ and does not listen [^\n]+\n$/)
    } finally {
      lock.release()
    }
  })

  test('of a gateway that hangs is reported', async () => {
    const stuck = await started()
    process.kill(stuck.pid, 'SIGSTOP')
    try {
      const { code, err } = await commandOn(stuck, 'user', 'list')
      expect(code).toBe(1)
      expect(err).toMatch(/^sluice: the gateway on \S+ does not answer in time: [^\n]+\n$/)
    } finally {
      process.kill(stuck.pid, 'SIGCONT')
    }
  })

  test('made with another secret is refused with an error message', async () => {
    const stopped = await started()
    await stopped.stop()
    const { code, err } = await sluice(['user', 'list'], {
      DATA_DIR: stopped.dataDir,
      GATEWAY_SECRET: 'another-secret-than-that-one',
    })
    expect(code).toBe(1)
    expect(err).toMatch(/^sluice: [^\n]*another secret[^\n]*\n$/)
  })

  test('contains no additional files after commands', async () => {
    const stopped = await started()
    await stopped.stop()
    const before = readdirSync(stopped.dataDir)
    expect((await commandOn(stopped, 'user', 'top-up', 'ann', '5')).code).toBe(0)
    expect((await commandOn(stopped, 'backup', join(folder, 'copy.db'))).code).toBe(0)
    expect(readdirSync(stopped.dataDir)).toEqual(before)
  })
})

test('errors in a configuration are reported with file and line where no gateway runs', async () => {
  const stopped = await started()
  await stopped.stop()
  const config = join(folder, 'bad.yaml')
  writeFileSync(config, 'options:\n  retries: many\n')
  const { code, out, err } = await commandOn(stopped, 'user', 'list', '--config', config)
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain('bad.yaml:2: options.retries: expected a whole number from 0 to 100, found "many"\n')
})

test.each([
  ['user', 'create'],
  ['user', 'list'],
  ['user', 'top-up'],
  ['user', 'access-token'],
  ['token', 'create'],
  ['token', 'list'],
  ['backup'],
])('sluice %s %s --help has examples', async (...command) => {
  const { code, out, err } = await sluice([...command.filter(Boolean), '--help'], {})
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(new RegExp(`Examples?:\\n(?:.*\\n)*.*sluice ${command.filter(Boolean).join(' ')}`))
  expect(out).toContain('--json')
})
