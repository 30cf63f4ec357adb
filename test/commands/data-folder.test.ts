import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lockDataFolder } from '../../src/store/data-folder.ts'
import { commandOn, processOn, SECRET, sluice, sluiceProcess, untilItRuns } from '../fixtures/command.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ENGINES } from '../stores/engines.ts'
import { isStopped } from '../fixtures/process-state.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'

const CONFIG = { users: [ROOT, user(2, 'ann', [])] }
const ENV = { GATEWAY_SECRET: SECRET }
/** Milliseconds for which an impatient command waits for a process that does not answer; 5,000 otherwise. */
const SILENT_MS = 300
/** Milliseconds for which a command waits that must not give up on a busy machine. */
const PATIENT_MS = 240_000

let folder = ''
/** A gateway that tests share; a test that needs it running calls `running`. */
let shared: RunningGateway
/** The data folder of a gateway that was stopped, for copies. */
let used = ''
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-commands-'))
  shared = await startGateway({ config: CONFIG, env: ENV })
  await shared.stop()
  used = join(folder, 'used')
  cpSync(shared.dataDir, used, { recursive: true })
})
afterAll(async () => {
  await shared.discard()
  rmSync(folder, { recursive: true })
})

async function running(): Promise<RunningGateway> {
  await untilItRuns(shared)
  return shared
}

/** The data folder of a stopped gateway, used by one test only. */
function stopped(): { readonly dataDir: string } {
  const dataDir = mkdtempSync(join(folder, 'stopped-'))
  cpSync(used, dataDir, { recursive: true })
  return { dataDir }
}

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
  test("the gateway's command socket is accessible to its owner only, and removed when the gateway stops", async () => {
    const { dataDir } = await running()
    const socket = join(dataDir, 'control.sock')
    const { mode } = statSync(socket)
    expect([statSync(socket).isSocket(), mode & 0o777]).toEqual([true, 0o600])
    await shared.stop()
    expect(existsSync(socket)).toBe(false)
  })

  test('a command reaches a running gateway with DATA_DIR alone, without its configuration and secret', async () => {
    const { dataDir } = await running()
    const { code, out } = await sluice(['user', 'list', '--json'], { DATA_DIR: dataDir })
    expect(code).toBe(0)
    expect(JSON.parse(out)).toHaveLength(2)
  })

  test('the command socket of a killed gateway does not prevent a start', async () => {
    const killed = await running()
    await killed.kill()
    expect(existsSync(join(killed.dataDir, 'control.sock'))).toBe(true)
    expect((await commandOn(killed, 'user', 'list')).code).toBe(0)
    await killed.restart()
    expect((await commandOn(killed, 'user', 'list')).code).toBe(0)
  })

  test("a command reaches the gateway's socket in a data folder whose path is too long for a socket address", async () => {
    const dataDir = join(folder, 'x'.repeat(120))
    mkdirSync(dataDir)
    const far = await startGateway({ config: CONFIG, env: ENV, dataDir })
    try {
      expect(statSync(join(dataDir, 'control.sock')).isSocket()).toBe(true)
      const { code, out } = await sluice(['user', 'create', 'bob', '--json'], { DATA_DIR: dataDir })
      expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ username: 'bob' })])
      await far.stop()
      expect(existsSync(join(dataDir, 'control.sock'))).toBe(false)
    } finally {
      await far.discard()
    }
  })

  test("the gateway's command socket answers invalid requests with an error, and keeps serving", async () => {
    const { dataDir } = await running()
    const socket = join(dataDir, 'control.sock')
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
    expect((await commandOn(shared, 'user', 'list')).code).toBe(0)
  })
})

