import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { lookAt } from '../fixtures/content.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }
/** Many addresses, which take the thread of the content log seconds. */
const ADDRESSES = 'ann@example.org '.repeat(300_000)
const CALLS = 4
/** Milliseconds that a read may take on a busy machine; alone it takes some. */
const MAX_MS = 1_000

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
  for (let call = 0; call < CALLS; call += 1)
    expect((await fixture.chat('ann', ask('m', { messages }))).status).toBe(200)
  const times: number[] = []
  for (let look = 0; look < 5; look += 1) {
    const began = performance.now()
    expect(await read()).toBe(200)
    const { data } = await manage<{ items: readonly { readonly content_address: string }[] }>(
      fixture.gateway.url,
      BOB,
      'GET /api/log/self',
    )
    expect(data.items[0]?.content_address).not.toBe('')
    times.push(performance.now() - began)
  }
  expect(Math.max(...times)).toBeLessThan(MAX_MS)
})
