import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf, lookAt, sha256, untilRowAgrees } from '../fixtures/content.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { atNight, byTier } from '../runner/tier.ts'

const OPERATOR = { id: 1, accessToken: 'root-access-token' }
const NAMES = ['ann', 'ben', 'cyd', 'dan'] as const
const MIB = 1024 * 1024
const EARLY_TIMERS = fileURLToPath(new URL('../fixtures/early-timers-preload.ts', import.meta.url))
const ROUNDS = byTier(2, 4)
const READS = byTier(100, 1_000)
/** Milliseconds between two calls of a client: each row is read afterwards. */
const PAUSE_MS = byTier(10, 0)

interface Row {
  readonly id: string
  readonly user_id: number
  readonly content_address: string
  readonly content_sha256: string
}

let fixture: Fixture
/** Read by each start of the gateway. */
const env: Record<string, string> = {}
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      rate_limits: { global: { requests: 0 }, key: { requests: 0 } },
      content_log: { what: 'full', readers: 100 },
      models: priced(['m', 'large']),
      channels: [channel('m', upstream.baseUrl('m')), channel('large', upstream.baseUrl('large'))],
      users: [
        ROOT,
        ...NAMES.map((name, index) =>
          user(index + 2, name, [token(name)], { access_token: `the-access-token-of-${name}` }),
        ),
      ],
    }),
    { env },
  )
  fixture.upstream.decide('m', ({ text }) => ({
    kind: 'whole',
    body: completionText(`said to ${JSON.parse(text).messages[0].content}`, usageText(3, 2)),
  }))
})
afterAll(() => fixture?.close())

const url = (): string => fixture.gateway.url
const accountOf = (index: number) => ({ id: index + 2, accessToken: `the-access-token-of-${NAMES[index]}` })

const say = (name: string, words: string, model = 'm') =>
  call(url(), { model, messages: [{ role: 'user', content: words }] }, { key: name })

/** Locks the database of the content log, after the gateway has written earlier content. */
function blockedKeys(): DatabaseSync {
  const file = new DatabaseSync(join(fixture.gateway.dataDir, 'content/keys.db'), { timeout: 60_000 })
  file.exec('BEGIN EXCLUSIVE')
  return file
}

/** Resolves when the content of a call is kept: the thread that writes it starts with the first one. */
async function whenWriting(): Promise<void> {
  const { headers } = await say('ann', `ann 0`)
  const status = async () => (await lookAt(url(), OPERATOR, String(headers['x-request-id']))).status
  await expect.poll(status).toBe(200)
}

async function rows(): Promise<readonly Row[]> {
  const all: Row[] = []
  for (let page = 1; ; page += 1) {
    const { data } = await manage<{ items: Row[] }>(url(), OPERATOR, `GET /api/log/?page_size=100&p=${page}`)
    all.push(...data.items)
    if (data.items.length < 100) return all
  }
}

describe('a gateway that is killed while it writes content', () => {
  test('after a kill the logged content of each call is complete or absent, never mixed, and belongs to a usage row', async () => {
    let spoken = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      const state = { isKilled: false }
      await whenWriting()
      const talking = Promise.all(
        NAMES.map(async (name) => {
          while (!state.isKilled) {
            spoken += 1
            const words = `${name} ${spoken} ${'word '.repeat(spoken % 200)}`
            await say(name, words).catch(() => {})
            await sleep(PAUSE_MS)
          }
        }),
      )
      await whenWriting()
      await sleep(137 * (round + 1))
      await fixture.gateway.kill()
      state.isKilled = true
      await talking
      await fixture.gateway.restart()
    }
    // Two calls of each round were stored before the others ended. Rows learn a little later where their content is.
    const kept = async () => (await rows()).filter(({ content_address: address }) => address !== '').length
    await expect.poll(kept).toBeGreaterThan(2 * ROUNDS)
    let found = 0
    for (const row of await rows()) {
      const { status, data } = await lookAt(url(), OPERATOR, row.id)
      if (status !== (row.content_address === '' ? 404 : 200)) await untilRowAgrees(url(), OPERATOR, row.id)
      if (status !== 200 || row.content_address === '') continue
      found += 1
      const request = data.parts.request_received?.text ?? ''
      const answer = data.parts.answer_received?.text ?? ''
      expect(row.content_sha256).toBe(sha256(request, answer))
      const { content } = JSON.parse(request).messages[0]
      expect(content.split(' ')[0]).toBe(NAMES[row.user_id - 2])
      expect(JSON.parse(answer).choices[0].message.content).toBe(`said to ${content}`)
    }
    expect(found).toBeGreaterThan(2 * ROUNDS)
  })

  test(`none of ${READS} random reads of the content log shows the content of another user`, async () => {
    const kept = (await rows()).filter(({ content_address: address }) => address !== '')
    const seen = { own: 0, others: 0 }
    for (let look = 0; look < READS; look += 1) {
      const reader = look % NAMES.length
      const row = kept[Math.floor(Math.random() * kept.length)]!
      const isOwn = row.user_id === accountOf(reader).id
      const { status, data } = await lookAt(url(), accountOf(reader), row.id)
      expect(status).toBe(isOwn ? 200 : 404)
      expect(data === undefined).toBe(!isOwn)
      seen[isOwn ? 'own' : 'others'] += 1
    }
    expect(Math.min(seen.own, seen.others)).toBeGreaterThan(READS / 10)
  })
})

