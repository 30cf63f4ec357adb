import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf, lookAt } from '../fixtures/content.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { commandOn } from '../fixtures/command.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }
const OPERATOR = { id: 1, accessToken: 'root-access-token' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    content_log: { what: 'full', readers: 10 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('other')], { access_token: ANN.accessToken }),
      user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
      user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
      user(5, 'cyd', [token('cyd')]),
      user(6, 'dan', [token('dan')]),
    ],
  }))
})
afterAll(() => fixture?.close())

const url = (): string => fixture.gateway.url
const say = async (key: string): Promise<string> =>
  String((await fixture.chat(key, ask('m'))).headers['x-request-id'])
/** The second in which a call began, in Unix time: its id says it. */
const startSOf = (id: string): number =>
  Math.floor(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) / 1000)
const ownId = async (name: string): Promise<number> => {
  const page = await manage<{ items: { id: number; name: string }[] }>(
    url(),
    ANN,
    'GET /api/token/?page_size=100',
  )
  return page.data.items.find((item) => item.name === `token-${name}`)?.id ?? 0
}

/** Sealed keys and contents of a user, as the files have them now. */
function stored(userId: number): { readonly ciphers: string[]; readonly contents: Buffer[] } {
  const folder = join(fixture.gateway.dataDir, 'content')
  // Waits while the gateway commits, because these files have no WAL.
  const options = { readOnly: true, timeout: 60_000 }
  using keys = new DatabaseSync(join(folder, 'keys.db'), options)
  const ciphers = keys.prepare('SELECT cipher FROM data_keys WHERE user_id = ?').all(userId)
  const contents = readdirSync(folder)
    .filter((name) => /^\d.*\.db$/.test(name))
    .flatMap((name) => {
      using file = new DatabaseSync(join(folder, name), options)
      return file.prepare('SELECT sealed FROM entries WHERE user_id = ?').all(userId)
    })
  return {
    ciphers: ciphers.map((row) => String(row['cipher'])),
    contents: contents.map((row) => Buffer.from(row['sealed'] as Uint8Array)),
  }
}

/** The files of the data folder that contain any of these bytes. */
function filesWith(bytes: readonly (string | Buffer)[], folder = fixture.gateway.dataDir): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isFile()) return []
    const path = join(entry.parentPath, entry.name)
    const file = readFileSync(path)
    return bytes.some((one) => file.includes(one)) ? [path] : []
  })
}

test('stored prompts and answers that a user deletes, and their encryption keys, remain in no file and no backup', async () => {
  const ids = [await say('ann'), await say('ann')]
  const kept = await say('ben')
  for (const id of ids) await contentOf(url(), ANN, id)
  await contentOf(url(), BEN, kept)
  const { ciphers, contents } = stored(ANN.id)
  expect(filesWith(ciphers)).toHaveLength(1)
  expect(contents).toHaveLength(2)
  expect(filesWith(['"role":"user"'])).toEqual([])
  const done = await manage(url(), ANN, 'DELETE /api/content')
  expect({ status: done.status, body: done.body }).toEqual({
    status: 200,
    body: { success: true, message: '' },
  })
  for (const id of ids) expect((await lookAt(url(), ANN, id)).status).toBe(404)
  expect((await lookAt(url(), BEN, kept)).status).toBe(200)
  const backup = join(tmpdir(), `sluice-content-${process.pid}.db`)
  const copied = await commandOn(fixture.gateway, 'backup', backup, '--force')
  expect(copied.code, copied.err).toBe(0)
  expect(filesWith([...ciphers, ...contents])).toEqual([])
  expect([...ciphers, ...contents].some((bytes) => readFileSync(backup).includes(bytes))).toBe(false)
  const row = await manage<{ content_address: string; quota: number }>(
    url(),
    ANN,
    `GET /api/log/self/${ids[0]}`,
  )
  expect(row.data).toMatchObject({ content_address: '', content_sha256: '' })
})

