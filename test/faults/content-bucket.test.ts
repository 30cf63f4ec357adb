import { createDecipheriv } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { deriveSecrets, unseal } from '../../src/store/secrets.ts'
import { manage } from '../fixtures/account.ts'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { lookAt, rowWithContent, sha256, untilRowAgrees } from '../fixtures/content.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { byTier } from '../runner/tier.ts'
import { BUCKET, type S3Server, startS3Server, withoutS3 } from '../fixtures/s3-server.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const OPERATOR = { id: 1, accessToken: 'root-access-token' }
const MIB = 1024 * 1024
/** Kills during a write, and milliseconds between two calls, whose rows are all read afterwards. */
const ROUNDS = byTier(2, 4)
const PAUSE_MS = byTier(10, 0)

interface Row {
  readonly id: string
  readonly content_address: string
  readonly content_sha256: string
}

describe.skipIf(withoutS3())('content in a bucket', () => {
  let server: S3Server
  let fixture: Fixture
  beforeAll(async () => {
    server = await startS3Server()
    fixture = await startFixture(
      (upstream) => ({
        rate_limits: { global: { requests: 0 }, key: { requests: 0 } },
        content_log: {
          what: 'full',
          readers: 100,
          store: `s3://${BUCKET}/sluice/log`,
          endpoint: server.url,
          region: 'us-east-1',
        },
        models: priced(['m', 'large']),
        channels: [channel('m', upstream.baseUrl('m')), channel('large', upstream.baseUrl('large'))],
        users: [
          ROOT,
          user(2, 'ann', [token('ann'), token('other')], { access_token: ANN.accessToken }),
          user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
          user(4, 'cyd', [token('cyd')]),
        ],
      }),
      { env: server.env },
    )
    fixture.upstream.decide('m', ({ text }) => ({
      kind: 'whole',
      body: completionText(`said to ${JSON.parse(text).messages[0].content}`, usageText(3, 2)),
    }))
  })
  beforeEach(() => server?.setFault(undefined))
  afterAll(async () => {
    await fixture?.close()
    await server?.stop()
  })

  const url = (): string => fixture.gateway.url
  const say = async (key: string, words: string, model = 'm'): Promise<string> => {
    const body = { model, messages: [{ role: 'user', content: words }] }
    const { headers, status } = await call(url(), body, { key })
    expect(status).toBe(200)
    return String(headers['x-request-id'])
  }
  const ids = async (...names: string[]): Promise<string[]> => {
    const said: string[] = []
    for (const name of names) said.push(await say(name, `words of ${name}`))
    return said
  }
  /** Has everything written that was said so far: a deletion begins with it. */
  const write = () => manage(url(), OPERATOR, 'DELETE /api/content')
  const statusOf = async (account: typeof ANN, id: string) => (await lookAt(url(), account, id)).status
  /** Waits until the content of a call can be read: a deletion may wait too short for the bucket of a slow machine. */
  const untilWritten = async (account: typeof ANN, ...calls: (string | undefined)[]): Promise<void> => {
    for (const id of calls) {
      const written = async (): Promise<number> => {
        await write()
        return statusOf(account, String(id))
      }
      await expect.poll(written).toBe(200)
    }
  }
  const dropped = async (): Promise<number> => {
    const { text } = await call(url(), undefined, { method: 'GET', path: '/metrics' })
    return Number(/sluice_content_dropped_total\{reason="full"\} (\d+)/.exec(text)?.[1] ?? 0)
  }

  /** Calls that the objects of the bucket show to whoever has the files and the secret. */
  async function readableWith(objects: ReadonlyMap<string, Buffer>): Promise<string[]> {
    const secrets = deriveSecrets(GATEWAY_SECRET)
    const folder = join(fixture.gateway.dataDir, 'content')
    // Waits while the gateway commits, because these files have no WAL.
    const waiting = { readOnly: true, timeout: 60_000 }
    using file = new DatabaseSync(join(folder, 'keys.db'), waiting)
    const keys = file.prepare('SELECT id, cipher FROM data_keys').all()
    const heads = readdirSync(folder)
      .filter((name) => /^\d.*\.db$/.test(name))
      .flatMap((name) => {
        using day = new DatabaseSync(join(folder, name), waiting)
        return day.prepare('SELECT id, object, object_at, object_bytes FROM entries').all()
      })
    return heads.flatMap((head) => {
      const object = objects.get(String(head['object']).replace(`s3://${BUCKET}/`, ''))
      const at = Number(head['object_at'])
      const sealed = object?.subarray(at, at + Number(head['object_bytes']))
      const isOpened = keys.some(({ id, cipher }) => {
        const key = unseal(secrets, String(cipher), { table: 'content', row: String(id) })
        return sealed && opens(Buffer.from(key, 'base64'), `${String(id)}\n${String(head['id'])}`, sealed)
      })
      return isOpened ? [String(head['id'])] : []
    })
  }

  test('logged content is readable from a bucket within 70 seconds, byte for byte, and encrypted in an object of its day', async () => {
    const request = '{ "model":"m",  "messages":[{"role":"user","content":"caf\\u00e9 in a bucket"}] }'
    const { headers, text } = await call(url(), request, { key: 'ann' })
    const id = String(headers['x-request-id'])
    await untilWritten(ANN, id)
    const { data } = await lookAt(url(), ANN, id)
    expect(data.parts).toEqual({
      request_received: { text: request, sha256: sha256(request) },
      answer_received: { text, sha256: sha256(text) },
    })
    const row = await rowWithContent(url(), ANN, `/api/log/self/${id}`)
    const address = new RegExp(
      `^s3://${BUCKET}/(sluice/log/[0-9a-f]{16}/\\d{4}-\\d\\d-\\d\\d/[0-9a-f-]+)#${id}$`,
    )
    expect(row).toMatchObject({
      content_address: expect.stringMatching(address),
      content_sha256: sha256(request, text),
    })
    const objects = await server.objects()
    const [, name = ''] = address.exec(String(row['content_address'])) ?? []
    expect(objects.get(name)?.length).toBeGreaterThan(request.length)
    for (const body of objects.values()) expect(body.includes('in a bucket')).toBe(false)
    expect(await statusOf(BEN, id)).toBe(404)
  })

  test("deleting a user's logged content destroys its encryption key, so that nothing in the bucket can be decrypted", async () => {
    const [first, second, kept] = await ids('ann', 'other', 'ben')
    await untilWritten(ANN, first, second)
    await untilWritten(BEN, kept)
    const before = await server.objects()
    expect(await readableWith(before)).toEqual(expect.arrayContaining([first, second, kept]))
    expect((await manage(url(), ANN, 'DELETE /api/content')).status).toBe(200)
    for (const id of [first, second]) expect(await statusOf(ANN, id!)).toBe(404)
    expect(await statusOf(BEN, kept!)).toBe(200)
    const left = await readableWith(new Map([...before, ...(await server.objects())]))
    expect(left).toContain(kept)
    for (const id of [first, second]) expect(left).not.toContain(id)
  })

  test("deleting the logged content of one API key re-encrypts the user's other content in a new object under a new key", async () => {
    const [gone, kept] = await ids('ann', 'other')
    await untilWritten(ANN, gone, kept)
    const before = await server.objects()
    const page = await manage<{ items: { id: number; name: string }[] }>(url(), ANN, 'GET /api/token/')
    const tokenId = page.data.items.find(({ name }) => name === 'token-ann')?.id
    expect((await manage(url(), ANN, `DELETE /api/content?token=${tokenId}`)).status).toBe(200)
    expect(await statusOf(ANN, gone!)).toBe(404)
    const { data } = await lookAt(url(), ANN, kept!)
    expect(data.parts.request_received?.text).toContain('words of other')
    expect(await readableWith(before)).not.toContain(kept)
    const after = await server.objects()
    expect(after.size).toBe(before.size + 1)
    expect(await readableWith(after)).toContain(kept)
  })

  test('logged content that was changed or moved in the bucket is a 404 for readers, and can be deleted', async () => {
    const [id, other] = await ids('ann', 'other')
    await untilWritten(ANN, id, other)
    for (const [name, body] of await server.objects())
      await server.put(name, Buffer.from(body.map((byte) => byte ^ 1)))
    for (const one of [id, other]) expect(await statusOf(ANN, one!)).toBe(404)
    const row = await manage<{ items: { id: number; name: string }[] }>(url(), ANN, 'GET /api/token/')
    const tokenId = row.data.items.find(({ name }) => name === 'token-ann')?.id
    expect((await manage(url(), ANN, `DELETE /api/content?token=${tokenId}`)).status).toBe(200)
    expect(await statusOf(ANN, other!)).toBe(404)
  })

  test.each(['shortened', 'emptied'])(
    'logged content in an object of the bucket that was %s is a 404 for readers, and a deletion destroys its encryption key',
    async (change) => {
      const [gone, cut] = await ids('ann', 'other')
      await untilWritten(ANN, gone, cut)
      const before = await server.objects()
      for (const [name, body] of before)
        await server.put(name, body.subarray(0, change === 'emptied' ? 0 : body.length - 5))
      expect(await statusOf(ANN, cut!)).toBe(404)
      const page = await manage<{ items: { id: number; name: string }[] }>(url(), ANN, 'GET /api/token/')
      const tokenId = page.data.items.find(({ name }) => name === 'token-ann')?.id
      expect((await manage(url(), ANN, `DELETE /api/content?token=${tokenId}`)).status).toBe(200)
      expect(await statusOf(ANN, gone!)).toBe(404)
      expect(await readableWith(before)).not.toContain(gone)
    },
  )

  test('a failing bucket delays no call; reads of logged content are refused, and waiting content is stored afterwards', async () => {
    const kept = await say('ben', 'before')
    await untilWritten(BEN, kept)
    server.setFault((incoming, response) => {
      incoming.resume()
      response.writeHead(500).end('<Error><Code>InternalError</Code></Error>')
    })
    const waiting = await say('ben', 'meanwhile')
    await write()
    const read = await lookAt(url(), BEN, kept)
    expect({ status: read.status, message: read.message }).toEqual({
      status: 503,
      message: expect.stringContaining('content log'),
    })
    expect(await statusOf(BEN, waiting)).toBe(404)
    server.setFault(undefined)
    await expect.poll(() => statusOf(BEN, waiting)).toBe(200)
    expect(await statusOf(BEN, kept)).toBe(200)
    await expect
      .poll(() => fixture.gateway.logs())
      .toContain('the content log cannot be written (the bucket responded 500 InternalError)')
  })

  test('logged content that is deleted while the bucket fails stays deleted once the bucket works again', async () => {
    const [id] = await ids('ann')
    await untilWritten(ANN, id)
    server.setFault((_, response) => void response.destroy())
    expect((await manage(url(), ANN, 'DELETE /api/content')).status).toBe(200)
    server.setFault(undefined)
    expect(await statusOf(ANN, id!)).toBe(404)
    expect(await readableWith(await server.objects())).not.toContain(id)
  })

  test('logged content of an API key that is deleted while the bucket fails stays deleted; its encryption key is destroyed later', async () => {
    const [gone, kept] = await ids('ann', 'other')
    await untilWritten(ANN, gone, kept)
    const before = await server.objects()
    const page = await manage<{ items: { id: number; name: string }[] }>(url(), ANN, 'GET /api/token/')
    const tokenId = page.data.items.find(({ name }) => name === 'token-ann')?.id
    server.setFault((_, response) => void response.destroy())
    expect((await manage(url(), ANN, `DELETE /api/content?token=${tokenId}`)).status).toBe(200)
    expect(await statusOf(ANN, gone!)).toBe(404)
    expect(await readableWith(before)).toContain(gone)
    server.setFault(undefined)
    expect(await statusOf(ANN, kept!)).toBe(200)
    expect((await manage(url(), ANN, `DELETE /api/content?token=${tokenId}`)).status).toBe(200)
    expect(await readableWith(before)).not.toContain(gone)
    expect(await statusOf(ANN, kept!)).toBe(200)
    expect(await statusOf(ANN, gone!)).toBe(404)
  })

  test('while a bucket never answers, logged content beyond the memory limit is dropped and counted, and no call waits', async () => {
    const body = completionText('large '.repeat(2 * MIB), usageText(3, 2))
    fixture.upstream.script('large', { kind: 'whole', body })
    const before = await dropped()
    server.setFault(() => {})
    // The bucket answers nothing, so that a call that waited for it would not end.
    for (let one = 0; one < 8; one += 1) {
      await say('ann', `large ${one}`, 'large')
      await say('ben', 'quick')
    }
    await expect.poll(dropped).toBeGreaterThan(before)
    server.setFault(undefined)
    const after = await say('ben', 'afterwards')
    await untilWritten(BEN, after)
  })

  test("after a kill during a write, the logged content that a usage row names is readable, and is that of the row's call", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const state = { isKilled: false }
      // The thread that writes starts with the first call. These are stored, however few the others become.
      const first: string[] = []
      while (first.length < 4) first.push(await say('cyd', `round ${round} first ${first.length}`))
      await untilWritten(OPERATOR, ...first)
      const talking = (async () => {
        for (let one = 0; !state.isKilled; one += 1) {
          await say('cyd', `round ${round} number ${one} ${'word '.repeat(one % 100)}`).catch(() => {})
          await sleep(PAUSE_MS)
          if (one % 7 === 6) void write().catch(() => {})
        }
      })()
      await write()
      await sleep(371 * round)
      await fixture.gateway.kill()
      state.isKilled = true
      await talking
      await fixture.gateway.restart()
    }
    // On a busy machine the list may not wait for where content is.
    const rows = await vi.waitFor(
      async () => {
        const list = 'GET /api/log/?username=cyd&page_size=100'
        const { items } = (await manage<{ items: Row[] }>(url(), OPERATOR, list)).data
        expect(items.filter((row) => row.content_address !== '').length).toBeGreaterThan(5)
        return items
      },
      { timeout: 60_000, interval: 500 },
    )
    let found = 0
    for (const row of rows) {
      const { status, data } = await lookAt(url(), OPERATOR, row.id)
      if (status !== (row.content_address === '' ? 404 : 200)) await untilRowAgrees(url(), OPERATOR, row.id)
      if (status !== 200 || row.content_address === '') continue
      found += 1
      const [request, answer] = [
        data.parts.request_received?.text ?? '',
        data.parts.answer_received?.text ?? '',
      ]
      expect(row.content_sha256).toBe(sha256(request, answer))
      expect(JSON.parse(answer).choices[0].message.content).toBe(
        `said to ${JSON.parse(request).messages[0].content}`,
      )
    }
    expect(found).toBeGreaterThan(5)
  })
})

/** Whether a data key opens the encrypted content of a call. */
function opens(key: Buffer, about: string, sealed: Buffer): boolean {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12))
    decipher.setAAD(Buffer.from(about))
    decipher.setAuthTag(sealed.subarray(-16))
    decipher.update(sealed.subarray(12, -16))
    decipher.final()
    return true
  } catch {
    return false
  }
}
