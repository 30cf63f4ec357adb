import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { FOLDER_MARK } from '../../src/store/object-folder.ts'
import { manage } from '../fixtures/account.ts'
import { batchesOf, simulateBatches } from '../fixtures/batch-provider.ts'
import { BatchClient, bodyOf, chatLine } from '../fixtures/batches.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { BUCKET, type BucketFault, type S3Server, startS3Server, withoutS3 } from '../fixtures/s3-server.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { casesByTier } from '../runner/tier.ts'
import { CAN_MOUNT, mountSmallDisk } from '../stores/small-disk.ts'

const MIB = 1_048_576
const OPERATOR = { id: 1, accessToken: 'root-access-token' }
/** Words that no file may show. */
const SECRET = 'the secret words'
const FILES_PATH = '/v1/files'

const configured =
  (files: object) =>
  (upstream: ScriptedUpstream): Configuration => ({
    options: { files: { most: '8MiB', ...files } },
    rate_limits: { relay: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  })

const contentOf = async (client: BatchClient, id: string): Promise<string> =>
  (await client.ask(`${FILES_PATH}/${id}/content`)).text

describe('docs/batches.md: Where files are', () => {
  let fixture: Fixture
  const folder = join(mkdtempSync(join(tmpdir(), 'sluice-files-')), 'files')
  beforeAll(async () => {
    fixture = await startFixture(configured({ store: folder }))
  })
  afterAll(async () => {
    await fixture?.close()
    rmSync(join(folder, '..'), { recursive: true, force: true })
  })
  const client = (key: string): BatchClient => new BatchClient(fixture.gateway.url, key)
  const names = (): readonly string[] => readdirSync(folder).filter((name) => name !== FOLDER_MARK)

  test('a content is in encrypted parts that only the account of the gateway reads, and gone with its file', async () => {
    const content = Buffer.from(`${SECRET}\n`.repeat(150_000))
    const ann = client('ann')
    const id = await ann.upload(content)
    expect(names()).toHaveLength(Math.ceil(content.length / MIB))
    for (const name of names()) {
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
      expect(readFileSync(join(folder, name)).includes(SECRET)).toBe(false)
      expect(name).not.toContain(id.slice(5))
    }
    expect(await contentOf(ann, id)).toBe(content.toString())
    expect((await ann.ask(`${FILES_PATH}/${id}`, 'DELETE')).status).toBe(200)
    await expect.poll(names).toEqual([])
  })

  test('an upload beyond files.most leaves nothing in the folder', async () => {
    const ann = client('ann')
    await expect(ann.upload(Buffer.alloc(9 * MIB, 'x'))).rejects.toThrow('files_full')
    const ids = await Promise.all([3, 3].map((size) => ann.upload(Buffer.alloc(size * MIB, 'x'))))
    await expect(ann.upload(Buffer.alloc(3 * MIB, 'x'))).rejects.toThrow('files_full')
    expect(names()).toHaveLength(6)
    for (const id of ids) await ann.ask(`${FILES_PATH}/${id}`, 'DELETE')
    await expect.poll(names).toEqual([])
  })

  test('of a batch that has ended, its input and its results stay; of a deleted user, nothing', async () => {
    const bob = client('bob')
    const made = await bob.make([chatLine('a'), chatLine('b')])
    const ended = await bob.ended(made.id)
    expect(await bob.lines(ended.output_file_id)).toHaveLength(2)
    await expect.poll(() => names().length).toBe(2)
    for (const name of names()) expect(readFileSync(join(folder, name)).includes('custom_id')).toBe(false)
    expect((await manage(fixture.gateway.url, OPERATOR, 'DELETE /api/user/3')).status).toBe(200)
    await expect.poll(names).toEqual([])
  })

  test('a content that was changed, moved to another file or removed is not delivered', async () => {
    const ann = client('ann')
    const id = await ann.upload(Buffer.from('one'))
    const [one = ''] = names()
    const other = await ann.upload(Buffer.from('two'))
    const two = names().find((name) => name !== one) ?? ''
    const bytes = readFileSync(join(folder, two))
    writeFileSync(join(folder, one), bytes)
    expect(await contentOf(ann, id).catch(() => 'broken')).not.toMatch(/one|two/)
    bytes[0] = (bytes[0] ?? 0) ^ 1
    writeFileSync(join(folder, two), bytes)
    expect(await contentOf(ann, other).catch(() => 'broken')).not.toContain('two')
    rmSync(join(folder, two))
    expect(await contentOf(ann, other).catch(() => 'broken')).not.toContain('two')
    for (const each of [id, other]) await ann.ask(`${FILES_PATH}/${each}`, 'DELETE')
    await expect.poll(names).toEqual([])
  })

  test('while the folder is an empty one, because its share is not mounted, a running batch loses no line', async () => {
    const gate = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'whole', after: gate.promise })
    const received = fixture.upstream.received('m').length
    const words = { messages: [{ role: 'user', content: 'x'.repeat(40_000) }] }
    const ids = Array.from({ length: 10 }, (_, at) => `line-${at}`)
    const { id, input_file_id: input } = await client('ann').make(
      ids.map((name) => chatLine(name, 'm', words)),
    )
    await fixture.upstream.receivedAtLeast('m', received + 1)
    renameSync(folder, `${folder}.mounted`)
    mkdirSync(folder)
    // What was read is in memory, and so is which folder it was.
    await fixture.gateway.kill()
    // The gateway continues the batch while it starts.
    const before = fixture.gateway.logs().length
    await fixture.gateway.restart()
    const ann = client('ann')
    gate.resolve()
    await expect.poll(() => fixture.gateway.logs().slice(before)).toContain('is not mounted')
    await expect(ann.upload(Buffer.from('now'))).rejects.toThrow('storage_unavailable')
    expect((await ann.ask(`${FILES_PATH}/${input}/content`)).status).toBe(503)
    expect(readdirSync(folder)).toEqual([])
    expect((await ann.batch(id)).status).toBe('in_progress')
    rmSync(folder, { recursive: true })
    renameSync(`${folder}.mounted`, folder)
    const ended = await ann.ended(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 10, failed: 0 } })
    expect((await ann.lines(ended.output_file_id)).map((line) => line.custom_id)).toEqual(ids)
  })
})

