import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { audit } from '../fixtures/auditor.ts'
import { call } from '../fixtures/client.ts'
import {
  commandOn,
  inGatewayState,
  GATEWAY_STATES,
  type Outcome,
  SECRET,
  untilItRuns,
} from '../fixtures/command.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { CAN_MOUNT, mountSmallDisk } from '../stores/small-disk.ts'

const QUOTA = 1_000_000_000
const ENV = { GATEWAY_SECRET: SECRET }

let fixture: Fixture
let folder = ''
const backup = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'backup', ...args)

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-backup-'))
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })])],
    }),
    { env: ENV },
  )
})
afterAll(async () => {
  await fixture.close()
  rmSync(folder, { recursive: true })
})

/** Starts a gateway on a folder that only has the copy, as docs/operations.md describes it. */
function restored(copy: string, env: Record<string, string> = ENV): Promise<RunningGateway> {
  const dataDir = mkdtempSync(join(folder, 'restored-'))
  copyFileSync(copy, join(dataDir, 'sluice.db'))
  return startGateway({
    config: readFileSync(join(fixture.gateway.dataDir, 'gateway.yaml'), 'utf8'),
    env,
    dataDir,
  })
}

test('a backup made under load can be restored: its keys work, and its charges add up', async () => {
  const load = { over: false }
  const statuses: number[] = []
  const answered: string[] = []
  const clients = Array.from({ length: 8 }, async (_, client) => {
    while (!load.over) {
      const answer = await fixture.chat('ann', client % 2 === 0 ? ask('m') : askStream('m'))
      statuses.push(answer.status)
      answered.push(String(answer.headers['x-request-id']))
    }
  })
  await expect.poll(() => statuses.length).toBeGreaterThan(20)
  const file = join(folder, 'under-load.db')
  let before: string[] = []
  let made: Outcome | undefined
  let during = 0
  // On a busy machine a copy may be over before a call is answered: another one is made then.
  for (let time = 0; time < 10 && during === 0; time += 1) {
    rmSync(file, { force: true })
    before = [...answered]
    made = await backup(file)
    during = answered.length - before.length
  }
  load.over = true
  await Promise.all(clients)

  expect(made).toMatchObject({
    code: 0,
    out: `Copied the database into ${file} (${statSync(file).size} bytes).\n`,
    err: 'The secret is not in the copy: without the same GATEWAY_SECRET the copy cannot be used. Keep the secret too, in another place.\n',
  })
  expect(during).toBeGreaterThan(0)
  expect(new Set(statuses)).toEqual(new Set([200]))
  const gateway = await restored(file)
  try {
    const granted = {
      tokens: new Map([['token-ann', QUOTA]]),
      users: new Map([['ann', AMPLE]]),
    }
    expect(audit(gateway.dataDir, [], granted)).toEqual([])
    const copied = databaseOf(gateway.dataDir).usage()
    const ids = new Set(copied.map(({ id }) => id))
    expect(before.filter((id) => !ids.has(id))).toEqual([])
    // Calls that were not settled when the copy was made were settled by the restored gateway.
    const original = new Map(
      databaseOf(fixture.gateway.dataDir)
        .usage()
        .map((row) => [row.id, row]),
    )
    for (const row of copied.filter(({ reason }) => reason !== 'crash')) {
      expect(row).toEqual(original.get(row.id))
    }
    const answer = await call(gateway.url, ask('m'), { key: 'ann' })
    expect(answer.status).toBe(200)
    expect(audit(gateway.dataDir, [], granted)).toEqual([])
  } finally {
    await gateway.discard()
  }
})

test('a gateway with another secret refuses to start on a restored backup, with a message', async () => {
  const file = join(folder, 'secret.db')
  expect((await backup(file)).code).toBe(0)
  const other = { GATEWAY_SECRET: 'another-secret-than-that-one' }
  await expect(restored(file, other)).rejects.toThrow('was made with another secret')
})

