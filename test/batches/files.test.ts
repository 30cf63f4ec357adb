import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, type Part } from '../fixtures/form.ts'

const MIB = 1_048_576
/** docs/batches.md: Files. */
const MAX_FILE_BYTES = 209_715_200

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { files: { keep: '48h', most: '1MiB' }, body_limit: '1KiB' },
    rate_limits: { relay: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('second')]),
      user(3, 'bob', [token('bob')]),
      user(4, 'cyd', [token('cyd', { rate_limit: { requests: 2, window: '1h' } })]),
      user(5, 'dan', [token('dan')]),
      user(6, 'eve', [token('boss')], { role: 10 }),
    ],
  }))
})
afterAll(() => fixture?.close())

/** A file, or a list of files. */
interface FileBody {
  readonly id: string
  readonly created_at: number
  readonly expires_at: number
  readonly data: readonly { readonly id: string }[]
  readonly has_more: boolean
}
const bodyOf = (answer: FullResponse): FileBody => JSON.parse(answer.text)

const LINES = '{"custom_id":"a"}\n{"custom_id":"b"}\n'
const PURPOSE: Part = { name: 'purpose', content: 'batch' }
const fileOf = (content: string | Buffer, filename = 'lines.jsonl'): Part => ({
  name: 'file',
  content,
  filename,
})

function upload(
  key: string,
  parts: readonly Part[],
  headers: Readonly<Record<string, string>> = {},
): Promise<FullResponse> {
  const body = formBytes(parts)
  const options = formCall('/v1/files', key, body)
  return call(fixture.gateway.url, body, { ...options, headers: { ...options.headers, ...headers } })
}
const ask = (key: string, path: string, method = 'GET'): Promise<FullResponse> =>
  call(fixture.gateway.url, undefined, { method, path, key })

async function uploaded(key: string, content: string | Buffer = LINES): Promise<string> {
  const answer = await upload(key, [PURPOSE, fileOf(content)])
  expect(answer.status, answer.text).toBe(200)
  return bodyOf(answer).id
}

