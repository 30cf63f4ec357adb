import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { errorBody, usageText } from '../fixtures/behaviour.ts'
import { call, type CallOptions, type FullResponse, open } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { untilOpen, untilOver } from '../fixtures/open-calls.ts'
import { ask, askStream, type Fixture, retryWhileOverloaded, startFixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'

const MODELS = [
  'kept',
  'off',
  'brief',
  'scoped',
  'other',
  'cut',
  'failing',
  'left',
  'many',
  'shared',
  'forms',
  'refused',
  'cleared',
  'reloaded',
]
const PROMPT = 'a secret question'

let fixture: Fixture
const configured = (upstream: ScriptedUpstream, cache: object, price?: unknown) => ({
  options: { cache: { ttl: '10m', ...cache } },
  models: {
    ...priced(MODELS),
    ...(price === undefined ? {} : priced(['reloaded'], price)),
    off: { ...(priced(['off'])['off'] as object), cache: 0 },
    brief: { ...(priced(['brief'])['brief'] as object), cache: '60s' },
    ended: { successor: 'cleared' },
  },
  channels: MODELS.map((name) => channel(name, upstream.baseUrl(name))),
  users: [
    ROOT,
    ADMIN_USER,
    user(
      2,
      'ann',
      [token('ann'), token('anntwo'), token('annfew', { model_limits_enabled: true, model_limits: 'other' })],
      {
        access_token: 'ann-access',
      },
    ),
    user(5, 'bob', [token('bob')]),
  ],
})
beforeAll(async () => {
  fixture = await startFixture((upstream) => configured(upstream, {}))
})
afterAll(() => fixture?.close())
// Tests count calls that are under way: those of the test before must have ended.
beforeEach(() => untilOver(fixture.gateway.url, 0))

interface Row {
  readonly cache: string
  readonly quota: number
  readonly hit_saved: number
  readonly reason: string
  readonly prompt_tokens: number
  readonly model_name: string
  readonly channel: string
}

async function rowOf({ headers }: FullResponse): Promise<Row> {
  const path = `GET /api/log/${String(headers['x-request-id'])}` as const
  const row = async (): Promise<Row | undefined> =>
    (await manage<Row | undefined>(fixture.gateway.url, ADMIN, path)).data
  // A call that got the answer as it arrived is charged after the answer was sent.
  await expect.poll(row).toBeDefined()
  return (await row()) as Row
}

const asked = (lane: string): number => fixture.upstream.received(lane).length
const statusOf = ({ headers }: FullResponse): unknown => headers['x-gateway-cache']
const withControl = (value: string): CallOptions => ({ headers: { 'cache-control': value } })

describe('an answer that is kept', () => {
  test('a cached answer is returned unchanged to an equal call, free of charge, with its age and a usage row', async () => {
    const body = { ...ask('kept'), messages: [{ role: 'user', content: PROMPT }] }
    const first = await fixture.chat('ann', body)
    const second = await fixture.chat(
      'ann',
      JSON.stringify(
        { metadata: { a: '1' }, user: undefined, messages: body.messages, model: 'kept' },
        undefined,
        2,
      ),
    )
    expect([first, second].map(statusOf)).toEqual(['miss', 'hit'])
    expect(second.text).toBe(first.text)
    expect(second.headers['content-type']).toBe(first.headers['content-type'])
    expect(second.headers['age']).toMatch(/^\d+$/)
    expect(first.headers['age']).toBeUndefined()
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
    expect(asked('kept')).toBe(1)
    const [paid, hit] = [await rowOf(first), await rowOf(second)]
    expect(paid).toMatchObject({ cache: '', hit_saved: 0, reason: 'complete' })
    expect(paid.quota).toBeGreaterThan(0)
    expect(hit).toMatchObject({
      cache: 'hit',
      quota: 0,
      hit_saved: paid.quota,
      reason: 'complete',
      prompt_tokens: 0,
      model_name: 'kept',
    })
  })

  test('a cached answer survives a restart, and is not in plain text in the database', async () => {
    const body = ask('kept', { messages: [{ role: 'user', content: 'restarted' }] })
    fixture.upstream.script('kept', { kind: 'whole', content: 'a very secret answer' })
    await fixture.chat('ann', body)
    const files = await import('node:fs').then(({ readdirSync, readFileSync }) =>
      readdirSync(fixture.gateway.dataDir)
        .filter((name) => name.startsWith('sluice.db'))
        .map((name) => readFileSync(`${fixture.gateway.dataDir}/${name}`, 'latin1')),
    )
    expect(files.join('')).not.toContain('very secret')
    await fixture.gateway.restart()
    expect(statusOf(await fixture.chat('ann', body))).toBe('hit')
    expect(asked('kept')).toBe(1)
  })

  test.each([
    ['the message', { messages: [{ role: 'user', content: 'other' }] }],
    ['a parameter', { temperature: 0.5 }],
    ['an unknown member', { x_unknown: 1 }],
  ])('a cached answer is not returned to a call that differs by %s', async (_what, fields) => {
    await fixture.chat('ann', ask('other'))
    expect(statusOf(await fixture.chat('ann', ask('other', fields)))).toBe('miss')
  })

  test.each([
    ['stream_options', { stream_options: { include_usage: true } }],
    ['metadata', { metadata: { a: '1' } }],
    ['prompt_cache_key', { prompt_cache_key: 'k' }],
    ['session_id', { session_id: 's' }],
  ])('a cached answer is returned to a call that differs only by %s', async (_what, fields) => {
    await fixture.chat('ann', ask('other'))
    expect(statusOf(await fixture.chat('ann', ask('other', fields)))).toBe('hit')
  })

  test('a cached answer is not returned to another key, another user, or a key without permission for the model', async () => {
    await fixture.chat('ann', ask('scoped'))
    for (const key of ['anntwo', 'bob']) expect(statusOf(await fixture.chat(key, ask('scoped')))).toBe('miss')
    expect((await fixture.chat('annfew', ask('scoped'))).status).toBe(403)
  })

  test('a cached answer is not returned after a change of prices, and is returned again at the earlier prices', async () => {
    await fixture.chat('ann', ask('reloaded'))
    await fixture.gateway.apply(configured(fixture.upstream, {}, { input: 3, output: 3 }))
    expect(statusOf(await fixture.chat('ann', ask('reloaded')))).toBe('miss')
    await fixture.gateway.apply(configured(fixture.upstream, {}))
    expect(statusOf(await fixture.chat('ann', ask('reloaded')))).toBe('hit')
  })
})

describe('whole and streamed calls', () => {
  const usage = usageText(10, 5)

  test('a cached whole answer is sent as a stream to an equal call that requests a stream, with usage only if requested', async () => {
    fixture.upstream.script('shared', { kind: 'whole', content: 'Hello', usage })
    const whole = await fixture.chat('ann', ask('shared'))
    const stream = await fixture.chat('ann', askStream('shared'))
    const full = await fixture.chat('ann', askStream('shared', { stream_options: { include_usage: true } }))
    expect([whole, stream, full].map(statusOf)).toEqual(['miss', 'hit', 'hit'])
    expect(stream.headers['content-type']).toBe('text/event-stream')
    expect(stream.text).toContain('Hello')
    expect(stream.text).toMatch(/data: \[DONE\]\n\n$/)
    expect(stream.text).not.toContain('"usage"')
    expect(full.text).toContain(`"choices":[],"usage":${usage}`)
    expect(asked('shared')).toBe(1)
  })

  test('a cached streamed answer is sent as a whole response to an equal call that requests no stream', async () => {
    fixture.upstream.script('forms', { kind: 'stream', events: 3, word: 'word ', usage })
    const first = await fixture.chat('ann', askStream('forms'))
    const again = await fixture.chat('ann', askStream('forms'))
    const full = await fixture.chat('ann', askStream('forms', { stream_options: { include_usage: true } }))
    const whole = await fixture.chat('ann', ask('forms'))
    expect([first, again, full, whole].map(statusOf)).toEqual(['miss', 'hit', 'hit', 'hit'])
    expect(again.text).toBe(first.text)
    expect(full.text).toContain('"prompt_tokens":10')
    expect(whole.json()).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'word word word ' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    })
    expect(asked('forms')).toBe(1)
  })
})

