import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import type { Patch } from '../fixtures/patch.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { HANGING_DISK, hangDisk } from '../fixtures/slow-disk.ts'

const QUOTA = 1_000_000
/** Each test has a key. */
const KEYS = ['recent', 'written', 'begun', 'ungated', 'stopped', 'hanging'] as const
type Key = (typeof KEYS)[number]

/** What the gateway does from its next start on; its patches read it. */
const behaviour = { HOLDS_WAIT: '', WITHOUT_GATE: '' }
const PATCHES: readonly Patch[] = [
  // No hold is written because it has waited; it is only written because it must be.
  {
    file: 'src/accounts/ledger/unwritten-holds.ts',
    text: 'const DUE_MS = 30',
    by: "const DUE_MS = process.env['HOLDS_WAIT'] ? 600_000 : 30",
  },
  {
    file: 'src/accounts/ledger/unwritten-holds.ts',
    text: 'const LATEST_MS = 40',
    by: "const LATEST_MS = process.env['HOLDS_WAIT'] ? 600_000 : 40",
  },
  // Sends content without checking its hold.
  {
    file: 'src/call/streamed-response.ts',
    text: 'const continueInBackground = this.#tap.lasting?.continueInBackground',
    by: `if (process.env['WITHOUT_GATE']) return
    const continueInBackground = this.#tap.lasting?.continueInBackground`,
  },
  {
    file: 'src/call/streamed-response.ts',
    text: ' || !this.call.hold.isDurable',
    by: " || (!process.env['WITHOUT_GATE'] && !this.call.hold.isDurable)",
  },
  HANGING_DISK,
]

let upstream: ScriptedUpstream
let copy: PatchedCopy
let gateway: RunningGateway
beforeAll(async () => {
  upstream = await startUpstream()
  copy = await patchedProgram(PATCHES)
})
afterAll(async () => {
  await gateway?.discard()
  copy?.discard()
  await upstream?.stop()
})

/** Starts the gateway with this behaviour, unless it runs with it. */
async function startAs(wanted: Partial<typeof behaviour>): Promise<void> {
  const next = { HOLDS_WAIT: '', WITHOUT_GATE: '', ...wanted }
  const isSame = isDeepStrictEqual(behaviour, next)
  Object.assign(behaviour, next)
  if (gateway === undefined)
    gateway = await startGateway({
      config: {
        ...plainConfiguration(upstream.baseUrl('m')),
        users: [
          ROOT,
          ...KEYS.map((key, index) =>
            user(2 + index, `user-${key}`, [token(key, { remain_quota: QUOTA })], { quota: QUOTA }),
          ),
        ],
      },
      env: behaviour,
      root: copy.root,
    })
  else if (!isSame || !gateway.isRunning) await gateway.restart()
}

interface Books {
  readonly rows: readonly { readonly reason: string; readonly quota: number }[]
  readonly holds: number
  readonly remain: number
}

function booksOf(key: Key): Books {
  const database = databaseOf(gateway.dataDir)
  const { id, remain_quota: remain } = database.token(`token-${key}`)
  return {
    rows: database
      .usage()
      .filter((row) => row.token_id === id)
      .map(({ reason, quota }) => ({ reason, quota })),
    holds: database.openHolds().filter((hold) => hold.token_id === id).length,
    remain,
  }
}

/** Starts the gateway again after a kill, and returns the accounts of a key. */
async function afterKill(key: Key): Promise<Books> {
  await gateway.kill()
  await gateway.restart()
  return booksOf(key)
}

const UNTOUCHED: Books = { rows: [], holds: 0, remain: QUOTA }

describe('a kill after the first content', () => {
  const askBegun = async (key: Key): Promise<void> => {
    upstream.script('m', {
      kind: 'stream',
      frames: [contentFrame(' word0')],
      rest: { after: new Promise(() => {}), frames: [finishFrame(), DONE_FRAME] },
    })
    const live = await open(gateway.url, askStream('m'), { key })
    await live.until(' word0')
  }

  test('a gateway patched not to wait until the hold is written charges nothing after a kill for content that the client got', async () => {
    await startAs({ HOLDS_WAIT: 'yes', WITHOUT_GATE: 'yes' })
    await askBegun('ungated')
    await gateway.kill()
    await startAs({ HOLDS_WAIT: 'yes' })
    expect(booksOf('ungated')).toEqual(UNTOUCHED)
  })

  test('a kill after the first content charges the call, however recent it is, because its hold was written before', async () => {
    await startAs({ HOLDS_WAIT: 'yes' })
    await askBegun('begun')
    const { rows, holds } = await afterKill('begun')
    expect([rows.map(({ reason }) => reason), holds]).toEqual([['crash'], 0])
    expect(rows[0]?.quota).toBeGreaterThan(0)
  })
})

