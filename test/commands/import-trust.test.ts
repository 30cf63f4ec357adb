import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { commandOn, type Outcome, SECRET, sluice } from '../fixtures/command.ts'
import { ROOT } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { ENGINES } from '../stores/engines.ts'
import { familyDatabase } from '../stores/family-database.ts'
import { litellmDatabase } from '../stores/litellm-database.ts'
import { embeddedRows } from './embedded-rows.ts'

interface Line {
  readonly kind: string
  readonly id: number | null
  readonly name: string
  readonly fate: string
  readonly notes: readonly string[]
}
interface Report {
  readonly lines: readonly Line[]
  readonly has_root: boolean
  readonly failed: number
}

const KEY = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijkl'
const HIGHEST = Number.MAX_SAFE_INTEGER
const user = { password: '', status: 1, role: 1, group: 'default', quota: 0, used_quota: 0, request_count: 0 }
const token = { status: 1, expired_time: -1, unlimited_quota: false, remain_quota: 5, used_quota: 0 }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-import-trust-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const inFolder = (dataDir: string, ...args: string[]): Promise<Outcome> =>
  sluice(args, { DATA_DIR: dataDir, GATEWAY_SECRET: SECRET })

async function imported(dataDir: string, ...args: string[]): Promise<Report> {
  const outcome = await inFolder(dataDir, 'import', ...args, '--apply', '--json')
  expect(outcome).toMatchObject({ code: 0, err: '' })
  return outcome.json() as Report
}

const linesOf = ({ lines }: Report, kind: string): object[] =>
  lines.filter((line) => line.kind === kind).map(({ name, fate, notes }) => ({ name, fate, notes }))

const newApi = () => familyDatabase('new-api', 'SQLite')

describe('a local user with the name of an imported one', () => {
  async function withRootHere(): Promise<{ dataDir: string; place: string }> {
    const dataDir = folder()
    await inFolder(dataDir, 'user', 'create', 'boss', '--role', '100')
    const source = await newApi()
    await source.insert('users', { ...user, id: 5, username: 'boss', role: 100 })
    await source.insert('tokens', { ...token, id: 6, user_id: 5, key: KEY, name: 'foreign' })
    return { dataDir, place: source.place }
  }
  const tokens = (dataDir: string) =>
    embeddedRows(dataDir, "SELECT user_id FROM tokens WHERE name = 'foreign'")

  test('keys of an imported user go to a local user of the same name only if the operator states the name with --merge', async () => {
    const { dataDir, place } = await withRootHere()
    const report = await imported(dataDir, place)
    expect(linesOf(report, 'user')).toEqual([{ name: 'boss', fate: 'there', notes: [] }])
    expect(linesOf(report, 'token')).toEqual([
      {
        name: 'foreign',
        fate: 'left',
        notes: ['a user here has the name of its user; --merge NAME adds it to that user'],
      },
    ])
    expect(tokens(dataDir)).toEqual([])
    const merged = await imported(dataDir, place, '--merge', 'boss')
    expect(linesOf(merged, 'user')).toEqual([
      {
        name: 'boss',
        fate: 'there',
        notes: ['its tokens that are not there yet are added, as --merge states'],
      },
    ])
    expect(linesOf(merged, 'token')).toEqual([{ name: 'foreign', fate: 'carried', notes: [] }])
    const again = await imported(dataDir, place)
    expect(linesOf(again, 'token')).toEqual([{ name: 'foreign', fate: 'there', notes: [] }])
  })

  test('an import with --merge or --role is refused if the source has no user of that name', async () => {
    const { dataDir, place } = await withRootHere()
    for (const [option, missing] of [
      ['merge', 'no user and no team'],
      ['role', 'no user'],
    ]) {
      const outcome = await inFolder(dataDir, 'import', place, `--${option}`, 'bos', '--apply')
      expect(outcome).toMatchObject({
        code: 1,
        err: `sluice: --${option} bos: ${missing} there has that name\n`,
      })
    }
    expect(tokens(dataDir)).toEqual([])
  })
})

const POSTGRES = ENGINES.find(({ name }) => name === 'PostgreSQL')

