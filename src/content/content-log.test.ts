import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { deriveSecrets } from '../store/secrets.ts'
import { CONTENT_LOG_DEFAULTS, type ContentLogSettings } from '../domain/content-log.ts'
import { temporaryFolder } from '../../test/stores/rows.ts'
import type { CapturedCall } from './content-capture.ts'
import { digestOf } from './entries.ts'
import { ContentLog } from './content-log.ts'
import { atNight } from '../../test/runner/tier.ts'

const MIB = 1024 * 1024
const NOW_MS = Date.now()

const SECRETS = deriveSecrets('a-secret-for-tests-0123456789abcdef')

interface OpenLog {
  readonly log: ContentLog
  readonly dropped: string[]
  readonly warned: string[]
  readonly folder: string
}

interface LogOptions {
  readonly heapMb?: number
  readonly readMs?: number
  readonly hasRoom?: () => boolean
  readonly settings?: () => ContentLogSettings
}

/** A log for one test. */
function openLog(options: LogOptions = {}): OpenLog {
  const opened = openLogIn(`${temporaryFolder()}/content`, options)
  onTestFinished(() => opened.log.close())
  return opened
}

function openLogIn(
  folder: string,
  { heapMb, readMs, hasRoom = () => true, settings = () => CONTENT_LOG_DEFAULTS }: LogOptions = {},
): OpenLog {
  const dropped: string[] = []
  const warned: string[] = []
  const log = new ContentLog({
    secrets: SECRETS,
    folder,
    databaseUrl: undefined,
    bucketKey: { accessKeyId: 'id', secretAccessKey: 'key' },
    settings,
    hasRoom,
    onDropped: (reason) => dropped.push(reason),
    warn: (sentence) => warned.push(sentence),
    nowMs: () => performance.now(),
    ...(heapMb !== undefined && { heapMb }),
    ...(readMs !== undefined && { readMs }),
  })
  return { log, dropped, warned, folder }
}

