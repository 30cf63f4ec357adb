import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { json } from '../fixtures/media-fixture.ts'

const MIB = 1024 * 1024
/** More answers than the share of one user can hold. */
const CALLS = 16
const ANSWER_BYTES = 24 * MIB
/** A user that calls alone may have 7 of 8 parts of 192 MiB; one response may exceed the limit. */
const MOST_HELD = Math.floor((168 * MIB) / ANSWER_BYTES) + 1

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, cache: { ttl: '10m' } },
    rate_limits: {},
    models: priced(['m', 'small', 'image', 'json', 'events']),
    channels: [
      ...['m', 'small'].map((name) => channel(name, upstream.baseUrl(name))),
      // Long enough for an answer that has its memory to arrive at a busy machine, and together shorter than the minute after
      // which a client that reads nothing is left.
      channel('image', upstream.baseUrl('image'), { timeouts: { total: '12s' } }),
      ...['json', 'events'].map((name) =>
        channel(name, upstream.baseUrl(name), { timeouts: { total: '5s' } }),
      ),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  const body = completionText('x'.repeat(ANSWER_BYTES), usageText(10, 5))
  fixture.upstream.script('m', { kind: 'whole', body })
  fixture.upstream.script('json', { kind: 'whole', body })
  fixture.upstream.script('events', { kind: 'stream', events: 1, word: 'x'.repeat(ANSWER_BYTES) })
  fixture.upstream.script('image', json({ data: [{ b64_json: 'A'.repeat(ANSWER_BYTES) }] }))
})
afterAll(() => fixture?.close())

/** Makes calls of one user that read nothing of their answers. Resolves to the number of answers that were begun. */
async function begunAnswers(headersOf: (index: number) => Record<string, string>): Promise<number> {
  const open: ClientRequest[] = []
  let begun = 0
  for (let index = 0; index < CALLS; index += 1) {
    const sent = request(`${fixture.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: 'Bearer sk-ann',
        'content-type': 'application/json',
        ...headersOf(index),
      },
    })
    sent.on('error', () => {})
    sent.on('response', (response) => {
      response.on('error', () => {})
      if (response.statusCode === 200) begun += 1
    })
    sent.end(JSON.stringify(ask('m', { seed: Math.floor(Math.random() * 1e9) })))
    open.push(sent)
  }
  await expect.poll(() => begun).toBeGreaterThan(0)
  // Until no more begin.
  for (let before = 0; before < begun; await sleep(500)) before = begun
  expect((await fixture.chat('bob', ask('small'))).status).toBe(200)
  for (const one of open) one.destroy()
  await sleep(500)
  return begun
}

test('answers with idempotency keys that their client does not read stay within its share of memory', async () => {
  const begun = await begunAnswers((index) => ({
    'idempotency-key': `unread-${index}`,
    'cache-control': 'no-store',
  }))
  expect(begun).toBeLessThanOrEqual(MOST_HELD)
})

test('answers that the cache keeps stay within the share of a client that does not read them', async () => {
  expect(await begunAnswers(() => ({}))).toBeLessThanOrEqual(MOST_HELD)
})

test('images that came as JSON in place of a stream stay within the share of a client that does not read them', async () => {
  const open: ClientRequest[] = []
  let begun = 0
  const others = new Set<number | undefined>()
  // One after another, so that an answer that begins has its memory. The first one without waits until its time is over.
  while (others.size === 0 && open.length <= MOST_HELD) {
    const sent = request(`${fixture.gateway.url}/v1/images/generations`, {
      method: 'POST',
      agent: false,
      headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
    })
    sent.end(JSON.stringify({ model: 'image', prompt: 'a cat', stream: true }))
    open.push(sent)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    if (response.statusCode === 200) begun += 1
    else others.add(response.statusCode)
  }
  const collected = await Promise.all([
    fixture.chat('ann', ask('json', { stream: true })),
    fixture.chat('ann', ask('events')),
  ])
  for (const one of open) one.destroy()
  expect(begun).toBeGreaterThan(0)
  expect(begun).toBeLessThanOrEqual(MOST_HELD)
  // It was the gateway that read no further, so the channel is not to blame.
  expect(others).toEqual(new Set([503]))
  for (const { text } of collected) expect(text).toContain('"code":"overloaded"')
})