describe('a data folder', () => {
  test('a data folder without a database is not created by a command that reads it', async () => {
    const dataDir = join(folder, 'nothing')
    const { code, err } = await sluice(['user', 'list'], { DATA_DIR: dataDir })
    expect([code, err]).toEqual([
      1,
      `sluice: there is no database of a gateway in ${dataDir}: set DATA_DIR to its folder, or start it once with "sluice start"\n`,
    ])
    expect(existsSync(dataDir)).toBe(false)
  })

  test('a command says that it cannot look into a data folder, not that there is no database', async () => {
    const loop = join(folder, 'loop')
    symlinkSync(loop, loop)
    const dataDir = join(loop, 'data')
    const { code, err } = await sluice(['user', 'list'], { DATA_DIR: dataDir })
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        /^sluice: the data folder \S+ cannot be used \(ELOOP.*\): run the command as the user/,
      ),
    ])
  })

  test('a data folder where the file system refuses new folders is an error that names it', async () => {
    const { code, err } = await sluiceProcess(['user', 'create', 'ann'], {
      DATA_DIR: '/proc/sluice/data',
      ...ENV,
    })
    expect([code, err]).toEqual([1, expect.stringMatching(/^sluice: .*\/proc\/sluice/)])
  })

  test('sluice user create in an empty data folder creates everything that a first start creates', async () => {
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

  test.skipIf(process.getuid?.() !== 0)(
    "what a command of root's makes in the data folder of another account belongs to that account",
    async () => {
      const dataDir = mkdtempSync(join(folder, 'owned-'))
      chownSync(dataDir, 65_534, 65_534)
      expect((await sluice(['user', 'create', 'ann'], { DATA_DIR: dataDir })).code).toBe(0)
      const owners = readdirSync(dataDir).map((name) => [name, statSync(join(dataDir, name)).uid])
      expect(owners).toContainEqual(['secret', 65_534])
      expect(owners.filter(([, uid]) => uid !== 65_534)).toEqual([])
    },
  )

  test('several commands can run at once on the data folder of a stopped gateway', async () => {
    const place = stopped()
    const made = await Promise.all(
      ['a', 'b', 'c'].map((name) => processOn(place, 'user', 'create', name, '--unlimited-quota')),
    )
    expect(made.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ])
  })

  describe('by a program whose patience is chosen', () => {
    let copy: PatchedCopy
    beforeAll(async () => {
      copy = await patchedProgram([
        {
          file: 'src/gateway/control/open-command-backend.ts',
          text: 'const SILENT_HOLDER_TIMEOUT_MS = 5_000',
          by: "const SILENT_HOLDER_TIMEOUT_MS = Number(process.env['SILENT_MS'])",
        },
        {
          file: 'src/gateway/control/call-gateway.ts',
          text: 'const HELLO_TIMEOUT_MS = 5_000',
          by: "const HELLO_TIMEOUT_MS = Number(process.env['SILENT_MS'])",
        },
      ])
    })
    afterAll(() => copy?.discard())
    const list = (dataDir: string, silentMs = SILENT_MS) => {
      const env = { DATA_DIR: dataDir, SILENT_MS: String(silentMs), ...ENV }
      return sluiceProcess(['user', 'list'], env, undefined, copy.root)
    }

    test('commands and a starting gateway wait for a data folder that another command has locked', async () => {
      await shared.stop()
      const lock = lockDataFolder(shared.dataDir, 'command')
      let isListed = false
      // The gateway may hold the lock first, without listening yet.
      const listed = list(shared.dataDir, PATIENT_MS).finally(() => (isListed = true))
      const waiting = Promise.all([listed, shared.restart()])
      // As long as another process without answers is waited for, as its error says.
      const held = join(folder, 'held meanwhile')
      const other = lockDataFolder(held, 'gateway')
      expect((await list(held)).code).toBe(1)
      other.release()
      expect(isListed).toBe(false)
      lock.release()
      const [{ code, err }] = await waiting
      expect([code, err]).toEqual([0, ''])
      expect(shared.isRunning).toBe(true)
    })

    test('a command reports that the process that locks the data folder does not listen for commands', async () => {
      const dataDir = join(folder, 'held')
      const lock = lockDataFolder(dataDir, 'gateway')
      try {
        const { code, err } = await list(dataDir)
        expect(code).toBe(1)
        expect(err).toMatch(
          /^sluice: another process holds the data folder \S+ and does not listen [^\n]+\n$/,
        )
      } finally {
        lock.release()
      }
    })

    test('a command reports that the gateway on the data folder does not respond', async () => {
      const stuck = await running()
      process.kill(stuck.pid, 'SIGSTOP')
      try {
        await expect.poll(() => isStopped(stuck.pid)).toBe(true)
        const { code, err } = await list(stuck.dataDir)
        expect(code).toBe(1)
        expect(err).toMatch(/^sluice: the gateway on \S+ does not answer in time: [^\n]+\n$/)
      } finally {
        process.kill(stuck.pid, 'SIGCONT')
      }
    })
  })

  test('a data folder made with another secret is refused with an error message', async () => {
    const { code, err } = await sluice(['user', 'list'], {
      DATA_DIR: stopped().dataDir,
      GATEWAY_SECRET: 'another-secret-than-that-one',
    })
    expect(code).toBe(1)
    expect(err).toMatch(/^sluice: [^\n]*another secret[^\n]*\n$/)
  })

  test('the files in a data folder are accessible to its owner only, even if the folder was created with other access', async () => {
    const place = stopped()
    chmodSync(join(place.dataDir, 'lock.db'), 0o644)
    expect((await commandOn(place, 'user', 'top-up', 'ann', '5')).code).toBe(0)
    // The operator's own file.
    const files = readdirSync(place.dataDir).filter((name) => name !== 'gateway.yaml')
    expect(files).toEqual(expect.arrayContaining(['lock.db', 'sluice.db']))
    for (const name of files)
      expect([name, statSync(join(place.dataDir, name)).mode & 0o077]).toEqual([name, 0])
  })

  test('a data folder that other users may write to is refused, and one that they may enter causes a warning', async () => {
    const start = (mode: number) => {
      const dataDir = mkdtempSync(join(folder, 'shared-'))
      chmodSync(dataDir, mode)
      return startGateway({ config: CONFIG, env: ENV, dataDir })
    }
    await expect(start(0o777)).rejects.toThrow('other accounts of this machine may write to the data folder')
    const warned = await start(0o755)
    try {
      const warning = `other accounts of this machine may enter the data folder ${warned.dataDir}`
      await expect.poll(() => warned.logs()).toContain(warning)
    } finally {
      await warned.discard()
    }
  })

  test('commands on the data folder of a stopped gateway leave no additional files in it', async () => {
    const place = stopped()
    const before = readdirSync(place.dataDir)
    expect((await commandOn(place, 'user', 'top-up', 'ann', '5')).code).toBe(0)
    expect((await commandOn(place, 'backup', join(folder, 'copy.db'))).code).toBe(0)
    expect(readdirSync(place.dataDir)).toEqual(before)
  })
})

test('a command without a running gateway reports errors in gateway.yaml with file and line', async () => {
  const config = join(folder, 'bad.yaml')
  writeFileSync(config, 'options:\n  retries: many\n')
  const { code, out, err } = await commandOn(stopped(), 'user', 'list', '--config', config)
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

test.each(ENGINES)(
  'on $name, commands make a secret for an empty database, and none for one that has another',
  async (engine) => {
    const environmentOf = (place: string) => ({
      DATA_DIR: mkdtempSync(join(folder, 'secrets-')),
      DATABASE_URL: place.startsWith('postgres') ? place : `sqlite:${place}`,
    })
    const made = environmentOf((await engine.database()).place)
    expect(await sluice(['user', 'create', 'ann'], made)).toMatchObject({ code: 0 })
    expect(existsSync(join(made.DATA_DIR, 'secret'))).toBe(true)
    const other = environmentOf((await engine.prepared()).place)
    for (const command of ['user list', 'user create ann'])
      expect(await sluice(command.split(' '), other)).toMatchObject({
        code: 1,
        err: expect.stringContaining('GATEWAY_SECRET is not set, and there is no file "secret" in'),
      })
    expect(existsSync(join(other.DATA_DIR, 'secret'))).toBe(false)
  },
)