test.skipIf(!POSTGRES)(
  'keys of a LiteLLM team go to a group here of the same name only if it is as the import makes it, or with --merge',
  async () => {
    const dataDir = folder()
    const file = join(dataDir, 'gateway.yaml')
    writeFileSync(file, 'groups: { vip: { ratio: 0.1, open: false } }')
    const source = await litellmDatabase(await POSTGRES!.database())
    for (const [index, team] of ['vip', 'lab'].entries()) {
      const budget = { max_budget: 10, budget_duration: '30d' }
      await source.insert('TeamTable', { team_id: `t-${team}`, team_alias: team, ...budget })
      await source.addKey(`sk-of-the-team-${index}-first`, { key_alias: `${team} one`, team_id: `t-${team}` })
    }
    const args = ['litellm', '--config', file, '--database', source.place]
    const budget = {
      name: 'vip',
      fate: 'there',
      notes: ['the group here stays as it is: the budget of the team does not carry over'],
    }
    const other = ['a group here has the name of its team; --merge NAME adds it to that group']

    const report = await imported(dataDir, ...args)
    expect(linesOf(report, 'group').toSorted(byName)).toMatchObject([
      { name: 'lab', fate: 'changed' },
      budget,
    ])
    expect(linesOf(report, 'token').toSorted(byName)).toEqual([
      { name: 'lab one', fate: 'carried', notes: [] },
      { name: 'vip one', fate: 'left', notes: other },
    ])
    await source.addKey('sk-of-the-team-lab-second', { key_alias: 'lab two', team_id: 't-lab' })

    const merged = await imported(dataDir, ...args, '--merge', 'vip', '--merge', 'lab')
    expect(linesOf(merged, 'group').toSorted(byName)).toEqual([
      { name: 'lab', fate: 'there', notes: [] },
      budget,
    ])
    expect(linesOf(merged, 'token').toSorted(byName)).toEqual([
      { name: 'lab one', fate: 'there', notes: [] },
      { name: 'lab two', fate: 'carried', notes: [] },
      { name: 'vip one', fate: 'changed', notes: ['group: "vip" of this gateway, as --merge states'] },
    ])
    const again = await imported(dataDir, ...args)
    expect(linesOf(again, 'token').map((line) => (line as Line).fate)).toEqual(['there', 'there', 'there'])
  },
)

test('an admin or root role is imported only for users that the operator names with --role', async () => {
  const dataDir = folder()
  const source = await newApi()
  await source.insert('users', { ...user, id: 2, username: 'ann', role: 100 })
  await source.insert('users', { ...user, id: 3, username: 'ben', role: 10 })
  await source.insert('users', { ...user, id: 4, username: 'cam', role: 10 })
  const report = await imported(dataDir, source.place, '--role', 'ben')
  expect(linesOf(report, 'user')).toEqual([
    { name: 'ann', fate: 'changed', notes: ['role: 100 there, a common user here; --role NAME keeps it'] },
    { name: 'ben', fate: 'changed', notes: ['role: 10, as --role states'] },
    { name: 'cam', fate: 'changed', notes: ['role: 10 there, a common user here; --role NAME keeps it'] },
  ])
  expect(report.has_root).toBe(false)
  expect(embeddedRows(dataDir, 'SELECT username, role FROM users ORDER BY id')).toEqual([
    { username: 'ann', role: 1 },
    { username: 'ben', role: 10 },
    { username: 'cam', role: 1 },
  ])
})

describe('ids and amounts whose sums could exceed the safe integers', () => {
  const notes = (column: string) => [
    `${column}: expected an amount that, with all others, is at most ${2 ** 52}`,
  ]

  test('an import refuses rows whose ids or amounts could exceed the safe integers in sum, and imports the other rows', async () => {
    const fixture = await startFixture(() => ({ users: [ROOT] }), { env: { GATEWAY_SECRET: SECRET } })
    onTestFinished(() => fixture.close())
    const { gateway } = fixture
    await gateway.stop()
    const source = await newApi()
    await source.insert('users', { ...user, id: 2, username: 'used', used_quota: HIGHEST })
    await source.insert('users', { ...user, id: 3, username: 'called', request_count: HIGHEST })
    await source.insert('users', { ...user, id: HIGHEST, username: 'high' })
    await source.insert('users', { ...user, id: 4, username: 'half', used_quota: 2 ** 51 })
    await source.insert('users', { ...user, id: 5, username: 'rest', used_quota: 2 ** 51 + 1 })
    await source.insert('users', { ...user, id: 6, username: 'good', used_quota: 7, quota: 9 })
    await source.insert('tokens', {
      ...token,
      id: 7,
      user_id: 6,
      key: KEY,
      name: 'used',
      used_quota: HIGHEST,
    })
    await source.insert('tokens', { ...token, id: HIGHEST, user_id: 6, key: `${KEY}b`, name: 'high' })
    await source.insert('tokens', {
      ...token,
      id: 8,
      user_id: 6,
      key: `${KEY}c`,
      name: 'good',
      used_quota: 3,
    })
    const outcome = await commandOn(gateway, 'import', source.place, '--apply', '--json')
    const report = outcome.json() as Report
    expect(report.failed).toBe(0)
    expect(linesOf(report, 'user').toSorted(byName)).toEqual(
      [
        { name: 'used', fate: 'left', notes: notes('used_quota') },
        { name: 'called', fate: 'left', notes: notes('request_count') },
        { name: 'high', fate: 'left', notes: [`id: expected at most ${2 ** 52}`] },
        { name: 'half', fate: 'carried', notes: [] },
        { name: 'rest', fate: 'left', notes: notes('used_quota') },
        { name: 'good', fate: 'carried', notes: [] },
      ].toSorted(byName),
    )
    expect(linesOf(report, 'token').toSorted(byName)).toEqual([
      { name: 'good', fate: 'carried', notes: [] },
      { name: 'high', fate: 'left', notes: [`id: expected at most ${2 ** 52}`] },
      { name: 'used', fate: 'left', notes: notes('used_quota') },
    ])

    const later = await newApi()
    await later.insert('users', { ...user, id: 12, username: 'later', used_quota: 2 ** 51 })
    const second = await commandOn(gateway, 'import', later.place, '--apply', '--json')
    expect(linesOf(second.json() as Report, 'user')).toEqual([
      { name: 'later', fate: 'left', notes: notes('used_quota') },
    ])

    await gateway.restart()
    const root = { id: 1, accessToken: ROOT.access_token }
    for (const path of [
      '/api/user/',
      '/api/log/stat',
      '/api/log/',
      '/api/data/',
      '/api/usage?start=0&by=user',
    ])
      expect(await manage(gateway.url, root, `GET ${path as '/'}`), path).toMatchObject({ status: 200 })
    const made = await manage(gateway.url, root, 'POST /api/user/', {
      username: 'new',
      password: 'a new password',
    })
    expect(made).toMatchObject({ status: 200 })
  })
})