test("deleting the content of one API key re-encrypts the user's other content with a new key", async () => {
  const [gone, kept] = [await say('ann'), await say('other')]
  for (const id of [gone, kept]) await contentOf(url(), ANN, id)
  const before = stored(ANN.id)
  const done = await manage(url(), ANN, `DELETE /api/content?token=${await ownId('ann')}`)
  expect(done.status, done.message).toBe(200)
  expect((await lookAt(url(), ANN, gone)).status).toBe(404)
  expect((await contentOf(url(), ANN, kept)).parts.request_received?.text).toContain('hi')
  expect(filesWith([...before.ciphers, ...before.contents])).toEqual([])
})

test('deleting the content of a period covers calls that began in the period, including its start but not its end', async () => {
  const first = await say('ann')
  // The first call that begins in a later second.
  let second = first
  while (startSOf(second) === startSOf(first)) second = await say('ann')
  for (const id of [first, second]) await contentOf(url(), ANN, id)
  const startS = startSOf(second)
  await manage(url(), ANN, `DELETE /api/content?from=${startS - 100}&to=${startS}`)
  expect((await lookAt(url(), ANN, first)).status).toBe(404)
  expect((await lookAt(url(), ANN, second)).status).toBe(200)
  await manage(url(), ANN, `DELETE /api/content?from=${startS}&to=${startS + 1}`)
  expect((await lookAt(url(), ANN, second)).status).toBe(404)
  const wrong = await manage(url(), ANN, `DELETE /api/content?from=${startS}&to=${startS}`)
  expect(wrong.status).toBe(400)
})

test("deleting a user's content also deletes content that is not yet written, but not the content of later calls", async () => {
  const id = await say('ann')
  await manage(url(), ANN, 'DELETE /api/content')
  const after = await say('ann')
  await contentOf(url(), ANN, after)
  expect((await lookAt(url(), ANN, id)).status).toBe(404)
})

test('administrators may delete the content of users below their role, and users only their own', async () => {
  const id = await say('cyd')
  await contentOf(url(), OPERATOR, id)
  const refused = await manage(url(), BEN, 'DELETE /api/content?user=5')
  expect(refused.status).toBe(404)
  expect((await manage(url(), ADA, 'DELETE /api/content?user=1')).status).toBe(403)
  expect((await lookAt(url(), ADA, id)).status).toBe(200)
  const done = await manage(url(), ADA, 'DELETE /api/content?user=5')
  expect(done.status, done.message).toBe(200)
  expect((await lookAt(url(), ADA, id)).status).toBe(404)
  const log = await manage<{ items: Record<string, unknown>[] }>(
    url(),
    OPERATOR,
    'GET /api/audit?kind=content',
  )
  expect(log.data.items).toContainEqual(
    expect.objectContaining({
      action: 'content.delete',
      actor: 'ada',
      object: { kind: 'content', id: 5, name: 'cyd' },
    }),
  )
})

test('deleting an account deletes its content', async () => {
  const id = await say('dan')
  await contentOf(url(), OPERATOR, id)
  const { ciphers, contents } = stored(6)
  await manage(url(), OPERATOR, 'DELETE /api/user/6')
  expect((await lookAt(url(), OPERATOR, id)).status).toBe(404)
  expect(filesWith([...ciphers, ...contents])).toEqual([])
})

test("the content of a deleted API key can be deleted by the key's id, by its holder or an administrator", async () => {
  const ids = [await say('other'), await say('other')]
  const kept = await say('ann')
  for (const id of [...ids, kept]) await contentOf(url(), ANN, id)
  const revoked = await ownId('other')
  expect((await manage(url(), ANN, `DELETE /api/token/${revoked}`)).status).toBe(200)
  expect((await manage(url(), BEN, `DELETE /api/content?token=${revoked}`)).status).toBe(404)
  expect((await manage(url(), ADA, 'DELETE /api/content?token=99999')).status).toBe(404)
  const done = await manage(url(), ADA, `DELETE /api/content?token=${revoked}`)
  expect(done.status, done.message).toBe(200)
  for (const id of ids) expect((await lookAt(url(), ANN, id)).status).toBe(404)
  expect((await lookAt(url(), ANN, kept)).status).toBe(200)
})
