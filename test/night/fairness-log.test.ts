import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { expectServedDuring } from '../faults/served-during.ts'

/** Requests whose log lines exceed the capacity of the pipe and of this copy's queue several times. */
const MANY = 2_000

const copy = await patchedProgram([
  {
    file: 'src/gateway/open-log.ts',
    text: 'const MAX_QUEUED = 4 * 1024 * 1024',
    by: 'const MAX_QUEUED = 64 * 1024',
  },
])
afterAll(() => copy.discard())

let fixture: Fixture
afterEach(() => fixture?.close())
async function setUp(stdout: number): Promise<void> {
  fixture = await startFixture(
    (upstream) => ({
      rate_limits: {},
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
    }),
    { root: copy.root, stdout },
  )
  fixture.upstream.script('m', { kind: 'whole' })
}

/** Makes cheap refused requests of one client, each of which causes a log line. */
async function fill(): Promise<void> {
  const request = 'GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-nobody\r\n'
  const all = `${`${request}\r\n`.repeat(MANY - 1)}${request}connection: close\r\n\r\n`
  expect((await rawConnection(fixture.gateway.port, all).closed()).match(/HTTP\/1\.1 401 /g)).toHaveLength(
    MANY,
  )
}
const bob = (): Promise<FullResponse> => fixture.chat('bob', ask('m'))
async function dropped(): Promise<number> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  return Number(/^sluice_log_lines_dropped_total (\d+)$/m.exec(text)?.[1])
}
async function requestsAnswered(): Promise<number> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  const counts = [...text.matchAll(/^sluice_requests_total\{path="\/v1[^}]*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

describe('a log that is not read', () => {
  let folder: string
  let reader: number
  let writer: number
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-pipe-'))
    const path = join(folder, 'log')
    execFileSync('mkfifo', [path])
    reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    writer = openSync(path, constants.O_WRONLY)
  })
  afterAll(() => {
    closeSync(reader)
    closeSync(writer)
    rmSync(folder, { recursive: true })
  })
  const piece = Buffer.alloc(65_536)
  /** Reads the content of the pipe. */
  function read(): string {
    let text = ''
    for (;;) {
      try {
        const count = readSync(reader, piece)
        if (count === 0) return text
        text += piece.toString('utf8', 0, count)
      } catch (error) {
        expect(error).toMatchObject({ code: 'EAGAIN' })
        return text
      }
    }
  }

  test('a log that nobody reads delays no call and no stop; lost lines are counted, and a later line reports their number', async () => {
    await setUp(writer)
    await expectServedDuring(fill, bob)
    const lost = await dropped()
    expect(lost).toBeGreaterThan(0)
    const answered = await requestsAnswered()
    let text = ''
    const told = (): number[] =>
      [...text.matchAll(/^.*"dropped":(\d+).*$/gm)].map(([, count]) => Number(count))
    await expect
      .poll(() => {
        text += read()
        return told()
      })
      .toEqual([lost])
    expect(text.match(/^\{.*"msg":"request"\}$/gm)).toHaveLength(answered - lost)
    expect(text).toMatch(/^\{"level":40,"time":\d+,"dropped":\d+,"msg":"log lines were dropped[^"]*"\}$/m)
    await fill()
    expect(await fixture.gateway.stop()).toBe(0)
    read()
  })
})

describe('a log on a full disk', () => {
  test('a log on a full disk delays no call and no stop', async () => {
    const full = openSync('/dev/full', 'w')
    try {
      await setUp(full)
      await expectServedDuring(fill, bob)
      expect(await dropped()).toBeGreaterThan(0)
      expect(await fixture.gateway.stop()).toBe(0)
    } finally {
      closeSync(full)
    }
  })
})