let calls = 0
function callOf(userId: number): CapturedCall {
  calls += 1
  const time = NOW_MS.toString(16).padStart(12, '0')
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(calls).padStart(12, '0')}`
  return { id, userId, tokenId: userId, startedMs: NOW_MS, what: 'full', keepMs: 3_600_000 }
}

/** Says something in a call of a user, and ends the call. */
function say(log: ContentLog, call: CapturedCall, request: Buffer, answer: Buffer, sent = answer): void {
  const capture = log.capture(call, request, () => call)
  capture.beginAttempt()
  capture.answerReceived(answer)
  capture.onPiece(sent)
  capture.relayed()
  capture.closed()
}

describe('a content log with the default settings', () => {
  // Its threads take a second to start.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-content-'))
  let log: ContentLog
  let dropped: string[]
  beforeAll(() => {
    ;({ log, dropped } = openLogIn(folder))
  })
  beforeEach(() => void dropped.splice(0))
  afterAll(async () => {
    await log.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('content for which the system has no memory is dropped and counted, and other content in the queue is stored', async () => {
    const [before, huge, after] = [callOf(1), callOf(2), callOf(3)]
    say(log, before, Buffer.from('before'), Buffer.from('an answer'))
    // No system allocates this much at once.
    expect(log.take(huge, 10)).toBe(true)
    log.add(huge, { request_received: { length: 2 ** 52 } as Buffer }, 10)
    say(log, after, Buffer.from('after'), Buffer.from('an answer'))
    expect(dropped).toEqual(['full'])
    await log.flush()
    expect(log.held).toBe(0)
    expect((await log.find([huge.id])).size).toBe(0)
    for (const [{ id }, text] of [
      [before, 'before'],
      [after, 'after'],
    ] as const) {
      const { content } = (await log.read(id)) ?? {}
      expect(Buffer.from(content ?? []).toString()).toBe(`${text}an answer`)
    }
  })

  test('a read of stored content reserves memory for twelve times the size of the content', async () => {
    const call = callOf(1)
    say(log, call, Buffer.alloc(1_000), Buffer.alloc(500))
    await log.flush()
    const summary = (await log.find([call.id])).get(call.id)
    expect(summary && log.bytesToRead(summary)).toBe(12 * 1_500)
  })

  test('the content log stores an answer once if the client got the same bytes, however they were divided', async () => {
    const [same, longer, shorter, other] = [callOf(1), callOf(1), callOf(1), callOf(1)]
    const answer = Buffer.from('one two three')
    for (const [call, sent] of [
      [same, ['one ', 'two three']],
      [longer, ['one two three', ' four']],
      [shorter, ['one']],
      [other, ['one ', 'TWO', ' three']],
    ] as const) {
      const capture = log.capture(call, Buffer.from('request'), () => call)
      capture.onBody(Buffer.from('request'))
      for (const piece of ['one t', 'wo three']) capture.answerReceived(Buffer.from(piece))
      for (const piece of sent) capture.onPiece(Buffer.from(piece))
      capture.closed()
      capture.relayed()
    }
    await log.flush()
    const lengthsOf = async ({ id }: CapturedCall) => (await log.read(id))?.lengths
    expect(await lengthsOf(same)).toEqual([7, -1, answer.length, -1])
    expect(await lengthsOf(longer)).toEqual([7, -1, answer.length, answer.length + 5])
    expect(await lengthsOf(shorter)).toEqual([7, -1, answer.length, 3])
    expect(await lengthsOf(other)).toEqual([7, -1, answer.length, answer.length])
  })

  test('the content log does not store an answer that was not delivered to the client', async () => {
    const call = callOf(1)
    const capture = log.capture(call, Buffer.from('request'), () => call)
    for (const answer of ['error', 'answer']) {
      capture.beginAttempt()
      capture.onBody(Buffer.from(`request for ${answer}`))
      capture.answerReceived(Buffer.from(answer))
    }
    capture.onPiece(Buffer.from('answer'))
    capture.relayed()
    capture.closed()
    await log.flush()
    const read = await log.read(call.id)
    expect(Buffer.from(read?.content ?? []).toString()).toBe('requestrequest for answeranswer')
    expect({ held: log.held, dropped }).toEqual({ held: 0, dropped: [] })
  })

  test('the content of a call counts as memory of the storage queue once the call is charged, even if its client still reads', async () => {
    const call = callOf(1)
    const capture = log.capture(call, Buffer.alloc(MIB), () => call)
    capture.onBody(Buffer.alloc(MIB, 'sent'))
    expect(log.held).toBe(0)
    capture.relayed()
    expect(log.held).toBe(2 * MIB + 1)
    capture.closed()
    await log.flush()
    expect({ held: log.held, dropped }).toEqual({ held: 0, dropped: [] })
  })

  test("captured content that the call's settings do not store is discarded, and not counted as dropped", async () => {
    const call = callOf(1)
    const capture = log.capture(call, Buffer.from('request'), () => undefined)
    capture.answerReceived(Buffer.from('answer'))
    capture.closed()
    capture.relayed()
    await log.flush()
    expect({ held: log.held, dropped }).toEqual({ held: 0, dropped: [] })
    expect(await log.read(call.id)).toBeUndefined()
  })

  test.each(['metadata', 'redacted'] as const)(
    'an answer with too many JSON values does not prevent the content of other calls from being stored (%s)',
    async (what) => {
      const [large, other] = [{ ...callOf(1), what }, callOf(2)]
      const answer = Buffer.from(`{"finish_reason":"stop","x":[${'[],'.repeat(MIB)}0]}`)
      say(log, large, Buffer.from('{"model":"m"}'), answer)
      say(log, other, Buffer.from('request'), Buffer.from('answer'))
      await log.flush()
      expect(Buffer.from((await log.read(other.id))?.content ?? []).toString()).toBe('requestanswer')
      const { lengths, content } = (await log.read(large.id))!
      if (what === 'redacted') expect(lengths).toEqual([13, -1, -1, -1])
      else {
        const facts = JSON.parse(Buffer.from(content).toString())
        expect(facts.request_received.parameters).toEqual({ model: 'm' })
        expect(facts.answer_received).toEqual({ bytes: answer.length, sha256: digestOf(answer) })
      }
      expect(dropped).toEqual(what === 'redacted' ? ['unscreened'] : [])
      expect(log.held).toBe(0)
    },
  )

  test('the thread of the content log reads with the secrets that replace those of its start', async () => {
    const call = callOf(1)
    say(log, call, Buffer.from('request'), Buffer.from('answer'))
    await log.flush()
    const text = async (): Promise<string> =>
      Buffer.from((await log.read(call.id).catch(() => undefined))?.content ?? []).toString()
    expect(await text()).toBe('requestanswer')
    log.replaceSecrets(deriveSecrets('another-secret-for-tests-0123456789'))
    expect(await text()).toBe('')
    log.replaceSecrets(SECRETS)
    expect(await text()).toBe('requestanswer')
  })

  test('form data that is not text is not stored at level redacted, because it cannot be searched for secrets', async () => {
    const call = { ...callOf(1), what: 'redacted' as const }
    say(log, call, Buffer.from([0xff, 0xfe]), Buffer.from('answer'))
    await log.flush()
    expect((await log.read(call.id))?.lengths).toEqual([-1, -1, 6, -1])
  })
})

test('content to be stored beyond the memory share of its user is dropped and counted', async () => {
  const { log, dropped } = openLog()
  const [large, small] = [Buffer.alloc(32 * MIB), Buffer.from('small')]
  const [first, second, third, other] = [callOf(1), callOf(1), callOf(1), callOf(2)]
  say(log, first, small, large)
  say(log, second, small, large)
  say(log, third, small, small)
  say(log, other, small, small)
  expect(dropped).toEqual(['full'])
  expect(log.held).toBeLessThanOrEqual(64 * MIB)
  await log.flush()
  expect(log.held).toBe(0)
  const found = await log.find([first, second, third, other].map(({ id }) => id))
  expect([...found.keys()].sort()).toEqual([first, third, other].map(({ id }) => id).sort())
})

test('the content of a call in flight is not stored if its user deletes all content meanwhile', async () => {
  const { log, dropped } = openLog()
  const call = callOf(1)
  const capture = log.capture(call, Buffer.from('request'), () => call)
  capture.answerReceived(Buffer.from('answer'))
  expect(await log.delete({ userId: 1, tokenId: undefined, fromMs: 0, toMs: Date.now() + 1 })).toBe(false)
  capture.onPiece(Buffer.from('answer'))
  capture.relayed()
  capture.closed()
  say(log, callOf(2), Buffer.from('request'), Buffer.from('answer'))
  await log.flush()
  expect(await log.read(call.id)).toBeUndefined()
  expect(await log.users()).toEqual([2])
  expect({ held: log.held, dropped }).toEqual({ held: 0, dropped: [] })
})

test('two simultaneous deletions each remove the content of their key, and the content of other keys stays', async () => {
  const { log } = openLog()
  const owners = [11, 12, 13].flatMap((tokenId) => [1, 2, 3].map(() => ({ ...callOf(1), tokenId })))
  for (const call of owners) say(log, call, Buffer.from('request'), Buffer.from(`answer for ${call.tokenId}`))
  await log.flush()
  const period = { userId: 1, fromMs: 0, toMs: Date.now() + 1_000 }
  const deletions = [11, 12].map((tokenId) => log.delete({ ...period, tokenId }))
  expect(await Promise.all(deletions)).toEqual([true, true])
  for (const { id, tokenId } of owners) {
    const read = await log.read(id)
    if (tokenId === 13) expect(Buffer.from(read?.content ?? []).toString()).toBe('requestanswer for 13')
    else expect(read).toBeUndefined()
  }
  expect(await log.users()).toEqual([1])
  await log.delete({ ...period, tokenId: undefined })
  expect(await log.users()).toEqual([])
})

atNight(
  'a call that crashes the content thread is dropped and counted, and the content of other calls is stored',
  async () => {
    const { log, dropped } = openLog({ heapMb: 44 })
    const culprit = { ...callOf(1), what: 'redacted' as const }
    const others = [callOf(1), callOf(2), callOf(3), callOf(3)]
    const many = Buffer.from(
      JSON.stringify({ x: Array.from({ length: 190_000 }, (_, index) => `text ${index}`.padEnd(120)) }),
    )
    for (const call of others.slice(0, 2)) say(log, call, Buffer.from('request'), Buffer.from('answer'))
    say(log, culprit, many, Buffer.from('answer'))
    for (const call of others.slice(2)) say(log, call, Buffer.from('request'), Buffer.from('answer'))
    await log.flush()
    expect(dropped).toEqual(['failed'])
    expect(log.held).toBe(0)
    for (const { id } of others)
      expect(Buffer.from((await log.read(id))?.content ?? []).toString()).toBe('requestanswer')
    expect(await log.read(culprit.id)).toBeUndefined()
  },
)

test('content is stored where the settings say, also after a change while the thread runs', async () => {
  const bucket = createServer((_, response) => response.writeHead(503).end())
  await once(bucket.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void bucket.close())
  const endpoint = `http://127.0.0.1:${(bucket.address() as AddressInfo).port}`
  let settings = CONTENT_LOG_DEFAULTS
  const { log } = openLog({ settings: () => settings })
  const [first, second] = [callOf(1), callOf(1)]
  say(log, first, Buffer.from('request'), Buffer.from('answer'))
  await log.flush()
  settings = { ...settings, store: { kind: 's3', bucket: 'b', prefix: '', endpoint, region: 'r' } }
  say(log, second, Buffer.from('request'), Buffer.from('answer'))
  const stored = log.flush().then(() => 'database')
  expect(await Promise.race([once(bucket, 'request').then(() => 'bucket'), stored])).toBe('bucket')
  settings = CONTENT_LOG_DEFAULTS
  await stored
  expect(Buffer.from((await log.read(second.id))?.content ?? []).toString()).toBe('requestanswer')
})