describe('docs/batches.md: Files', () => {
  test('while the files and results of a user have files.most bytes, further lines wait, and go on once a file is deleted', async () => {
    const fixture = await startFixture((upstream) => ({
      ...configured({})(upstream),
      options: { files: { most: '8MiB' }, batches: { parallel: 2 } },
    }))
    try {
      fixture.upstream.script('m', { kind: 'whole', content: 'x'.repeat(1.6 * MIB) })
      const ann = new BatchClient(fixture.gateway.url, 'ann')
      const file = await ann.upload(Buffer.alloc(5 * MIB, 'x'))
      const ids = ['a', 'b', 'c']
      const { id } = await ann.make(ids.map((name) => chatLine(name)))
      // With the second result it is 8.2 MiB.
      await expect.poll(async () => (await ann.batch(id)).request_counts['completed']).toBe(2)
      expect(fixture.upstream.received('m')).toHaveLength(2)
      await ann.ask(`${FILES_PATH}/${file}`, 'DELETE')
      const ended = await ann.ended(id)
      expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 3, failed: 0 } })
      expect((await ann.lines(ended.output_file_id)).map((line) => line.custom_id)).toEqual(ids)
    } finally {
      await fixture.close()
    }
  })
})

describe.runIf(CAN_MOUNT)('docs/batches.md: Where files are, on a disk with little space', () => {
  test('uploads are refused with 503 storage_unavailable while the disk of the folder has little space', async () => {
    const disk = mountSmallDisk(40_000_000)
    const fixture = await startFixture(configured({ store: join(disk.path, 'files') }))
    try {
      const ann = new BatchClient(fixture.gateway.url, 'ann')
      const id = await ann.upload(Buffer.from('before'))
      const filler = join(disk.path, 'filler')
      const { bavail, bsize } = statfsSync(disk.path)
      writeFileSync(filler, Buffer.alloc(bavail * bsize - 3_000_000, 1))
      await expect(ann.upload(Buffer.from('now'))).rejects.toThrow('storage_unavailable')
      expect(await contentOf(ann, id)).toBe('before')
      rmSync(filler)
      await ann.upload(Buffer.from('after'))
    } finally {
      await fixture.close()
    }
  })

  test('while the disk has little space, a batch whose results have more than 1 MiB does not end, and its results are kept', async () => {
    const disk = mountSmallDisk(40_000_000)
    const fixture = await startFixture((upstream) => ({
      ...configured({})(upstream),
      options: { files: { store: join(disk.path, 'files') }, batches: { parallel: 2 } },
    }))
    try {
      const gate = Promise.withResolvers<void>()
      const large = { kind: 'whole', content: 'x'.repeat(MIB) } as const
      fixture.upstream.script('m', large, large, { ...large, after: gate.promise })
      const ann = new BatchClient(fixture.gateway.url, 'ann')
      const ids = ['a', 'b', 'c']
      const { id } = await ann.make(ids.map((name) => chatLine(name)))
      await fixture.upstream.receivedAtLeast('m', 3)
      const filler = join(disk.path, 'filler')
      const { bavail, bsize } = statfsSync(disk.path)
      // The results would fit into what is left.
      writeFileSync(filler, Buffer.alloc(bavail * bsize - 3_900_000, 1))
      gate.resolve()
      await expect
        .poll(async () => {
          const isOver = (await ann.batch(id)).status === 'completed'
          return isOver ? 'ended' : fixture.gateway.logs()
        })
        .toContain('there is no room for the results of a batch')
      rmSync(filler)
      const ended = await ann.ended(id)
      expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 3, failed: 0 } })
      expect((await ann.lines(ended.output_file_id)).map((line) => line.custom_id)).toEqual(ids)
    } finally {
      await fixture.close()
    }
  })

  test('while the disk has little space, no batch is made at a provider, and results stay there until there is space', async () => {
    const disk = mountSmallDisk(40_000_000)
    const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
    const simulate = (settings: object) => simulateBatches(simulator.chatUrl, settings)
    const requests = async (step: string): Promise<number> => (await simulate({}))[step] ?? 0
    const fixture = await startFixture(() => ({
      ...batchesOf('ann', simulator.chatUrl, 1_000_000),
      options: {
        files: { store: join(disk.path, 'files') },
        batches: { poll: '50ms', poll_most: '200ms' },
      },
    }))
    try {
      const ann = new BatchClient(fixture.gateway.url, 'ann')
      await simulate({ reset: true, behaviour: { running_ms: 2_000 } })
      const made = await ann.make([chatLine('a'), chatLine('b')], { metadata: {} })
      await expect.poll(() => requests('create')).toBe(1)
      const refused = { step: 'upload', status: 503, times: Number.MAX_SAFE_INTEGER }
      await simulate({ faults: [refused] })
      const uploads = await requests('upload')
      const waiting = await ann.make([chatLine('c')], { metadata: {} })
      await expect.poll(() => requests('upload')).toBeGreaterThan(uploads)
      const filler = join(disk.path, 'filler')
      const { bavail, bsize } = statfsSync(disk.path)
      writeFileSync(filler, Buffer.alloc(bavail * bsize - 3_000_000, 1))
      await simulate({ reset: true })
      // The results are asked for again and again. In that time the other batch would be made.
      await expect
        .poll(
          async () => (await requests('content')) >= 5 || (await ann.batch(made.id)).status === 'completed',
        )
        .toBe(true)
      expect((await ann.batch(made.id)).request_counts).toMatchObject({ total: 2, completed: 0 })
      expect(await requests('create')).toBe(1)
      rmSync(filler)
      for (const { id, counts } of [
        { id: made.id, counts: { completed: 2, failed: 0 } },
        { id: waiting.id, counts: { completed: 1, failed: 0 } },
      ])
        expect(await ann.ended(id)).toMatchObject({ status: 'completed', request_counts: counts })
    } finally {
      await fixture.close()
      await simulator.close()
    }
  })
})

