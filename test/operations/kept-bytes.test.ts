import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { CAN_MOUNT, mountSmallDisk } from '../stores/small-disk.ts'
import { metricsOf } from './metrics-text.ts'
import { discard, eventually, type Program, readyProgram } from './program.ts'

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
  upstream.script('m', wholeChat({ text: 'Hello.', usage: usageText(10, 5) }))
})
afterAll(() => upstream?.stop())

const configuration = (options: object): Configuration => ({
  options: { keep_responses: '1h', ...options },
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'))],
  users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
})

/** Makes a response whose content has this number of bytes, and resolves to its id. */
async function made({ url }: Program, key: string, bytes: number): Promise<string> {
  const body = { model: 'm', input: 'i'.repeat(bytes) }
  const answer = await call(url, body, { key, path: '/v1/responses' })
  expect(answer.status).toBe(200)
  return answer.json().id
}

async function isKept({ url }: Program, key: string, id: string): Promise<boolean> {
  const { status } = await call(url, undefined, { key, method: 'GET', path: `/v1/responses/${id}` })
  return status === 200
}

test("a user's oldest kept response is deleted when the user exceeds options.keep_bytes, and other users' responses stay", async () => {
  const program = await readyProgram({ config: configuration({ keep_bytes: '1MiB' }) })
  onTestFinished(() => discard(program))
  const others = await made(program, 'bob', 900_000)
  // Large contents are stored in parts, small ones in their rows.
  const ids: string[] = []
  for (const bytes of [600_000, 100_000, 300_000, 100_000]) ids.push(await made(program, 'ann', bytes))
  const [first = '', ...later] = ids
  await eventually(async () => !(await isKept(program, 'ann', first)), 'the oldest went')
  for (const id of later) expect(await isKept(program, 'ann', id)).toBe(true)
  expect(await isKept(program, 'bob', others)).toBe(true)
  const tooLarge = await made(program, 'ann', 1_100_000)
  expect(await isKept(program, 'ann', tooLarge)).toBe(false)
  for (const id of later) expect(await isKept(program, 'ann', id)).toBe(true)
})

describe.runIf(CAN_MOUNT)('a file system with little space', () => {
  test('while disk space is low, calls are answered and charged, and no responses are kept for retrieval', async () => {
    const disk = mountSmallDisk(40_000_000)
    const folder = { path: disk.path, configFile: join(disk.path, 'gateway.yaml'), discard: () => {} }
    const program = await readyProgram({ folder, config: configuration({}) })
    const metric = async (): Promise<number> => (await metricsOf(program.url)).sum('sluice_keeping_ok')
    const before = await made(program, 'ann', 1_000)
    expect(await metric()).toBe(1)

    const filler = join(disk.path, 'filler')
    const { bavail, bsize } = statfsSync(disk.path)
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 3_000_000, 1))
    // A measurement is at most one second old; otherwise it is repeated.
    await eventually(
      async () => !(await isKept(program, 'ann', await made(program, 'ann', 1_000))),
      'nothing is kept',
    )
    expect(await isKept(program, 'ann', before)).toBe(true)
    expect(await metric()).toBe(0)
    const sentence = 'no more responses are kept: the file system of DATA_DIR has little room'
    await eventually(() => program.log().some(({ msg }) => msg === sentence), 'the log says so')

    rmSync(filler)
    await eventually(
      async () => isKept(program, 'ann', await made(program, 'ann', 1_000)),
      'responses are kept again',
    )
    expect(await metric()).toBe(1)
  })
})