test('a deletion that a bucket prevents twice is a warning with the reason, until it is complete', async () => {
  const objects = new Map<string, Buffer>()
  let isForbidden = false
  const bucket = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    const [, from = 0, to = 0] = (/^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []).map(Number)
    if (request.method === 'PUT') objects.set(String(request.url), body)
    if (isForbidden) response.writeHead(403).end('<Code>AccessDenied</Code>')
    else if (request.headers.range === undefined) response.end()
    else response.writeHead(206).end(objects.get(String(request.url))?.subarray(from, to + 1))
  })
  await once(bucket.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void bucket.close())
  const endpoint = `http://127.0.0.1:${(bucket.address() as AddressInfo).port}`
  const store = { kind: 's3', bucket: 'b', prefix: '', endpoint, region: 'r' } as const
  const { log, warned } = openLog({ settings: () => ({ ...CONTENT_LOG_DEFAULTS, store }) })
  const [gone, kept] = [11, 12].map((tokenId) => ({ ...callOf(1), tokenId }))
  for (const call of [gone!, kept!]) say(log, call, Buffer.from('request'), Buffer.from('answer'))
  await log.flush()
  isForbidden = true
  expect(await log.delete({ userId: 1, tokenId: 11, fromMs: 0, toMs: Date.now() + 1_000 })).toBe(true)
  expect(warned).toEqual([])
  await log.prune()
  const reason = 'is not complete (the bucket responded 403'
  expect(warned).toContainEqual(expect.stringContaining(reason))
  isForbidden = false
  warned.length = 0
  await log.prune()
  expect(warned).toEqual([])
  expect(Buffer.from((await log.read(kept!.id))?.content ?? []).toString()).toBe('requestanswer')
  expect(await log.read(gone!.id)).toBeUndefined()
})

test('a search and a read of stored content fail if the thread of the content log does not respond in time', async () => {
  const { log, folder } = openLog({ readMs: 100 })
  const call = callOf(1)
  say(log, call, Buffer.from('request'), Buffer.from('answer'))
  await log.flush()
  // On a busy machine, the thread may take longer when it is idle as well.
  const found = async (): Promise<void> => {
    await expect.poll(async () => (await log.find([call.id])).size).toBe(1)
  }
  await found()
  // The thread waits for this lock.
  const blocked = new DatabaseSync(`${folder}/keys.db`)
  blocked.exec('BEGIN EXCLUSIVE')
  await expect(log.read(call.id)).rejects.toThrow('did not answer in time')
  await expect(log.find([call.id])).rejects.toThrow('did not answer in time')
  blocked.exec('ROLLBACK')
  blocked.close()
  await found()
  await expect
    .poll(async () => Buffer.from((await log.read(call.id))?.content ?? []).toString())
    .toBe('requestanswer')
})