describe('what is not kept', () => {
  test.each([
    [
      'an answer that was cut off',
      {
        kind: 'whole',
        body: JSON.stringify({
          id: 'c',
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'length' }],
        }),
      },
    ],
    [
      'a refusal',
      {
        kind: 'whole',
        body: JSON.stringify({
          id: 'c',
          object: 'chat.completion',
          choices: [
            {
              index: 0,
              message: { role: 'assistant', content: null, refusal: 'No.' },
              finish_reason: 'stop',
            },
          ],
        }),
      },
    ],
    ['an error', { kind: 'status', status: 400, body: errorBody('no') }],
  ] as const)('the answer cache does not store %s', async (_what, behaviour) => {
    fixture.upstream.script('refused', behaviour)
    const one = await fixture.chat('ann', ask('refused'))
    const other = await fixture.chat('ann', ask('refused'))
    expect(asked('refused')).toBe(2)
    expect([one.status, other.status]).toEqual([
      behaviour.kind === 'status' ? 400 : 200,
      behaviour.kind === 'status' ? 400 : 200,
    ])
    expect(statusOf(other)).not.toBe('hit')
  })

  test('a stream that broke off is not cached', async () => {
    fixture.upstream.script('cut', { kind: 'stream', events: 3, ending: 'reset' })
    await fixture.chat('ann', askStream('cut'))
    fixture.upstream.script('cut', { kind: 'stream', events: 3 })
    expect(statusOf(await fixture.chat('ann', askStream('cut')))).toBe('miss')
    expect(statusOf(await fixture.chat('ann', askStream('cut')))).toBe('hit')
  })

  test('answers of a model whose caching is off are not cached, whatever the request says', async () => {
    for (const options of [{}, withControl('max-age=60')])
      expect(statusOf(await fixture.chat('ann', ask('off'), options))).toBe('bypass')
    expect(asked('off')).toBe(2)
  })
})

