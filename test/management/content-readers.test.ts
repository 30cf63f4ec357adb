import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf, lookAt, rowWithContent, sha256 } from '../fixtures/content.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }
const OPERATOR = { id: 1, accessToken: 'root-access-token' }

let fixture: Fixture
const clock = dateClock(afterAll)
beforeAll(async () => {
  fixture = await startFixture((upstream) => configuration(upstream), { env: clock.env })
})
afterAll(() => fixture?.close())

function configuration(upstream: ScriptedUpstream, keep = '30d'): Configuration {
  return {
    options: { retries: 1, cache: { ttl: '1h', scope: 'token' } },
    rate_limits: { global: { requests: 0 } },
    content_log: { what: 'full', readers: 10, keep },
    groups: { default: {}, long: { content_log: { keep: '2h' } } },
    models: priced(['m', 'c', 'two']),
    channels: [
      channel('m', upstream.baseUrl('m'), { groups: ['default', 'long'] }),
      channel('c', upstream.baseUrl('c'), { protocol: 'messages' }),
      channel('bad', upstream.baseUrl('bad'), { models: ['two'], priority: 10 }),
      channel('good', upstream.baseUrl('good'), { models: ['two'] }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('other')], { access_token: ANN.accessToken }),
      user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
      user(4, 'ada', [token('ada')], { access_token: ADA.accessToken, role: 10 }),
      user(5, 'cyd', [token('cyd')], { group: 'long' }),
    ],
  }
}

const url = (): string => fixture.gateway.url
const idOf = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }): string =>
  String(headers['x-request-id'])
const unique = (fields: object = {}) => ask('m', { user: String(Math.random()), ...fields })
const say = async (key: string): Promise<string> => {
  fixture.upstream.script('m', { kind: 'whole' })
  const answer = await fixture.chat(key, unique())
  expect(answer.status, answer.text).toBe(200)
  return idOf(answer)
}

describe('who reads', () => {
  test('another id beside an access token does not open what that user said', async () => {
    const id = await say('ann')
    await contentOf(url(), ANN, id)
    const answer = await lookAt(url(), { id: ANN.id, accessToken: BEN.accessToken }, id)
    expect([401, 403]).toContain(answer.status)
    const withKey = await call(url(), undefined, { method: 'GET', path: `/api/content/${id}`, key: 'ann' })
    expect(withKey.status).toBe(401)
  })

  test('an administrator who becomes a common user reads no more what others said', async () => {
    const id = await say('ann')
    await contentOf(url(), ADA, id)
    expect((await manage(url(), OPERATOR, 'PUT /api/user/', { id: ADA.id, role: 1 })).status).toBe(200)
    expect((await lookAt(url(), ADA, id)).status).toBe(404)
    expect((await manage(url(), OPERATOR, 'PUT /api/user/', { id: ADA.id, role: 10 })).status).toBe(200)
    expect((await lookAt(url(), ADA, id)).status).toBe(200)
  })

  test('the content of a deleted key is read by its former holder', async () => {
    const id = await say('other')
    await contentOf(url(), ANN, id)
    const page = await manage<{ items: { id: number; name: string }[] }>(
      url(),
      ANN,
      'GET /api/token/?page_size=100',
    )
    const other = page.data.items.find(({ name }) => name === 'token-other')
    await manage(url(), ANN, `DELETE /api/token/${other?.id}`)
    expect((await lookAt(url(), ANN, id)).status).toBe(200)
    expect((await lookAt(url(), BEN, id)).status).toBe(404)
  })
})