function byName(a: object, b: object): number {
  return (a as Line).name < (b as Line).name ? -1 : 1
}

test('an import refuses each row that contains bytes other than UTF-8, and imports the other rows', async () => {
  const dataDir = folder()
  const source = await newApi()
  const insert = (id: number, name: string) =>
    source.sql(
      `INSERT INTO users (id, username, password, quota, used_quota, role, status, "group") VALUES (${id}, ${name}, '', 0, 0, 1, 1, 'default')`,
    )
  await insert(2, "CAST(x'616e6eff' AS TEXT)")
  await insert(3, "x'ff62656e'")
  await insert(4, "'cam'")
  await source.sql(
    `INSERT INTO tokens (id, user_id, "key", name, status, remain_quota, expired_time) VALUES (5, 4, CAST(x'6bff' AS TEXT), 'k', 1, 1, -1)`,
  )
  const report = await imported(dataDir, source.place)
  expect(report.lines.map(({ id, fate, notes }) => ({ id, fate, notes }))).toEqual(
    expect.arrayContaining([
      { id: 2, fate: 'left', notes: ['username: expected a text in UTF-8'] },
      { id: 3, fate: 'left', notes: ['username: expected a text in UTF-8'] },
      { id: 4, fate: 'carried', notes: [] },
      { id: 5, fate: 'left', notes: ['key: expected a text in UTF-8'] },
    ]),
  )
})

describe('a text of a database', () => {
  const COMMANDS = '\u001b]0;owned\u0007\u001b[8m\u009b31m\u202e\u2066'

  test('terminal control characters in an imported database are removed from the report and from its JSON', async () => {
    const dataDir = folder()
    const source = await newApi()
    await source.insert('users', { ...user, id: 2, username: `ann${COMMANDS}` })
    await source.insert('users', { ...user, id: 3, username: 'ben', group: `g${COMMANDS}` })
    await source.insert('channels', {
      id: 1,
      type: 37,
      key: 'k',
      status: 1,
      name: COMMANDS,
      models: COMMANDS,
    })
    await source.insert('options', { key: COMMANDS, value: COMMANDS })
    for (const args of [[], ['--json']]) {
      const { out, err } = await inFolder(dataDir, 'import', source.place, ...args)
      // oxlint-disable-next-line no-control-regex
      expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
      expect(out).toContain(args.length > 0 ? '\\u001b' : 'ann')
    }
  })

  test("an import prints a server's error without terminal control characters, and up to a maximum length", async () => {
    const port = await serverThat((socket) => {
      const fields = `SFATAL\0VFATAL\0C42601\0M${COMMANDS}${'x'.repeat(20_000)}\0\0`
      const body = Buffer.from(fields)
      const head = Buffer.alloc(5)
      head.write('E')
      head.writeInt32BE(body.length + 4, 1)
      socket.end(Buffer.concat([head, body]))
    })
    const { code, err } = await inFolder(folder(), 'import', `postgres://u@127.0.0.1:${port}/d`)
    expect(code).toBe(1)
    // oxlint-disable-next-line no-control-regex
    expect(err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
    expect(err).toContain('?]0;owned??[8m?31m??xxx')
    expect(err.length).toBeLessThan(5000)
  })
})

/** Starts a server that sends something as soon as a client connects. */
async function serverThat(greets: (socket: Socket) => void): Promise<number> {
  const sockets: Socket[] = []
  const listener = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    greets(socket)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  await once(listener, 'listening')
  return (listener.address() as AddressInfo).port
}