describe('by request', () => {
  test('a call with no-store neither reads from the cache nor writes to it', async () => {
    const body = ask('other', { seed: 1 })
    expect(statusOf(await fixture.chat('ann', body, withControl('no-store')))).toBe('bypass')
    expect(statusOf(await fixture.chat('ann', body))).toBe('miss')
    expect(statusOf(await fixture.chat('ann', body, withControl('no-store')))).toBe('bypass')
  })

  test.each(['no-cache', 'max-age=0'])(
    'a call with %s is sent upstream even if its answer is cached, and the new answer replaces the cached one',
    async (control) => {
      const body = ask('other', { user: control })
      fixture.upstream.script('other', { kind: 'whole', content: 'old' })
      await fixture.chat('ann', body)
      fixture.upstream.script('other', { kind: 'whole', content: 'new' })
      expect((await fixture.chat('ann', body)).text).toContain('old')
      const fresh = await fixture.chat('ann', body, withControl(control))
      expect([statusOf(fresh), fresh.text.includes('new')]).toEqual(['miss', true])
      const after = await fixture.chat('ann', body)
      expect([statusOf(after), after.text.includes('new')]).toEqual(['hit', true])
    },
  )

  test('a cached answer is not returned once it is older than max-age or than its lifetime', async () => {
    const moved = dateClock()
    const own = await startFixture((upstream) => configured(upstream, {}), { env: moved.env })
    onTestFinished(() => own.close())
    const status = async (model: string, options?: CallOptions): Promise<unknown> =>
      statusOf(await own.chat('ann', ask(model), options))
    // An answer is kept after it was sent, and its age counts from then on.
    const kept = async (): Promise<boolean> => {
      const { text } = await call(own.gateway.url, undefined, { method: 'GET', path: '/metrics' })
      return text.includes('sluice_answer_cache_total{result="kept"} 2')
    }
    expect([await status('brief'), await status('other')]).toEqual(['miss', 'miss'])
    await expect.poll(kept).toBe(true)
    expect([await status('brief'), await status('other')]).toEqual(['hit', 'hit'])
    moved.move(61)
    expect([await status('brief'), await status('other')]).toEqual(['miss', 'hit'])
    expect(await status('other', withControl('max-age=60'))).toBe('miss')
  })
})

const EQUAL_CALLS = byTier(200, 1_000)

