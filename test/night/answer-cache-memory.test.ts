import { type ClientRequest, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'

const MIB = 2 ** 20
const ANSWER_BYTES = 30_000_000
const QUESTIONS = 6
const CLIENTS = 60
/** The share of one user, the copies in the sockets of the system, and what is collected later. */
const MAX_GROWTH_BYTES = 450 * MIB

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, cache: { ttl: '10m' } },
    rate_limits: {},
    models: priced(['kept', 'live', 'small']),
    channels: ['kept', 'live', 'small'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
})
afterAll(() => fixture?.close())

const content = 'x'.repeat(ANSWER_BYTES)
const bodyOf = (model: string, question: number) => ask(model, { seed: question })

/** Sends a call whose answer is not read. */
function unread(body: object): ClientRequest {
  const sent = request(`${fixture.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
  })
  sent.on('error', () => {})
  sent.on('response', (response) => response.on('error', () => {}))
  sent.end(JSON.stringify(body))
  return sent
}

async function keptAnswers(): Promise<number> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  return Number(/^sluice_answer_cache_total\{result="kept"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

/** What the gateway grows by while clients wait that read nothing, and another user is served. */
async function growthWhile(clients: () => ClientRequest[]): Promise<number> {
  const before = residentBytes(fixture.gateway.pid)
  const open = clients()
  let peak = 0
  for (let step = 0; step < 30; step += 1) {
    await sleep(100)
    peak = Math.max(peak, residentBytes(fixture.gateway.pid))
  }
  const other = await fixture.chat('bob', ask('small', { seed: Math.floor(Math.random() * 1e9) }))
  expect(other.status).toBe(200)
  for (const one of open) one.destroy()
  await sleep(500)
  console.info(`${open.length} clients that read nothing: ${Math.round((peak - before) / MIB)} MiB more`)
  return peak - before
}

describe('answers of 30 MB for clients that do not read them', () => {
  test('cached answers of 30 MB that clients do not read take at most the memory share of their user', async () => {
    fixture.upstream.script('kept', { kind: 'whole', content, usage: usageText(10, 5) })
    for (let question = 0; question < QUESTIONS; question += 1) {
      const first = await fixture.chat('ann', bodyOf('kept', question))
      expect(first.headers['x-gateway-cache']).toBe('miss')
      // Until then the share holds it.
      await expect.poll(keptAnswers).toBe(question + 1)
    }
    const hit = await fixture.chat('ann', bodyOf('kept', 0))
    expect([hit.headers['x-gateway-cache'], hit.bytes.length > ANSWER_BYTES]).toEqual(['hit', true])
    const growth = await growthWhile(() =>
      Array.from({ length: CLIENTS }, (_, index) => unread(bodyOf('kept', index % QUESTIONS))),
    )
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
    // What they held is given back, and no provider was asked for them.
    expect((await fixture.chat('ann', bodyOf('kept', 0))).headers['x-gateway-cache']).toBe('hit')
    expect(fixture.upstream.received('kept')).toHaveLength(QUESTIONS)
    const stream = await fixture.chat('ann', { ...bodyOf('kept', 0), stream: true })
    expect([stream.headers['x-gateway-cache'], stream.bytes.length > ANSWER_BYTES]).toEqual(['hit', true])
  })

  test('an answer of 30 MB on which many slow clients wait takes at most the memory share of their user', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('live', {
      kind: 'whole',
      content,
      usage: usageText(10, 5),
      after: release.promise,
    })
    setTimeout(() => release.resolve(), 500)
    const growth = await growthWhile(() => Array.from({ length: CLIENTS }, () => unread(bodyOf('live', 0))))
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
    expect(fixture.upstream.received('live')).toHaveLength(1)
  })
})
