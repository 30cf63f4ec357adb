import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Bucket } from './bucket.ts'
import type { ContentEntry } from './entries.ts'
import { DAY_MS, dayOf } from './retention.ts'

const NOW_MS = Date.parse('2026-11-25T12:00:00Z')
const TODAY = dayOf(NOW_MS)
const HOUR_MS = 3_600_000

const servers: Server[] = []
const buckets: Bucket[] = []
afterEach(async () => {
  for (const bucket of buckets.splice(0)) await bucket.close()
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A bucket whose server answers as the test says. */
async function bucketOf(handler: Handler): Promise<Bucket> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const bucket = new Bucket(
    { kind: 's3', bucket: 'said', prefix: 'sluice/log', endpoint, region: 'us-east-1' },
    { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
    'owner',
  )
  buckets.push(bucket)
  return bucket
}

const NAME = `2026-12-01/0193675a1b2c-${'ab'.repeat(12)}`
const entry = (object = `s3://said/sluice/log/owner/${NAME}`): ContentEntry => ({
  id: '0193675a-1b2c-7000-8000-000000000001',
  userId: 2,
  tokenId: 3,
  startedMs: NOW_MS,
  expiresMs: NOW_MS + DAY_MS,
  what: 'full',
  bytes: 100,
  sha256: '',
  lengths: '[100]',
  keyId: 'key',
  dropDay: TODAY + 3,
  object,
  objectAt: 4,
  objectBytes: 6,
  sealed: Buffer.from('sealed'),
})

test('stored contents that expire on the same day are one object in the bucket, and each entry has its offset and length in it', async () => {
  const put: { path: string; body: string }[] = []
  const bucket = await bucketOf(async (request, response) => {
    const pieces = await request.toArray()
    put.push({ path: String(request.url), body: Buffer.concat(pieces).toString() })
    response.end()
  })
  const kept = await bucket.keep([entry(''), entry(''), { ...entry(''), dropDay: TODAY + 8 }])
  expect(put).toHaveLength(2)
  expect(put[0]?.path).toMatch(/^\/said\/sluice\/log\/owner\/2026-11-28\/[0-9a-f]{12}-[0-9a-f]{24}$/)
  expect(put.map(({ body }) => body)).toEqual(['sealedsealed', 'sealed'])
  expect(
    kept.map(({ object, objectAt, objectBytes, sealed }) => [object, objectAt, objectBytes, sealed.length]),
  ).toEqual([
    [`s3:/${put[0]?.path}`, 0, 6, 0],
    [`s3:/${put[0]?.path}`, 6, 6, 0],
    [`s3:/${put[1]?.path}`, 0, 6, 0],
  ])
})

test('a stored content is read from a bucket by its byte range, and a temporary failure is retried', async () => {
  const ranges: unknown[] = []
  const bucket = await bucketOf((request, response) => {
    ranges.push(request.headers.range)
    if (ranges.length < 3) response.writeHead(ranges.length === 1 ? 503 : 429).end('<Code>SlowDown</Code>')
    else response.writeHead(206).end('sealed')
  })
  expect((await bucket.sealedOf(entry()))?.toString()).toBe('sealed')
  expect(ranges).toEqual(['bytes=4-9', 'bytes=4-9', 'bytes=4-9'])
})

test.each<[string, Handler, string]>([
  [
    'an error',
    (_, response) => void response.writeHead(500).end('<Code>InternalError</Code> and a secret'),
    'responded 500 InternalError',
  ],
  ['an error without an end', (_, response) => endless(response.writeHead(500)), 'responded 500'],
  [
    'too many bytes',
    (_, response) => void response.writeHead(206).end('sealed and more'),
    'more than 6 bytes',
  ],
  ['bytes without an end', (_, response) => endless(response.writeHead(206)), 'more than 6 bytes'],
  ['too few bytes', (_, response) => void response.writeHead(206).end('seal'), '4 of 6 bytes'],
  ['a page in its place', (_, response) => void response.writeHead(200).end('later'), 'responded 200'],
  ['a page of an error', (_, response) => void response.writeHead(404).end('not here'), 'responded 404'],
  [
    'another bucket',
    (_, response) => void response.writeHead(404).end('<Code>NoSuchBucket</Code>'),
    'responded 404',
  ],
  ['a range that is refused', (_, response) => void response.writeHead(416).end(), 'responded 416'],
  [
    'a range that is refused although the object has it',
    (_, response) => void response.writeHead(416, { 'content-range': 'bytes */10' }).end(),
    'responded 416',
  ],
  [
    'the whole object, from its start',
    (_, response) => void response.writeHead(200).end('sealed'),
    'responded 200',
  ],
  [
    'a redirection',
    (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    'responded 302',
  ],
  [
    'a refusal',
    (_, response) => void response.writeHead(403).end('<Code>AccessDenied</Code>'),
    'responded 403',
  ],
  [
    'a connection that is cut',
    (request) => void request.socket.destroy(),
    'cannot be reached (UND_ERR_SOCKET)',
  ],
])(
  "a bucket that answers a read with %s is an error, which does not repeat the server's text",
  async (_, handler, said) => {
    const reading = (await bucketOf(handler)).sealedOf(entry())
    await expect(reading).rejects.toThrow(said)
    await expect(reading).rejects.not.toThrow('secret')
  },
)

test.each<[string, number, Readonly<Record<string, string>>, string]>([
  ['ends within it', 206, { 'content-range': 'bytes 4-7/8' }, 'seal'],
  ['ends before it', 416, { 'content-range': 'bytes */3' }, ''],
  ['ends before it, by the code of its error', 416, {}, '<Code>InvalidRange</Code>'],
  ['is not there', 404, {}, '<Code>NoSuchKey</Code>'],
])('stored content does not exist if the object in the bucket %s', async (_, status, headers, body) => {
  const bucket = await bucketOf((_request, response) => response.writeHead(status, headers).end(body))
  expect(await bucket.sealedOf(entry())).toBeUndefined()
})

test('stored content at the start of an object is not missing because a server sends less in its place', async () => {
  const bucket = await bucketOf((_, response) => response.writeHead(200, { 'content-length': 4 }).end('seal'))
  await expect(bucket.sealedOf({ ...entry(), objectAt: 0 })).rejects.toThrow('4 of 6 bytes')
})

test.each([
  ['in another bucket', { object: `s3://other/sluice/log/${NAME}` }],
  ['with a name that is none of ours', { object: 's3://said/sluice/log/../../etc/passwd' }],
  ['with a query', { object: `s3://said/sluice/log/?acl=1/${NAME}` }],
  ['longer than its content can be', { objectBytes: 129 }],
  ['without a length', { objectBytes: 0 }],
])('stored content is not requested from the bucket if its entry names an object %s', async (_, place) => {
  let requests = 0
  const bucket = await bucketOf((_request, response) => {
    requests += 1
    response.writeHead(206).end('sealed')
  })
  expect(await bucket.sealedOf({ ...entry(), ...place })).toBeUndefined()
  expect(requests).toBe(0)
})

/** A name of an object that was made some time ago, and is removed on a day. */
const named = (day: number, ageMs: number, letter: string): string =>
  `sluice/log/owner/${new Date(day * DAY_MS).toISOString().slice(0, 10)}/${(NOW_MS - ageMs).toString(16).padStart(12, '0')}-${letter.repeat(24)}`

test('content objects in a bucket are removed on the day they expire, or if nothing refers to them for an hour', async () => {
  const past = named(TODAY, 2 * DAY_MS, 'a')
  const used = named(TODAY + 1, 2 * HOUR_MS, 'b')
  const unused = named(TODAY + 1, 2 * HOUR_MS, 'c')
  const young = named(TODAY + 1, HOUR_MS / 2, 'd')
  const foreign = [
    past.replace('owner', 'other'),
    'sluice/log/owner/readme.txt',
    `other/${past}`,
    'sluice/log/owner/2026-13-99/x',
    `${past}/more`,
  ]
  const queries: string[] = []
  const removed: string[] = []
  const page = (names: readonly string[], next = ''): string =>
    `<ListBucketResult>${names.map((name) => `<Contents><Key>${name}</Key></Contents>`).join('')}${next}</ListBucketResult>`
  const bucket = await bucketOf((request, response) => {
    const { pathname, searchParams } = new URL(String(request.url), 'http://server')
    if (request.method === 'DELETE') {
      removed.push(pathname.replace('/said/', ''))
      return void response.writeHead(removed.length === 1 ? 404 : 204).end()
    }
    queries.push(`${searchParams.get('prefix')} ${searchParams.get('continuation-token')}`)
    const next = '<NextContinuationToken>a&amp;b=</NextContinuationToken>'
    response.end(queries.length === 1 ? page([past, ...foreign], next) : page([used, unused, young]))
  })
  const objects = new Set([`s3://said/${used}`])
  expect(await bucket.sweep(TODAY, NOW_MS, () => Promise.resolve(objects))).toBe(2)
  expect(removed).toEqual([past, unused])
  expect(queries).toEqual(['sluice/log/owner/ null', 'sluice/log/owner/ a&b='])
})

test.each<[string, string, boolean]>([
  ['names without an end', '<Key>'.repeat(400_000), true],
  ['more than four million bytes', ' '.repeat(4 * 1024 * 1024 + 1), false],
  ['the same page for ever', '<NextContinuationToken>again</NextContinuationToken>', true],
])('an object list of a bucket with %s is read or refused in bounded time', async (_, list, isRead) => {
  let requests = 0
  const bucket = await bucketOf((_request, response) => {
    requests += 1
    response.end(list)
  })
  const sweeping = bucket.sweep(TODAY, NOW_MS, () => Promise.resolve(new Set()))
  await (isRead ? expect(sweeping).resolves.toBe(0) : expect(sweeping).rejects.toThrow('more than'))
  expect(requests).toBeLessThanOrEqual(2)
})

/** A bucket that lists new objects without end, all of which may be removed, on pages of this size. */
async function endlessBucket(names: number): Promise<{ bucket: Bucket; removed: string[] }> {
  const removed: string[] = []
  let listed = 0
  const bucket = await bucketOf((request, response) => {
    if (request.method === 'DELETE') {
      removed.push(String(request.url))
      return void response.writeHead(204).end()
    }
    const page = Array.from({ length: names }, () => {
      listed += 1
      return `<Key>sluice/log/owner/2026-01-01/${listed.toString(16).padStart(12, '0')}-${'a'.repeat(24)}</Key>`
    })
    response.end(`${page.join('')}<NextContinuationToken>${listed}</NextContinuationToken>`)
  })
  return { bucket, removed }
}

test('a sweep of a bucket that lists objects without end is over in its time, and states what it has removed', async () => {
  const { bucket, removed } = await endlessBucket(8)
  const none = () => Promise.resolve(new Set<string>())
  expect(await bucket.sweep(TODAY, NOW_MS, none, 0)).toBe(0)
  expect(removed).toEqual([])
  const count = await bucket.sweep(TODAY, NOW_MS, none, 50)
  expect(count).toBe(removed.length)
  // The other limit, on pages, is a thousand.
  expect(count).toBeLessThan(8 * 1_000)
})

test('of a page of a listing, a sweep reads as many names as a page may have', async () => {
  const names = Array.from({ length: 1_500 }, (_, index) => named(TODAY, index, 'a'))
  const removed: string[] = []
  const bucket = await bucketOf((request, response) => {
    if (request.method === 'GET') return void response.end(names.map((name) => `<Key>${name}</Key>`).join(''))
    removed.push(String(request.url))
    response.writeHead(204).end()
  })
  expect(await bucket.sweep(TODAY, NOW_MS, () => Promise.resolve(new Set()))).toBe(1_000)
  expect(removed).toHaveLength(1_000)
})

function endless(response: ServerResponse): void {
  const piece = Buffer.alloc(65_536, 'x')
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', more)
  more()
}