describe('equal calls under way', () => {
  test(`${EQUAL_CALLS} equal calls at once lead to one upstream call, equal answers and one charge`, async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('many', { kind: 'whole', content: 'one for all', after: release.promise })
    const calls = Array.from({ length: EQUAL_CALLS }, () =>
      retryWhileOverloaded(() => fixture.chat('ann', ask('many'))),
    )
    await untilOpen(fixture.gateway.url, EQUAL_CALLS)
    release.resolve()
    const answers = await Promise.all(calls)
    expect(asked('many')).toBe(1)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    const statuses = answers.map(statusOf)
    expect([
      statuses.filter((one) => one === 'miss').length,
      statuses.filter((one) => one === 'hit').length,
    ]).toEqual([1, EQUAL_CALLS - 1])
    const rows = async (): Promise<number> => {
      const query = 'GET /api/log/?model_name=many&page_size=100'
      return (await manage<{ total: number }>(fixture.gateway.url, ADMIN, query)).data.total
    }
    await expect.poll(rows).toBe(EQUAL_CALLS)
  })

  test('an equal call during a stream gets its events from the start, and then as they arrive', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('left', { kind: 'stream', events: 2, word: 'live ', endsAfter: release.promise })
    const body = askStream('left')
    const first = await open(fixture.gateway.url, body, { key: 'ann' })
    await first.until('live live'.slice(0, 5))
    const second = await open(fixture.gateway.url, body, { key: 'ann' })
    await second.until('live ')
    expect(second.headers['x-gateway-cache']).toBe('hit')
    const whole = fixture.chat('ann', ask('left'))
    release.resolve()
    const [one, two] = [await first.end(), await second.end()]
    expect(two.text).toBe(one.text)
    expect((await whole).json().choices[0]?.message.content).toBe('live live ')
    expect(asked('left')).toBe(1)
  })

  test('a shared upstream call continues when its first client leaves while others wait', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('left', { kind: 'stream', events: 3, word: 'on ', endsAfter: release.promise })
    const body = askStream('left', { seed: 2 })
    const first = await open(fixture.gateway.url, body, { key: 'ann' })
    await first.until('on ')
    const second = await open(fixture.gateway.url, body, { key: 'ann' })
    await second.until('on ')
    first.abort()
    await new Promise((resolve) => setTimeout(resolve, 300))
    release.resolve()
    const answer = await second.end()
    expect([answer.broken, answer.text.includes('[DONE]')]).toEqual([false, true])
    expect(fixture.upstream.only('left').completed).toBe(true)
  })

  test('a shared upstream call ends when its last client has left', async () => {
    fixture.upstream.script('left', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 5 })
    const body = askStream('left', { seed: 3 })
    const clients = await Promise.all([1, 2].map(() => open(fixture.gateway.url, body, { key: 'ann' })))
    for (const one of clients) await one.until('data:')
    const [received] = fixture.upstream.received('left')
    for (const one of clients) one.abort()
    await received?.ended
    expect([asked('left'), received?.completed]).toEqual([1, false])
  })

  test('when the first of several equal calls fails, one more is sent upstream, and all other clients get its answer', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script(
      'failing',
      { kind: 'status', status: 400, body: errorBody('broken'), after: release.promise },
      { kind: 'whole', content: 'second try' },
    )
    const calls = Array.from({ length: 20 }, () => fixture.chat('ann', ask('failing')))
    await untilOpen(fixture.gateway.url, 20)
    release.resolve()
    const answers = await Promise.all(calls)
    expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(19)
    expect(asked('failing')).toBe(2)
  })
})

