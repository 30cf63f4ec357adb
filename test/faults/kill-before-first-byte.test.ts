import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { call, type LiveResponse, open } from '../fixtures/client.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import type { Patch } from '../fixtures/patch.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { HANGING_DISK, hangDisk } from '../fixtures/slow-disk.ts'

const QUOTA = 1_000_000

/** No hold is written because it has waited; it is only written because it must be. */
const PATIENT: readonly Patch[] = [
  { file: 'src/accounts/ledger/unwritten-holds.ts', text: 'const DUE_MS = 30', by: 'const DUE_MS = 600_000' },
  {
    file: 'src/accounts/ledger/unwritten-holds.ts',
    text: 'const LATEST_MS = 40',
    by: 'const LATEST_MS = 600_000',
  },
]

/** Sends content without checking its hold. */
const WITHOUT_GATE: readonly Patch[] = [
  {
    file: 'src/call/streamed-response.ts',
    text: 'const continueInBackground = this.#tap.lasting?.continueInBackground',
    by: 'return',
  },
  { file: 'src/call/streamed-response.ts', text: ' || !this.call.hold.isDurable', by: '' },
]

let upstream: ScriptedUpstream
let patient: PatchedCopy
let broken: PatchedCopy
let hanging: PatchedCopy
beforeAll(async () => {
  upstream = await startUpstream()
  patient = await patchedProgram(PATIENT)
  broken = await patchedProgram([...PATIENT, ...WITHOUT_GATE])
  hanging = await patchedProgram([HANGING_DISK])
})
afterAll(async () => {
  patient?.discard()
  broken?.discard()
  hanging?.discard()
  await upstream?.stop()
})

/** A gateway with a quota for one key, until the test ends. */
async function gatewayOf(copy: PatchedCopy | undefined): Promise<RunningGateway> {
  const gateway = await startGateway({
    config: {
      ...plainConfiguration(upstream.baseUrl('m')),
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
    },
    ...(copy && { root: copy.root }),
  })
  onTestFinished(() => gateway.discard())
  return gateway
}

interface Books {
  readonly rows: readonly { readonly reason: string; readonly quota: number }[]
  readonly holds: number
  readonly remain: number
}

function booksOf({ dataDir }: RunningGateway): Books {
  const database = databaseOf(dataDir)
  return {
    rows: database.usage().map(({ reason, quota }) => ({ reason, quota })),
    holds: database.openHolds().length,
    remain: database.token('token-ann').remain_quota,
  }
}

/** Starts the gateway again after a kill, and returns its accounts. */
async function afterKill(gateway: RunningGateway): Promise<Books> {
  await gateway.kill()
  await gateway.restart()
  return booksOf(gateway)
}

const UNTOUCHED: Books = { rows: [], holds: 0, remain: QUOTA }

describe('a kill while the upstream is silent', () => {
  const askSilent = async (copy: PatchedCopy | undefined): Promise<RunningGateway> => {
    const gateway = await gatewayOf(copy)
    upstream.forget('m')
    upstream.script('m', { kind: 'silence' })
    for (const body of [ask('m'), askStream('m')])
      call(gateway.url, body, { key: 'ann' }).catch(() => undefined)
    await upstream.receivedAtLeast('m', 2)
    return gateway
  }

  test('a kill of the gateway charges nothing for a call sent so recently that its hold is not written', async () => {
    const gateway = await askSilent(patient)
    expect(booksOf(gateway)).toEqual(UNTOUCHED)
    expect(await afterKill(gateway)).toEqual(UNTOUCHED)
  })

  test('a kill of the gateway charges the prompt of a call whose hold is written, which takes at most 50 ms', async () => {
    const gateway = await askSilent(undefined)
    await expect.poll(() => booksOf(gateway).holds).toBe(2)
    const { rows, holds, remain } = await afterKill(gateway)
    expect([rows.map(({ reason }) => reason), holds]).toEqual([['crash', 'crash'], 0])
    for (const { quota } of rows) expect(quota).toBeGreaterThan(0)
    expect(remain).toBe(QUOTA - rows.reduce((sum, { quota }) => sum + quota, 0))
  })
})

describe('a kill after the first content', () => {
  const askBegun = async (copy: PatchedCopy): Promise<[RunningGateway, LiveResponse]> => {
    const gateway = await gatewayOf(copy)
    upstream.script('m', {
      kind: 'stream',
      frames: [contentFrame(' word0')],
      rest: { after: new Promise(() => {}), frames: [finishFrame(), DONE_FRAME] },
    })
    const live = await open(gateway.url, askStream('m'), { key: 'ann' })
    await live.until(' word0')
    return [gateway, live]
  }

  test('a kill after the first content charges the call, however recent it is, because its hold was written before', async () => {
    const [gateway] = await askBegun(patient)
    const { rows, holds } = await afterKill(gateway)
    expect([rows.map(({ reason }) => reason), holds]).toEqual([['crash'], 0])
    expect(rows[0]?.quota).toBeGreaterThan(0)
  })

  test('a gateway patched not to wait until the hold is written charges nothing after a kill for content that the client got', async () => {
    const [gateway] = await askBegun(broken)
    expect(await afterKill(gateway)).toEqual(UNTOUCHED)
  })
})

test('of an answer that arrives at once, streamed or whole, nothing is sent before its charge is durable', async () => {
  const gateway = await gatewayOf(hanging)
  const frames = [contentFrame(' word0'), finishFrame(), DONE_FRAME]
  const stream = { kind: 'stream', chunks: [Buffer.from(frames.join(''))] } as const
  upstream.script('m', stream, stream, { kind: 'whole' })
  // The first call reads the account from the database, which hangs later.
  await call(gateway.url, askStream('m'), { key: 'ann' })
  const disk = hangDisk(gateway.dataDir)
  const answered: string[] = []
  const streamed = call(gateway.url, askStream('m'), { key: 'ann' }).finally(() => answered.push('streamed'))
  const answers = [streamed]
  try {
    await upstream.receivedAtLeast('m', 2)
    answers.push(call(gateway.url, ask('m'), { key: 'ann' }).finally(() => answered.push('whole')))
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
  const { rows, holds } = booksOf(gateway)
  expect([rows.length, holds]).toEqual([3, 0])
})

test('a stop of the gateway settles calls whose holds were never written: each has its usage row, and no hold remains', async () => {
  const gateway = await gatewayOf(patient)
  upstream.forget('m')
  const { promise: after, resolve: answer } = Promise.withResolvers<void>()
  upstream.script('m', { kind: 'whole', after })
  const answers = [1, 2, 3].map(() => call(gateway.url, ask('m'), { key: 'ann' }))
  await upstream.receivedAtLeast('m', 3)
  const stopped = gateway.stop()
  answer()
  for (const { status } of await Promise.all(answers)) expect(status).toBe(200)
  expect(await stopped).toBe(0)
  const { rows, holds } = booksOf(gateway)
  expect([rows.map(({ reason }) => reason), holds]).toEqual([['complete', 'complete', 'complete'], 0])
})