describe('what is kept', () => {
  test('of a call whose first channel failed, the request and the answer of the last attempt', async () => {
    fixture.upstream.decide('bad', () => ({
      kind: 'status',
      status: 500,
      body: '{"error":{"message":"the first"}}',
    }))
    fixture.upstream.script('good', { kind: 'whole' })
    const answer = await fixture.chat('ann', ask('two'))
    expect(answer.status).toBe(200)
    const { parts } = await contentOf(url(), ANN, idOf(answer))
    expect(parts.answer_received?.text).toBe(answer.text)
    expect(parts.answer_sent).toBeUndefined()
    expect(JSON.stringify(parts)).not.toContain('the first')
  })

  test.each([
    ['an answer cache', {}],
    ['an idempotency key', { 'idempotency-key': 'failed', 'cache-control': 'no-store' }],
    ['both', { 'idempotency-key': 'failed too' }],
  ])(
    'of a failed call with %s, the answer of the provider and the error that the client got',
    async (name, headers) => {
      for (const lane of ['bad', 'good'])
        fixture.upstream.decide(lane, () => ({
          kind: 'status',
          status: 500,
          body: '{"error":{"message":"broken"}}',
        }))
      const answer = await fixture.chat('ann', ask('two', { user: name }), { headers })
      expect(answer.status).toBe(500)
      const { parts } = await contentOf(url(), ANN, idOf(answer))
      expect(parts.answer_received?.text).toContain('broken')
      expect(parts.answer_sent?.text).toBe(answer.text)
    },
  )

  test('failed calls leave no memory of the content log taken', async () => {
    const large = { messages: [{ role: 'user', content: 'x'.repeat(1024 * 1024) }] }
    for (let time = 1; time <= 60; time += 1) {
      const failed = await fixture.chat('ann', ask('two', { ...large, user: `${time}` }))
      // What a slow disk has not written takes memory as well.
      if (time % 10 === 0) await contentOf(url(), ANN, idOf(failed))
    }
    const last = await fixture.chat('ann', ask('two', { user: 'the last' }))
    await contentOf(url(), ANN, idOf(last))
    const metrics = await call(url(), undefined, {
      method: 'GET',
      path: '/metrics',
      key: 'root-access-token',
    })
    expect(metrics.text).toContain('sluice_content_dropped_total')
    expect(metrics.text).not.toMatch(/^sluice_content_dropped_total.* [1-9]/m)
  })

  test('equal calls under way have content of their own each, whose digest is in their rows', async () => {
    const { promise: endsAfter, resolve: release } = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'stream', events: 2, word: 'live ', endsAfter })
    const body = askStream('m', { user: 'together' })
    const first = await fixture.live('ann', body)
    await first.until('live ')
    const second = await fixture.live('ann', body)
    await second.until('live ')
    release()
    const texts = [await first.end(), await second.end()]
    const sent = JSON.stringify(body)
    for (const [index, live] of [first, second].entries()) {
      const { parts } = await contentOf(url(), ANN, idOf(live))
      expect(parts.request_received?.text).toBe(sent)
      expect((parts.answer_sent ?? parts.answer_received)?.text).toBe(texts[index]?.text)
      const row = await rowWithContent(url(), ANN, `/api/log/self/${idOf(live)}`)
      expect(row['content_sha256']).toBe(sha256(...Object.values(parts).map(({ text = '' }) => text)))
    }
  })

  test('of a call that is shared and whose client left, what that client got', async () => {
    const { promise: endsAfter, resolve: release } = Promise.withResolvers<void>()
    fixture.upstream.script('m', { kind: 'stream', events: 60, word: 'live ', paceMs: 20, endsAfter })
    const body = askStream('m', { user: 'left' })
    const first = await fixture.live('ann', body)
    await first.until('live ')
    const second = await fixture.live('ann', body)
    await second.until('live ')
    second.abort()
    // Before the stream ends, which the client would not have waited for.
    const { parts } = await contentOf(url(), ANN, idOf(second))
    release()
    expect((await first.end()).text).toContain('[DONE]')
    expect(Object.keys(parts)).toEqual(['request_received', 'answer_sent'])
    expect(parts.answer_sent?.text).toContain('live ')
    expect(parts.answer_sent?.text).not.toContain('[DONE]')
  })

  test('of a call with an idempotency key, once: a repeated one is the same call', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    const body = unique()
    const headers = { 'idempotency-key': 'k1' }
    const one = await fixture.chat('ann', body, { headers })
    const two = await fixture.chat('ann', body, { headers })
    expect(two.text).toBe(one.text)
    const { parts } = await contentOf(url(), ANN, idOf(one))
    expect((parts.answer_sent ?? parts.answer_received)?.text).toBe(one.text)
    expect(idOf(two)).toBe(idOf(one))
  })

  test('of a stream with an idempotency key whose client left, all that the provider sent', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: 50, word: 'word ', paceMs: 5 })
    const body = askStream('m', { user: 'idemleft' })
    const live = await fixture.live('ann', body, { headers: { 'idempotency-key': 'k2' } })
    await live.until('word ')
    live.abort()
    const { parts } = await contentOf(url(), ANN, idOf(live))
    // The call is read to its end, because a repeated one would get its answer.
    expect(parts.answer_received?.text).toContain('[DONE]')
  })
})

describe('a retention that is shortened later', () => {
  const seen = async (id: string): Promise<readonly unknown[]> => {
    const [own, operator] = [await lookAt(url(), ANN, id), await lookAt(url(), OPERATOR, id)]
    const row = await manage<Record<string, unknown>>(url(), ANN, `GET /api/log/self/${id}`)
    return [
      own.status,
      operator.status,
      row.data['content_address'] !== '',
      row.data['content_sha256'] !== '',
    ]
  }
  const tokenOf = async (name: string): Promise<number | undefined> => {
    const page = await manage<{ items: { id: number; name: string }[] }>(
      url(),
      ANN,
      'GET /api/token/?page_size=100',
    )
    return page.data.items.find((item) => item.name === `token-${name}`)?.id
  }

  test.each([
    [
      'a user',
      async (keep: number | null) =>
        manage(url(), OPERATOR, 'PUT /api/user/', { id: ANN.id, content_log_keep: keep }),
    ],
    [
      'a key',
      async (keep: number | null) =>
        manage(url(), ANN, 'PUT /api/token/', { id: await tokenOf('ann'), content_log_keep: keep }),
    ],
  ])('of %s holds for what was said before', async (_, set) => {
    const id = await say('ann')
    await contentOf(url(), ANN, id)
    await expect.poll(() => seen(id)).toEqual([200, 200, true, true])
    expect((await set(1)).status).toBe(200)
    clock.move(2)
    onTestFinished(() => clock.move(0))
    expect(await seen(id)).toEqual([404, 404, false, false])
    await set(null)
  })

  test('in gateway.yaml holds for what was said before, unless a group or a user has its own', async () => {
    const [ann, ben, cyd] = [await say('ann'), await say('ben'), await say('cyd')]
    for (const id of [ann, ben, cyd]) await contentOf(url(), OPERATOR, id)
    await manage(url(), OPERATOR, 'PUT /api/user/', { id: BEN.id, content_log_keep: 3_600 })
    clock.move(2)
    onTestFinished(() => clock.move(0))
    await fixture.gateway.restart(configuration(fixture.upstream, '1s'))
    expect(await seen(ann)).toEqual([404, 404, false, false])
    for (const id of [ben, cyd]) expect((await lookAt(url(), OPERATOR, id)).status).toBe(200)
  })
})