describe.skipIf(withoutS3())('docs/batches.md: Where files are, in a bucket', () => {
  let server: S3Server
  let fixture: Fixture
  beforeAll(async () => {
    server = await startS3Server()
    const store = { store: `s3://${BUCKET}/sluice/files`, endpoint: server.url, region: 'us-east-1' }
    fixture = await startFixture(configured(store), { env: server.env })
  })
  afterAll(async () => {
    await fixture?.close()
    await server?.stop()
  })
  const client = (key: string): BatchClient => new BatchClient(fixture.gateway.url, key)
  const names = async (): Promise<readonly string[]> => [...(await server.objects()).keys()]

  test('files and batches are kept in encrypted objects below the prefix, which are removed with them', async () => {
    const ann = client('ann')
    const content = `${SECRET}\n`.repeat(150_000)
    const id = await ann.upload(Buffer.from(content))
    const objects = await server.objects()
    expect(objects.size).toBe(Math.ceil(content.length / MIB))
    for (const [name, bytes] of objects) {
      expect(name).toMatch(/^sluice\/files\/objects-[0-9a-f-]{36}\/\d+$/)
      expect(bytes.includes(SECRET)).toBe(false)
    }
    expect(await contentOf(ann, id)).toBe(content)
    await ann.ask(`${FILES_PATH}/${id}`, 'DELETE')
    await expect.poll(names).toEqual([])
    const made = await ann.make([chatLine('a')])
    const ended = await ann.ended(made.id)
    expect(await ann.lines(ended.output_file_id)).toHaveLength(1)
    for (const file of [made.input_file_id, ended.output_file_id ?? ''])
      await ann.ask(`${FILES_PATH}/${file}`, 'DELETE')
    await expect.poll(names).toEqual([])
  })

  test('while the bucket fails, uploads are a 503 storage_unavailable that leaves nothing, and others go on', async () => {
    const ann = client('ann')
    const kept = await ann.upload(Buffer.from('kept'))
    server.setFault((request, response) => {
      request.resume()
      response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    })
    await expect(ann.upload(Buffer.alloc(2 * MIB, 'x'))).rejects.toThrow('storage_unavailable')
    const download = await ann.ask(`${FILES_PATH}/${kept}/content`).catch(() => undefined)
    expect(download?.text).not.toBe('kept')
    expect((await ann.ask(`${FILES_PATH}/${kept}`)).status).toBe(200)
    server.setFault(undefined)
    expect(bodyOf(await ann.ask(FILES_PATH)).data.map(({ id }) => id)).toEqual([kept])
    expect(await contentOf(ann, kept)).toBe('kept')
    await ann.ask(`${FILES_PATH}/${kept}`, 'DELETE')
    await expect.poll(names).toEqual([])
  })

  test('what a bucket says of itself does not make a content lost; a missing or shortened object does', async () => {
    const ann = client('ann')
    const id = await ann.upload(Buffer.from('kept'))
    const statusAfter = async (status: number, body: string): Promise<number> => {
      server.setFault((request, response) => {
        request.resume()
        response.writeHead(status).end(body)
      })
      return (await ann.ask(`${FILES_PATH}/${id}/content`)).status
    }
    const code = (name: string): string => `<Error><Code>${name}</Code></Error>`
    expect(await statusAfter(404, code('NoSuchBucket'))).toBe(503)
    expect(await statusAfter(404, '<html>of a proxy</html>')).toBe(503)
    expect(await statusAfter(302, '')).toBe(503)
    expect(await statusAfter(206, 'x'.repeat(2 * MIB))).toBe(503)
    expect(await statusAfter(404, code('NoSuchKey'))).toBe(404)
    expect(await statusAfter(206, 'x')).toBe(404)
    server.setFault(undefined)
    expect(await contentOf(ann, id)).toBe('kept')
    await ann.ask(`${FILES_PATH}/${id}`, 'DELETE')
    await expect.poll(names).toEqual([])
  })

  const FAULTS: readonly (readonly [string, BucketFault])[] = [
    [
      'refuses its requests',
      (request, response) => {
        request.resume()
        response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
      },
    ],
    [
      'sends a byte now and then',
      (request, response) => {
        request.resume()
        response.writeHead(200)
        const timer = setInterval(() => response.write('x'), 50)
        response.on('close', () => clearInterval(timer))
      },
    ],
    ['does not answer', (request) => void request.resume()],
  ]
  test.each(casesByTier(2, FAULTS))(
    'while the bucket %s, a running batch waits, calls go on, and the gateway stops when told',
    async (_, fault) => {
      const gate = Promise.withResolvers<void>()
      fixture.upstream.script('m', { kind: 'whole', after: gate.promise })
      const received = fixture.upstream.received('m').length
      const words = { messages: [{ role: 'user', content: 'x'.repeat(40_000) }] }
      const ids = Array.from({ length: 10 }, (_, at) => `line-${at}`)
      const { id } = await client('ann').make(ids.map((name) => chatLine(name, 'm', words)))
      await fixture.upstream.receivedAtLeast('m', received + 1)
      let asked = 0
      server.setFault((request, response) => {
        asked += 1
        fault(request, response)
      })
      gate.resolve()
      await expect.poll(() => asked).toBeGreaterThan(0)
      expect((await fixture.chat('bob', ask('m'))).status).toBe(200)
      expect((await client('ann').batch(id)).status).toBe('in_progress')
      expect(await fixture.gateway.stop()).toBe(0)
      server.setFault(undefined)
      await fixture.gateway.restart()
      const ann = client('ann')
      const ended = await ann.ended(id)
      expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 10, failed: 0 } })
      expect((await ann.lines(ended.output_file_id)).map((line) => line.custom_id)).toEqual(ids)
      for (const file of [ended.input_file_id, ended.output_file_id ?? ''])
        await ann.ask(`${FILES_PATH}/${file}`, 'DELETE')
      await expect.poll(names).toEqual([])
    },
  )

  test('an upload during which the gateway is killed leaves nothing, neither in the list nor in the bucket', async () => {
    const ann = client('ann')
    const hung = Promise.withResolvers<void>()
    server.setFault((request, response) => {
      // The second part never arrives.
      if (request.method === 'PUT' && request.url?.endsWith('/1')) return hung.resolve()
      server.forward(request, response)
    })
    const upload = ann.upload(Buffer.alloc(3 * MIB, 'x')).catch(() => 'broken')
    await hung.promise
    expect((await names()).length).toBe(1)
    await fixture.gateway.kill()
    expect(await upload).toBe('broken')
    server.setFault(undefined)
    await fixture.gateway.restart()
    await expect.poll(async () => (await names()).length).toBe(0)
    expect(bodyOf(await ann.ask(FILES_PATH)).data).toEqual([])
  })
})