describe('docs/batches.md: Files', () => {
  test('an uploaded file has an id, its size, its name and its expiry, and its content is what was sent', async () => {
    const before = Math.floor(Date.now() / 1000)
    const answer = await upload('ann', [fileOf(LINES, 'ü/../a.jsonl'), PURPOSE])
    expect(answer.status).toBe(200)
    const file = bodyOf(answer)
    expect(file).toEqual({
      id: expect.stringMatching(/^file-[0-9a-f]{32}$/),
      object: 'file',
      bytes: LINES.length,
      created_at: file.created_at,
      expires_at: file.created_at + 48 * 3600,
      filename: 'ü/../a.jsonl',
      purpose: 'batch',
      status: 'processed',
    })
    expect(file.created_at).toBeGreaterThanOrEqual(before)
    expect((await ask('ann', `/v1/files/${file.id}`)).json()).toEqual(file)
    const content = await ask('second', `/v1/files/${file.id}/content`)
    expect([content.status, content.text]).toEqual([200, LINES])
    expect(content.headers['content-type']).toBe('application/octet-stream')
    expect(content.headers['x-content-type-options']).toBe('nosniff')
  })

  test('a file of several parts is stored and returned byte for byte', async () => {
    const bytes = Buffer.alloc(700_001, 'line\n')
    const id = await uploaded('dan', bytes)
    const content = await ask('dan', `/v1/files/${id}/content`)
    expect(Buffer.from(content.text).equals(bytes)).toBe(true)
    await ask('dan', `/v1/files/${id}`, 'DELETE')
  })

  test('the id of a file of another user is unknown to others on every path, administrators included', async () => {
    const id = await uploaded('ann')
    for (const key of ['bob', 'boss'])
      for (const [path, method] of [
        [`/v1/files/${id}`, 'GET'],
        [`/v1/files/${id}/content`, 'GET'],
        [`/v1/files/${id}`, 'DELETE'],
      ] as const)
        expect([path, (await ask(key, path, method)).status]).toEqual([path, 404])
    expect(bodyOf(await ask('bob', '/v1/files')).data).toEqual([])
    expect((await ask('ann', `/v1/files/${id}/content`)).text).toBe(LINES)
  })

  test('a deleted file is unknown on every path and in lists', async () => {
    const id = await uploaded('ann')
    expect((await ask('ann', `/v1/files/${id}`, 'DELETE')).json()).toEqual({
      id,
      object: 'file',
      deleted: true,
    })
    for (const [path, method] of [
      [`/v1/files/${id}`, 'GET'],
      [`/v1/files/${id}/content`, 'GET'],
      [`/v1/files/${id}`, 'DELETE'],
    ] as const)
      expect((await ask('ann', path, method)).status).toBe(404)
    expect((await ask('ann', '/v1/files')).text).not.toContain(id)
  })

  test('files are listed in pages, the newest first or the oldest first', async () => {
    const ids = [await uploaded('bob'), await uploaded('bob'), await uploaded('bob')]
    const list = async (query: string): Promise<[string[], boolean]> => {
      const { data, has_more } = bodyOf(await ask('bob', `/v1/files?${query}`))
      return [data.map(({ id }) => id), has_more]
    }
    expect(await list('')).toEqual([ids.toReversed(), false])
    expect(await list('order=asc&limit=2')).toEqual([ids.slice(0, 2), true])
    expect(await list(`order=asc&limit=2&after=${ids[1]}`)).toEqual([[ids[2]], false])
    expect(await list('purpose=batch&limit=1')).toEqual([[ids[2]], true])
    expect(await list('purpose=batch_output')).toEqual([[], false])
    for (const query of ['limit=0', 'limit=x', 'order=up'])
      expect((await ask('bob', `/v1/files?${query}`)).status).toBe(400)
    await Promise.all(ids.map((id) => ask('bob', `/v1/files/${id}`, 'DELETE')))
  })

  test.each<[string, readonly Part[]]>([
    ['another purpose', [{ name: 'purpose', content: 'user_data' }, fileOf(LINES)]],
    ['no purpose', [fileOf(LINES)]],
    ['no file', [PURPOSE]],
    ['two files', [PURPOSE, fileOf(LINES), fileOf(LINES)]],
    ['an empty file', [PURPOSE, fileOf('')]],
    ['a file without a name', [PURPOSE, { name: 'file', content: LINES }]],
    ['an expiry below an hour', [PURPOSE, ...expiry('created_at', '3599'), fileOf(LINES)]],
    ['an expiry after options.files.keep', [PURPOSE, ...expiry('created_at', '172801'), fileOf(LINES)]],
    ['another anchor of the expiry', [PURPOSE, ...expiry('last_active_at', '7200'), fileOf(LINES)]],
  ])('an upload with %s is refused with 400', async (_, parts) => {
    const answer = await upload('ann', parts)
    expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_request'])
  })

  test('expires_after sets the expiry of a file', async () => {
    const file = bodyOf(await upload('ann', [PURPOSE, ...expiry('created_at', '7200'), fileOf(LINES)]))
    expect(file.expires_at - file.created_at).toBe(7200)
  })

  test('a file above 209715200 bytes is refused with 413 when its length is announced', async () => {
    const options = formCall('/v1/files', 'ann', Buffer.alloc(0))
    const headers = { ...options.headers, 'content-length': String(MAX_FILE_BYTES + 2 * MIB) }
    const answer = await call(fixture.gateway.url, Buffer.alloc(0), { ...options, headers })
    expect(answer.status).toBe(413)
    expect(answer.json().error.message).toContain('209715200')
  })

  test('an upload beyond options.files.most is refused with 403 and leaves nothing', async () => {
    const first = await uploaded('dan', Buffer.alloc(600_000, 'x'))
    const answer = await upload('dan', [PURPOSE, fileOf(Buffer.alloc(500_000, 'x'))])
    expect([answer.status, answer.json().error.code]).toEqual([403, 'files_full'])
    expect(answer.json().error.message).toMatch(/have 6\d{5} of at most 1048576 bytes/)
    const uploads = Array.from({ length: 6 }, () => upload('dan', [PURPOSE, fileOf(Buffer.alloc(300_000))]))
    expect((await Promise.all(uploads)).filter(({ status }) => status === 200)).toHaveLength(1)
    const { data } = bodyOf(await ask('dan', '/v1/files'))
    await Promise.all(data.map(({ id }) => ask('dan', `/v1/files/${id}`, 'DELETE')))
    expect(data.map(({ id }) => id)).toContain(first)
    await ask('dan', `/v1/files/${await uploaded('dan', Buffer.alloc(900_000, 'x'))}`, 'DELETE')
  })

  test('an interrupted upload leaves nothing in the list', async () => {
    const body = formBytes([PURPOSE, fileOf(Buffer.alloc(500_000, 'x'))])
    const { headers } = formCall('/v1/files', 'eve', body)
    const sending = request(`${fixture.gateway.url}/v1/files`, {
      method: 'POST',
      headers: { ...headers, authorization: 'Bearer sk-boss' },
    })
    const closed = new Promise((resolve) => sending.once('close', resolve))
    sending.on('error', () => {})
    await new Promise((resolve) => sending.write(body.subarray(0, 400_000), resolve))
    sending.destroy()
    await closed
    expect(bodyOf(await ask('boss', '/v1/files')).data).toEqual([])
    // Repeated, because the gateway may read this request before the end of the other connection.
    const next = async () => (await upload('boss', [PURPOSE, fileOf(Buffer.alloc(900_000))])).status
    await expect.poll(next).toBe(200)
  })

  test('an upload counts as one request of its key', async () => {
    await uploaded('cyd')
    await uploaded('cyd')
    const answer = await upload('cyd', [PURPOSE, fileOf(LINES)])
    expect([answer.status, answer.json().error.code]).toEqual([429, 'rate_limited'])
  })

  test('an upload that repeats an idempotency key gets the first file again', async () => {
    const headers = { 'idempotency-key': randomUUID() }
    const first = await upload('ann', [PURPOSE, fileOf(LINES)], headers)
    const second = await upload('ann', [PURPOSE, fileOf(LINES)], headers)
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(second.json()).toEqual(first.json())
    const other = await upload('ann', [PURPOSE, fileOf(`${LINES}x`)], headers)
    expect(other.status).toBe(422)
  })
})

function expiry(anchor: string, seconds: string): Part[] {
  return [
    { name: 'expires_after[anchor]', content: anchor },
    { name: 'expires_after[seconds]', content: seconds },
  ]
}
