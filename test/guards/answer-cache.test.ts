import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const MODELS = ['masked', 'streamed', 'blocked', 'swapped', 'prompted']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { cache: { ttl: '10m', scope: 'group' } },
    models: priced(MODELS),
    channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
    guards: [
      { name: 'mask', do: 'redact', match: { words: ['plum'] }, tokens: ['token-ann', 'token-ann2'] },
      { name: 'stop', do: 'block', match: { words: ['cherry'] }, tokens: ['token-ann'] },
      { name: 'swap', do: 'replace', match: { pii: ['email'] }, models: ['swapped'] },
    ],
    users: [
      ROOT,
      ADMIN_USER,
      user(2, 'ann', [token('ann'), token('ann2')]),
      user(5, 'bob', [token('bob'), token('bob2')]),
    ],
  }))
})
afterAll(() => fixture?.close())

const asked = (lane: string): number => fixture.upstream.received(lane).length
const seen = ({ headers, text }: FullResponse) => ({
  cache: headers['x-gateway-cache'],
  verdicts: headers['x-gateway-guards'],
  isPlain: text.includes('plum'),
})

test('calls share a cached answer only with calls that the same guards check', async () => {
  fixture.upstream.script('masked', { kind: 'whole', content: 'A plum is blue.' })
  const call = (key: string) => fixture.chat(key, ask('masked'))
  const first = await call('bob')
  expect(seen(first)).toEqual({ cache: 'miss', verdicts: undefined, isPlain: true })
  expect(seen(await call('bob2'))).toEqual({ cache: 'hit', verdicts: undefined, isPlain: true })
  const verdicts = 'mask=redacted;count=1, stop=allowed;count=0'
  expect(seen(await call('ann'))).toEqual({ cache: 'miss', verdicts, isPlain: false })
  const hit = await call('ann')
  expect(seen(hit)).toEqual({ cache: 'hit', verdicts, isPlain: false })
  expect(hit.text).toContain('A [REDACTED] is blue.')
  // Another key of hers has one guard less.
  expect(seen(await call('ann2'))).toMatchObject({ cache: 'miss', isPlain: false })
  expect(asked('masked')).toBe(3)
  const { data } = await manage<{ guards: string; cache: string }>(
    fixture.gateway.url,
    ADMIN,
    `GET /api/log/${String(hit.headers['x-request-id'])}`,
  )
  expect(data).toMatchObject({ guards: verdicts, cache: 'hit' })
})

test('a cached answer, whole or streamed, has the text as the guards changed it', async () => {
  // In two events, with the word in both.
  fixture.upstream.script('streamed', streamedChat({ text: 'A plum is blue.' }))
  const first = await fixture.chat('ann', askStream('streamed'))
  for (const body of [askStream('streamed'), ask('streamed')]) {
    const hit = await fixture.chat('ann', body)
    expect(seen(hit)).toMatchObject({ cache: 'hit', isPlain: false })
    expect(hit.text).toContain('[REDACTED]')
  }
  expect(seen(first)).toMatchObject({ cache: 'miss', isPlain: false })
  expect(asked('streamed')).toBe(1)
})

test('an answer that a guard blocks is not cached', async () => {
  fixture.upstream.script('blocked', { kind: 'whole', content: 'A cherry is red.' })
  for (const count of [1, 2]) {
    const answer = await fixture.chat('ann', ask('blocked'))
    expect(answer.text).not.toContain('cherry')
    expect(asked('blocked')).toBe(count)
  }
})

test('a request that a guard blocks gets no answer from the cache', async () => {
  const body = ask('prompted', { messages: [{ role: 'user', content: 'Is a cherry red?' }] })
  expect((await fixture.chat('bob', body)).status).toBe(200)
  expect((await fixture.chat('ann', body)).status).toBe(400)
  expect(asked('prompted')).toBe(1)
})

test('requests with values that a guard replaces share no cached answer between users', async () => {
  fixture.upstream.script('swapped', { kind: 'whole', content: 'Written.' })
  const body = ask('swapped', { messages: [{ role: 'user', content: 'Write to ann@example.com.' }] })
  const caches = []
  for (const key of ['bob', 'bob2', 'ann']) caches.push(seen(await fixture.chat(key, body)).cache)
  expect(caches).toEqual(['miss', 'hit', 'miss'])
  expect(fixture.upstream.received('swapped').map(({ body: sent }) => String(sent))).not.toContain(
    'ann@example.com',
  )
})

test("a client that sends the placeholder of another user's replaced value does not get that value", async () => {
  const call = (key: string, to: string) =>
    fixture.chat(key, ask('swapped', { messages: [{ role: 'user', content: `Greet ${to}.` }] }))
  fixture.upstream.script('swapped', { kind: 'whole', content: 'Hello.' })
  await call('ann', 'ann@example.org')
  const [token] =
    /\[\[EMAIL_[0-9a-f]{8}\]\]/.exec(fixture.upstream.received('swapped').at(-1)?.text ?? '') ?? []
  fixture.upstream.script('swapped', { kind: 'whole', content: `Hello ${token}.` })
  const body = ask('swapped', { messages: [{ role: 'user', content: 'Greet ann@example.org once more.' }] })
  expect((await fixture.chat('ann', body)).text).toContain('Hello ann@example.org.')
  const forged = ask('swapped', { messages: [{ role: 'user', content: `Greet ${token} once more.` }] })
  const stolen = await fixture.chat('bob', forged)
  expect(stolen.headers['x-gateway-cache']).toBe('miss')
  expect(stolen.text).not.toContain('ann@example.org')
})