describe('DELETE /api/cache', () => {
  const ANN = { id: 2, accessToken: 'ann-access' }
  const kept = async (key: string, seed: number): Promise<unknown> =>
    statusOf(await fixture.chat(key, ask('cleared', { seed })))

  test("DELETE /api/cache removes a user's own answers that match the filters, and none of other users", async () => {
    const { url } = fixture.gateway
    for (const key of ['ann', 'anntwo', 'bob']) expect(await kept(key, 1)).toBe('miss')
    const removed = async (account: { id: number; accessToken: string }, query: string) =>
      (await manage<{ removed: number }>(url, account, `DELETE /api/cache${query}`)).data.removed
    expect(await removed(ANN, '?user=5')).toBe(0)
    expect(await removed(ANN, '?model=nothing')).toBe(0)
    expect(await kept('bob', 1)).toBe('hit')
    expect(await removed(ANN, '?model=cleared')).toBe(2)
    expect([await kept('ann', 1), await kept('bob', 1)]).toEqual(['miss', 'hit'])
    expect(await removed(ADMIN, '?user=5&model=cleared')).toBe(1)
    expect([await kept('ann', 1), await kept('bob', 1)]).toEqual(['hit', 'miss'])
    expect(await removed(ADMIN, '')).toBeGreaterThan(2)
    expect(await kept('ann', 1)).toBe('miss')
    const { data } = await manage<{ items: { action: string; actor: string; changes: object[] }[] }>(
      url,
      ADMIN,
      'GET /api/audit?kind=cache',
    )
    expect(data.items[1]).toMatchObject({
      action: 'cache.delete',
      actor: 'ada',
      changes: [
        { field: 'user', before: 5, after: null },
        { field: 'model', before: 'cleared', after: null },
        { field: 'answers', before: 1, after: null },
      ],
    })
  })

  test("DELETE /api/cache finds an answer of a model's successor by the name of the successor", async () => {
    const { url } = fixture.gateway
    const ended = (seed: number) => fixture.chat('ann', ask('ended', { seed }))
    const remove = () => manage<{ removed: number }>(url, ANN, 'DELETE /api/cache?model=cleared')
    await remove()
    expect(statusOf(await ended(4))).toBe('miss')
    expect(await kept('ann', 4)).toBe('hit')
    expect((await remove()).data.removed).toBe(1)
    expect(await kept('ann', 4)).toBe('miss')
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('cleared', { kind: 'whole', after: release.promise })
    const before = fixture.upstream.received('cleared').length
    const first = ended(5)
    await fixture.upstream.receivedAtLeast('cleared', before + 1)
    await remove()
    release.resolve()
    await first
    expect(await kept('ann', 5)).toBe('miss')
  })

  test('after DELETE /api/cache the answer of a call in flight is not cached, and later calls do not wait for it', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script(
      'cleared',
      { kind: 'whole', content: 'An earlier answer.', after: release.promise },
      { kind: 'whole', content: 'A later answer.' },
    )
    const body = ask('cleared', { seed: 3 })
    const before = fixture.upstream.received('cleared').length
    const first = fixture.chat('ann', body)
    await fixture.upstream.receivedAtLeast('cleared', before + 1)
    await manage(fixture.gateway.url, ANN, 'DELETE /api/cache?model=cleared')
    const second = await fixture.chat('ann', body)
    release.resolve()
    expect((await first).text).toContain('An earlier answer.')
    const third = await fixture.chat('ann', body)
    expect([statusOf(second), statusOf(third)]).toEqual(['miss', 'hit'])
    expect([second.text, third.text].every((text) => text.includes('A later answer.'))).toBe(true)
  })

  test.each(['?user=', '?user=ann', '?token=x', '?model=', '?usr=2'])(
    'DELETE /api/cache%s is refused and removes nothing',
    async (query) => {
      await kept('bob', 2)
      const { status } = await manage(fixture.gateway.url, ADMIN, `DELETE /api/cache${query}`)
      expect(status).toBe(400)
      expect(await kept('bob', 2)).toBe('hit')
    },
  )
})

test('without options.cache no answer is cached, and no answer has the header of the cache', async () => {
  const plain = await startFixture((upstream) => ({
    models: { ...priced(['m']), n: { ...(priced(['n'])['n'] as object), cache: '10m' } },
    channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'n'] })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  for (const model of ['m', 'm', 'n', 'n'])
    expect(statusOf(await plain.chat('ann', ask(model), withControl('max-age=60')))).toBeUndefined()
  expect(plain.upstream.received('m')).toHaveLength(4)
  // Over HTTP the option takes effect at once, and is taken back by an empty text.
  const set = (value: string) =>
    manage(plain.gateway.url, { id: 1, accessToken: ROOT.access_token }, 'PUT /api/option/', {
      key: 'cache',
      value,
    })
  await set('{"ttl": "10m"}')
  const cached = [await plain.chat('ann', ask('m')), await plain.chat('ann', ask('m'))]
  expect(cached.map(statusOf)).toEqual(['miss', 'hit'])
  await set('')
  expect(statusOf(await plain.chat('ann', ask('m')))).toBeUndefined()
  await plain.close()
})

test('a stream that fails is not replayed for its idempotency key while the cache is on', async () => {
  fixture.upstream.script(
    'failing',
    { kind: 'stream', events: 3, ending: 'error' },
    { kind: 'whole', content: 'A whole answer.' },
  )
  const headers = { 'idempotency-key': 'failing-under-the-cache' }
  const body = askStream('failing', { messages: [{ role: 'user', content: 'twice' }] })
  const attempt = async () => (await open(fixture.gateway.url, body, { key: 'ann', headers })).end()
  expect((await attempt()).text).toContain('error')
  expect((await attempt()).headers['idempotency-replayed']).toBeUndefined()
})
