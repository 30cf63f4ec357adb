import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
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
  users: [
    { ...ROOT, tokens: [token('root')] },
    user(2, 'ann', [token('ann')]),
    user(3, 'bob', [token('bob')]),
  ],
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
  /** A gateway on a small disk, and functions that leave little space on it, and enough again. */
  async function onSmallDisk(fields: Configuration) {
    const disk = mountSmallDisk(40_000_000)
    const folder = { path: disk.path, configFile: join(disk.path, 'gateway.yaml'), discard: () => {} }
    const program = await readyProgram({ folder, config: { ...configuration({}), ...fields } })
    const filler = join(disk.path, 'filler')
    const metrics = () => metricsOf(program.url)
    return {
      program,
      metrics,
      fill: async () => {
        const { bavail, bsize } = statfsSync(disk.path)
        writeFileSync(filler, Buffer.alloc(bavail * bsize - 3_000_000, 1))
        await eventually(async () => (await metrics()).sum('sluice_keeping_ok') === 0, 'short of space')
      },
      free: () => rmSync(filler),
    }
  }

  test('while disk space is low, no further line of a batch begins; lines under way are kept, and the others follow once there is space', async () => {
    const { program, fill, free } = await onSmallDisk({
      options: { local_batches: true, batches: { parallel: 2 } },
    })
    const gate = Promise.withResolvers<void>()
    upstream.script('m', { kind: 'whole', after: gate.promise, usage: usageText(10, 5) })
    onTestFinished(() => upstream.script('m', wholeChat({ text: 'Hello.', usage: usageText(10, 5) })))
    const before = upstream.received('m').length
    const ann = new BatchClient(program.url, 'ann')
    const ids = ['a', 'b', 'c', 'd']
    const { id } = await ann.make(ids.map((name) => chatLine(name)))
    await upstream.receivedAtLeast('m', before + 1)
    await fill()
    gate.resolve()
    await eventually(async () => (await ann.batch(id)).request_counts['completed'] === 1, 'the first is kept')
    expect(upstream.received('m')).toHaveLength(before + 1)
    await expect(ann.upload(Buffer.from('now'))).rejects.toThrow('storage_unavailable')
    free()
    const ended = await ann.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 4, failed: 0 } })
    expect((await ann.lines(ended.output_file_id)).map((line) => line.custom_id)).toEqual(ids)
    expect(upstream.received('m')).toHaveLength(before + 4)
  })

  test('while disk space is low, the content of calls is dropped and counted, and the calls are answered', async () => {
    const { program, fill, free, metrics } = await onSmallDisk({ content_log: { what: 'full' } })
    const contentOf = async (id: string): Promise<number> => {
      const headers = { authorization: ROOT.access_token, 'gateway-user': '1' }
      return (await call(program.url, undefined, { method: 'GET', path: `/api/content/${id}`, headers }))
        .status
    }
    const said = async (): Promise<string> => {
      const answer = await call(program.url, ask('m'), { key: 'root' })
      expect(answer.status).toBe(200)
      return String(answer.headers['x-request-id'])
    }
    const dropped = async (): Promise<number> =>
      (await metrics()).sum('sluice_content_dropped_total', { reason: 'full' })
    const first = await said()
    await eventually(async () => (await contentOf(first)) === 200, 'the content is kept')
    await fill()
    const second = await said()
    await eventually(async () => (await dropped()) === 1, 'the content is dropped')
    expect(await contentOf(second)).toBe(404)
    free()
    await eventually(async () => (await metrics()).sum('sluice_keeping_ok') === 1, 'there is space')
    const third = await said()
    await eventually(async () => (await contentOf(third)) === 200, 'the content is kept again')
    expect(await dropped()).toBe(1)
  })

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