describe.each(GATEWAY_STATES)('sluice backup, %s', (manner) => {
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)

  test('sluice backup creates a file that only its owner may read, and replaces an existing one only with --force', async () => {
    const file = join(folder, `${GATEWAY_STATES.indexOf(manner)}.db`)
    const [made, refused] = await during(async () => {
      const first = await backup(file, '--json')
      return [first, await backup(file)]
    })
    const { size, mode } = statSync(file)
    expect(made?.json()).toEqual({ file, bytes: size, secret_file: null })
    expect(mode & 0o777).toBe(0o600)
    expect(refused).toMatchObject({ code: 1, err: `sluice: ${file} is there already; --force replaces it\n` })
    writeFileSync(file, 'something else')
    expect((await during(() => backup(file, '--force'))).code).toBe(0)
    expect(readFileSync(file, 'latin1').startsWith('SQLite format 3\0')).toBe(true)
    expect(readdirSync(folder).filter((name) => name.endsWith('.unfinished'))).toEqual([])
  })

  test('sluice backup never writes over the database itself', async () => {
    const { dataDir } = fixture.gateway
    const outcomes = await during(async () => [
      await backup(join(dataDir, 'sluice.db'), '--force'),
      await backup(join(dataDir, 'sluice.db-wal'), '--force'),
      await backup(dataDir, '--force'),
    ])
    expect(outcomes.map(({ code }) => code)).toEqual([1, 1, 1])
    expect(outcomes[0]?.err).toBe(
      `sluice: ${join(dataDir, 'sluice.db')} is the database itself; choose another file\n`,
    )
    expect(outcomes[2]?.err).toBe(`sluice: ${dataDir} is not a file\n`)
    await untilItRuns(fixture.gateway)
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  })

  test('sluice backup names the file that it cannot look for', async () => {
    const loop = join(folder, `loop-${GATEWAY_STATES.indexOf(manner)}`)
    symlinkSync(loop, loop)
    const { code, err } = await during(() => backup(join(loop, 'copy.db')))
    expect([code, err]).toEqual([
      1,
      expect.stringContaining(`the copy ${join(loop, 'copy.db')} could not be made: ELOOP`),
    ])
  })

  test('sluice backup never replaces a file in the data folder, and refuses names that the gateway uses there', async () => {
    const { dataDir } = fixture.gateway
    const secret = join(dataDir, 'secret')
    writeFileSync(join(dataDir, 'notes.txt'), 'kept')
    const link = join(folder, `link-${GATEWAY_STATES.indexOf(manner)}`)
    symlinkSync(dataDir, link)
    const targets = ['secret', 'lock.db', 'node.db', 'node.db-wal', 'control.sock', 'notes.txt'].map((name) =>
      join(dataDir, name),
    )
    const outcomes = await during(async () => {
      const made: Outcome[] = []
      for (const target of [...targets, join(link, 'notes.txt')]) made.push(await backup(target, '--force'))
      return made
    })
    expect(outcomes.map(({ code, err }) => [code, err])).toEqual(
      [...targets, join(link, 'notes.txt')].map((target) => [
        1,
        `sluice: ${target} is a file of the data folder; choose another file\n`,
      ]),
    )
    expect([existsSync(secret), readFileSync(join(dataDir, 'notes.txt'), 'utf8')]).toEqual([false, 'kept'])
  })

  test('sluice backup reports an unwritable target, and leaves nothing behind', async () => {
    const file = join(folder, 'nowhere', 'copy.db')
    const { code, err } = await during(() => backup(file))
    expect(code).toBe(1)
    expect(err).toMatch(new RegExp(`^sluice: the copy ${file} could not be made: ENOENT[^\\n]+\\n$`))
    expect(existsSync(join(folder, 'nowhere'))).toBe(false)
  })
})

test.each(CAN_MOUNT ? ['a disk'] : [])(
  'the target of sluice backup keeps its content if the disk is full: %s',
  async () => {
    const { path } = mountSmallDisk(16_384)
    const file = join(path, 'copy.db')
    writeFileSync(file, 'the copy of yesterday')
    await untilItRuns(fixture.gateway)
    expect(await backup(file, '--force')).toMatchObject({
      code: 1,
      err: `sluice: the copy ${file} could not be made: there is no room left on the disk of the copy\n`,
    })
    expect(readdirSync(path)).toEqual(['copy.db'])
    expect(readFileSync(file, 'utf8')).toBe('the copy of yesterday')
  },
)

test('sluice backup of a stopped gateway leaves the database file unchanged', async () => {
  await fixture.gateway.stop()
  const file = join(folder, 'as-it-is.db')
  const before = readFileSync(join(fixture.gateway.dataDir, 'sluice.db'))
  expect((await backup(file)).code).toBe(0)
  expect(readFileSync(join(fixture.gateway.dataDir, 'sluice.db')).equals(before)).toBe(true)
})
