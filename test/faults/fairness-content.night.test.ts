import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { lookAt, rowWithContent } from '../fixtures/content.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const OPERATOR = { id: 1, accessToken: ROOT.access_token }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }
/** Many addresses, which take the thread of the content log seconds. */
const ADDRESSES = 'ann@example.org '.repeat(300_000)
const CALLS = 4
const LIST = 'GET /api/log/?username=ann&page_size=100'

interface Row {
  readonly id: string
  readonly content_address: string
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    content_log: { what: 'redacted' },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')]),
      user(3, 'bob', [token('bob')], { access_token: BOB.accessToken }),
    ],
  }))
  fixture.upstream.script('m', { kind: 'whole', content: 'yes' })
})
afterAll(() => fixture?.close())

test('content that takes long to redact delays no other user who reads content or lists calls', async () => {
  const { headers } = await fixture.chat('bob', ask('m'))
  const id = String(headers['x-request-id'])
  const read = async (): Promise<number> => (await lookAt(fixture.gateway.url, BOB, id)).status
  await expect.poll(read).toBe(200)
  const messages = [{ role: 'user', content: ADDRESSES }]
  const statuses = new Set<number>()
  const attempt = async (): Promise<readonly string[]> => {
    const anns: string[] = []
    while (anns.length < CALLS) {
      const answer = await fixture.chat('ann', ask('m', { messages }))
      statuses.add(answer.status)
      anns.push(String(answer.headers['x-request-id']))
    }
    for (let look = 0; look < 5; look += 1) {
      statuses.add(await read())
      await rowWithContent(fixture.gateway.url, BOB, `/api/log/self/${id}`)
    }
    const { items } = (await manage<{ items: readonly Row[] }>(fixture.gateway.url, OPERATOR, LIST)).data
    return anns.map((each) => items.find((row) => row.id === each)?.content_address ?? 'not listed')
  }
  // All of this was read before the last of ann's calls was redacted. Other programs may halt the reader in one of the
  // attempts, and not in each of them.
  await expect.poll(attempt, { timeout: 240_000 }).toContain('')
  expect(statuses).toEqual(new Set([200]))
})