atNight(
  'a blocked content database delays no call; content beyond the memory limit is dropped, and later content stored',
  async () => {
    const body = completionText('large '.repeat(2 * MIB), usageText(3, 2))
    fixture.upstream.script('large', { kind: 'whole', body })
    const quick = async (): Promise<number> => {
      const start = performance.now()
      expect((await say('ben', 'quick')).status).toBe(200)
      return performance.now() - start
    }
    await whenWriting()
    const alone: number[] = []
    for (let one = 0; one < 8; one += 1) alone.push(await quick())
    const blocked = blockedKeys()
    const times: number[] = []
    try {
      for (let one = 0; one < 8; one += 1) {
        expect((await say('ann', `large ${one}`, 'large')).status).toBe(200)
        times.push(await quick())
      }
    } finally {
      blocked.exec('ROLLBACK')
      blocked.close()
    }
    // A call that waited for the database would wait for seconds, each of them.
    expect(Math.min(...times)).toBeLessThan(20 * Math.max(...alone))
    const dropped = async (): Promise<number> => {
      const { text } = await call(url(), undefined, { method: 'GET', path: '/metrics' })
      return Number(/sluice_content_dropped_total\{reason="full"\} (\d+)/.exec(text)?.[1] ?? 0)
    }
    await expect.poll(dropped).toBeGreaterThan(0)
    const later: string[] = []
    const stored = async (): Promise<boolean> => {
      later.push(String((await say('cyd', 'afterwards')).headers['x-request-id']))
      const looks = await Promise.all(later.map((id) => lookAt(url(), OPERATOR, id)))
      return looks.some(({ status, data }) => status === 200 && data.what === 'full')
    }
    await expect.poll(stored).toBe(true)
  },
)

test('while the content log is unavailable, usage rows are listed without content, and reading or deleting it is a 503', async () => {
  const { headers } = await say('cyd', 'words of cyd')
  const id = String(headers['x-request-id'])
  await contentOf(url(), OPERATOR, id)
  const cyd = accountOf(2)
  const blocked = blockedKeys()
  try {
    const listed = await manage<{ items: Row[] }>(url(), cyd, 'GET /api/log/self?page_size=10')
    expect(listed.data.items.find((row) => row.id === id)).toMatchObject({ content_address: '' })
    const [looked, deleted] = await Promise.all([
      lookAt(url(), cyd, id),
      manage(url(), cyd, 'DELETE /api/content'),
    ])
    expect({ status: looked.status, message: looked.message }).toEqual({
      status: 503,
      message: 'the content log cannot be read now',
    })
    expect({ status: deleted.status, message: deleted.message }).toEqual({
      status: 503,
      message: 'the content log cannot be written now: what was said may not be deleted',
    })
  } finally {
    blocked.exec('ROLLBACK')
    blocked.close()
  }
  expect((await contentOf(url(), cyd, id)).what).toBe('full')
  expect((await manage(url(), cyd, 'DELETE /api/content')).status).toBe(200)
  expect((await lookAt(url(), cyd, id)).status).toBe(404)
})

test("a deleted account's logged content is deleted automatically later if the content log is unavailable at first", async () => {
  // A minute after a start, everything past its time is removed: that is far away now.
  await fixture.gateway.stop()
  await fixture.gateway.restart()
  const { headers } = await say('dan', 'the last words of dan')
  const id = String(headers['x-request-id'])
  await contentOf(url(), OPERATOR, id)
  const blocked = blockedKeys()
  const deleted = await manage(url(), OPERATOR, 'DELETE /api/user/5')
  blocked.exec('ROLLBACK')
  blocked.close()
  expect({ status: deleted.status, message: deleted.message }).toEqual({
    status: 503,
    message: 'the user is deleted; what was said in its calls will be within an hour',
  })
  expect((await manage(url(), OPERATOR, 'DELETE /api/user/5')).status).toBe(404)
  expect((await lookAt(url(), OPERATOR, id)).status).toBe(200)
  await fixture.gateway.stop()
  env['NODE_OPTIONS'] = `--import ${EARLY_TIMERS}`
  await fixture.gateway.restart()
  await expect.poll(async () => (await lookAt(url(), OPERATOR, id)).status).toBe(404)
  using file = new DatabaseSync(join(fixture.gateway.dataDir, 'content/keys.db'), { readOnly: true })
  // Recorded deletions hide content at once; keys are destroyed after that.
  await expect.poll(() => file.prepare('SELECT id FROM data_keys WHERE user_id = 5').all()).toEqual([])
})