test('a stop of the gateway settles calls whose holds were never written: each has its usage row, and no hold remains', async () => {
  await startAs({ HOLDS_WAIT: 'yes' })
  upstream.forget('m')
  const { promise: after, resolve: answer } = Promise.withResolvers<void>()
  upstream.script('m', { kind: 'whole', after })
  const answers = [1, 2, 3].map(() => call(gateway.url, ask('m'), { key: 'stopped' }))
  await upstream.receivedAtLeast('m', 3)
  const stopped = gateway.stop()
  answer()
  for (const { status } of await Promise.all(answers)) expect(status).toBe(200)
  expect(await stopped).toBe(0)
  const { rows, holds } = booksOf('stopped')
  expect([rows.map(({ reason }) => reason), holds]).toEqual([['complete', 'complete', 'complete'], 0])
})

describe('a kill while the upstream is silent', () => {
  const askSilent = async (key: Key): Promise<void> => {
    upstream.forget('m')
    upstream.script('m', { kind: 'silence' })
    for (const body of [ask('m'), askStream('m')]) call(gateway.url, body, { key }).catch(() => undefined)
    await upstream.receivedAtLeast('m', 2)
  }

  test('a kill of the gateway charges nothing for a call sent so recently that its hold is not written', async () => {
    await startAs({ HOLDS_WAIT: 'yes' })
    await askSilent('recent')
    expect(booksOf('recent')).toEqual(UNTOUCHED)
    await gateway.kill()
    await startAs({})
    expect(booksOf('recent')).toEqual(UNTOUCHED)
  })

  test('a kill of the gateway charges the prompt of a call whose hold is written, which takes at most 50 ms', async () => {
    await startAs({})
    await askSilent('written')
    await expect.poll(() => booksOf('written').holds).toBe(2)
    const { rows, holds, remain } = await afterKill('written')
    expect([rows.map(({ reason }) => reason), holds]).toEqual([['crash', 'crash'], 0])
    for (const { quota } of rows) expect(quota).toBeGreaterThan(0)
    expect(remain).toBe(QUOTA - rows.reduce((sum, { quota }) => sum + quota, 0))
  })
})

test('of an answer that arrives at once, streamed or whole, nothing is sent before its charge is durable', async () => {
  await startAs({})
  upstream.forget('m')
  const frames = [contentFrame(' word0'), finishFrame(), DONE_FRAME]
  const stream = { kind: 'stream', chunks: [Buffer.from(frames.join(''))] } as const
  upstream.script('m', stream, stream, { kind: 'whole' })
  // The first call reads the account from the database, which hangs later.
  await call(gateway.url, askStream('m'), { key: 'hanging' })
  const disk = hangDisk(gateway.dataDir)
  const answered: string[] = []
  const streamed = call(gateway.url, askStream('m'), { key: 'hanging' }).finally(() =>
    answered.push('streamed'),
  )
  const answers = [streamed]
  try {
    await upstream.receivedAtLeast('m', 2)
    answers.push(call(gateway.url, ask('m'), { key: 'hanging' }).finally(() => answered.push('whole')))
    await upstream.receivedAtLeast('m', 3)
    // The answers have reached the gateway before the last of these requests.
    for (let turn = 0; turn < 50; turn += 1)
      await call(gateway.url, undefined, { method: 'GET', path: '/healthz' })
    expect(answered).toEqual([])
  } finally {
    disk.free()
    await Promise.allSettled(answers)
  }
  for (const answer of answers) expect((await answer).status).toBe(200)
  expect((await streamed).text).toContain(' word0')
  const { rows, holds } = booksOf('hanging')
  expect([rows.length, holds]).toEqual([3, 0])
})
