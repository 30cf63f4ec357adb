import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

/** What is remembered of all users together. */
const MOST = 20
const OUTPUT = 10
/** Tokens that the upstream reports for a prompt: fewer than a quarter of its bytes. */
const REPORTED = 10_000
const LONG = 'The quick brown fox jumps over the lazy dog. '.repeat(1_500)
const ADMINISTRATOR = { id: 1, accessToken: ROOT.access_token }
const SESSIONS = ['a', 'b', 'c', 'd', 'e', 'f']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    options: { hold_wait: 0, remember_prompts_max: MOST, affinity: { most: MOST } },
    models: priced(['m', 'keyed']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('keyed', upstream.baseUrl('keyed'), {
        keys: ['upstream-key-1', 'upstream-key-2', 'upstream-key-3'],
      }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })]),
      user(3, 'bob', [token('bob'), token('scarce', { remain_quota: 2_000 })]),
    ],
  }))
})
afterAll(() => fixture?.close())

test("one user's calls push out no prompt that is remembered of another user", async () => {
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(REPORTED, 5) })
  const said = [{ role: 'user', content: LONG }]
  expect((await fixture.chat('ann', { model: 'm', max_tokens: OUTPUT, messages: said })).status).toBe(200)
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(1, 1) })
  for (let n = 0; n < 4 * MOST; n++)
    await fixture.chat('scarce', { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: `${n}` }] })
  const messages = [...said, { role: 'assistant', content: 'hello' }, { role: 'user', content: 'and now?' }]
  const { status, text } = await fixture.chat('poor', { model: 'm', max_tokens: OUTPUT, messages })
  expect(status).toBe(403)
  const [, needed] = /"needed":\s*"?(\d+)/.exec(text) ?? []
  // 2 and 8 USD for a million tokens are 1 and 4 quota units for each.
  expect(Number(needed) - 4 * OUTPUT).toBeGreaterThan(REPORTED)
  expect(Number(needed) - 4 * OUTPUT).toBeLessThan(REPORTED + 800)
})

test("one user's calls push out no session, and no previous call, that is remembered of another user", async () => {
  const ask = (key: string, session: string) =>
    fixture.chat(
      key,
      { model: 'keyed', messages: [{ role: 'user', content: 'hello' }] },
      { headers: { 'x-session-id': session } },
    )
  const keyUsed = (): string => String(fixture.upstream.received('keyed').at(-1)?.headers.authorization)
  fixture.upstream.script('keyed', { kind: 'whole', usage: usageText(5_000, 5, 4_000) })
  const before: string[] = []
  for (const session of SESSIONS) {
    await ask('ann', session)
    before.push(keyUsed())
  }
  for (let n = 0; n < 4 * MOST; n++) await ask('bob', `bob-${n}`)
  // Nothing is read from the cache any more, which is only noticed where the previous call is known.
  fixture.upstream.script('keyed', { kind: 'whole', usage: usageText(5_000, 5, 0) })
  const after: string[] = []
  const breaks: unknown[] = []
  for (const session of SESSIONS) {
    const { headers } = await ask('ann', session)
    after.push(keyUsed())
    const id = String(headers['x-request-id'])
    const read = (): ReturnType<typeof manage<{ cache_break: string }>> =>
      manage<{ cache_break: string }>(fixture.gateway.url, ADMINISTRATOR, `GET /api/log/${id}`)
    await expect.poll(async () => (await read()).status).toBe(200)
    breaks.push((await read()).data.cache_break)
  }
  expect(after).toEqual(before)
  expect(new Set(before).size).toBeGreaterThan(1)
  expect(breaks).toEqual(SESSIONS.map(() => 'provider'))
})
