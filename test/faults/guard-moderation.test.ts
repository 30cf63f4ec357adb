import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Quota units of a call of the model `m` that reports 100 and 50 tokens, and of a moderation. */
const CALL = 300
const CHECK = 500

let fixture: Fixture
beforeAll(async () => {
  const moderation = { model: 'judge', thresholds: { violence: 0.5 } }
  const guards = [
    { name: 'in', do: 'block', where: ['input'], match: { moderation } },
    { name: 'out', do: 'block', where: ['output'], match: { moderation } },
    { name: 'paidin', do: 'block', where: ['input'], match: { moderation }, charge: true },
    {
      name: 'paidout',
      do: 'block',
      where: ['output'],
      match: { moderation },
      charge: true,
      on_failure: 'pass',
    },
    {
      name: 'pooro',
      do: 'block',
      where: ['output'],
      match: { moderation },
      charge: true,
      on_failure: 'pass',
    },
    { name: 'poori', do: 'block', where: ['input'], match: { moderation }, charge: true, on_failure: 'pass' },
    { name: 'flagged', do: 'block', where: ['input'], match: { moderation: { model: 'judge' } } },
    {
      name: 'unknown',
      do: 'block',
      where: ['input'],
      match: { moderation: { model: 'judge', thresholds: { vilence: 0.5 } } },
    },
    { name: 'nobody', do: 'block', where: ['input'], match: { moderation: { model: 'absent' } } },
    {
      name: 'hidden',
      do: 'block',
      where: ['input'],
      match: { moderation: { ...moderation, model: 'hidden' } },
    },
    { name: 'limited', do: 'block', where: ['input'], match: { moderation } },
    { name: 'nested', do: 'block', match: { regex: 'hurt' }, models: ['judge'] },
  ]
  const named = guards.filter(({ name }) => name !== 'nested')
  fixture = await startFixture((upstream) => ({
    groups: { default: {}, inner: { open: false } },
    models: { ...priced(['m', 'hidden']), judge: { vendor: 'acme', price: { request: 0.001 } } },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('judge', upstream.baseUrl('judge')),
      channel('hidden', upstream.baseUrl('judge'), { groups: ['inner'] }),
    ],
    guards: guards.map((guard) => ({
      ...guard,
      // A moderation that is given up on a busy machine is a failure, and its row comes after the answer.
      ...(guard.name !== 'nested' && { tokens: [`token-${guard.name}`], timeout: '60s' }),
    })),
    users: [
      ROOT,
      user(
        2,
        'ann',
        named
          .filter(({ name }) => !name.startsWith('poor'))
          .map(({ name }) =>
            token(name, name === 'limited' ? { model_limits_enabled: true, model_limits: 'm' } : {}),
          ),
      ),
      user(4, 'poor', [token('poori')], { quota: CHECK - 1 }),
      user(5, 'poorer', [token('pooro')], { quota: CALL + CHECK - 1 }),
      ADMIN_USER,
    ],
  }))
})
afterAll(() => fixture?.close())

let score = 0.1
let flagged = false
beforeEach(() => {
  score = 0.1
  flagged = false
  fixture.upstream.script('m', { kind: 'whole', content: 'All is fine.', usage: usageText(100, 50) })
  fixture.upstream.decide('judge', ({ text }) => {
    const { input } = JSON.parse(text) as { input: string[] }
    const results = input.map((one) => ({
      flagged,
      categories: { violence: flagged },
      category_scores: { violence: one.includes('hurt') ? 0.9 : score },
    }))
    return { kind: 'whole', body: JSON.stringify({ id: 'modr-1', model: 'judge', results }) }
  })
})

const say = (content: string): Record<string, unknown> => ask('m', { messages: [{ role: 'user', content }] })

interface Row {
  readonly model_name: string
  readonly quota: number
  readonly kind: string
}

/** What a user had used, and the rows of the user's calls since `before`. */
async function usedBy(id: number): Promise<{ readonly quota: number; readonly rows: readonly Row[] }> {
  const { data } = await manage<{ used_quota: number }>(fixture.gateway.url, ADMIN, `GET /api/user/${id}`)
  const log = await manage<{ items: Row[] }>(fixture.gateway.url, ADMIN, 'GET /api/log/?page_size=100')
  return { quota: data.used_quota, rows: log.data.items }
}

async function costOf(id: number, make: () => Promise<FullResponse>) {
  const before = await usedBy(id)
  const answer = await make()
  const after = await usedBy(id)
  return {
    answer,
    quota: after.quota - before.quota,
    rows: after.rows
      .slice(0, after.rows.length - before.rows.length)
      .map((row) => [row.model_name, row.quota])
      .toSorted((a, b) => String(a[0]).localeCompare(String(b[0]))),
  }
}

test("a moderation score above the threshold blocks the request, and the guard's own call is a free usage row", async () => {
  const { answer, quota, rows } = await costOf(2, () => fixture.chat('in', say('hurt him')))
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'in=blocked;count=1'])
  expect([quota, rows]).toEqual([0, [['judge', 0]]])
})

test('a request whose moderation score is below the threshold passes, and the caller pays only for the request itself', async () => {
  const { answer, quota, rows } = await costOf(2, () => fixture.chat('in', say('hello')))
  expect(answer.status).toBe(200)
  expect([quota, rows]).toEqual([
    CALL,
    [
      ['judge', 0],
      ['m', CALL],
    ],
  ])
  expect(fixture.upstream.received('judge').map(({ text }) => JSON.parse(text))).toEqual([
    { model: 'judge', input: ['hello'] },
  ])
})

test("a moderation score that equals the guard's threshold blocks the request", async () => {
  score = 0.5
  expect((await fixture.chat('in', say('hello'))).status).toBe(400)
})

test('a moderation guard without thresholds blocks what its model flags', async () => {
  expect((await fixture.chat('flagged', say('hello'))).status).toBe(200)
  flagged = true
  expect((await fixture.chat('flagged', say('hello'))).status).toBe(400)
})

test.each([false, true])(
  'a moderation guard checks an answer before it is sent (stream: %s)',
  async (stream) => {
    if (stream)
      fixture.upstream.script('m', {
        kind: 'stream',
        word: 'hurt ',
        usage: usageText(100, 50),
        usageIn: 'always',
      })
    else fixture.upstream.script('m', { kind: 'whole', content: 'hurt him', usage: usageText(100, 50) })
    const { answer, quota, rows } = await costOf(2, () =>
      fixture.chat('out', stream ? askStream('m') : ask('m')),
    )
    expect(answer.text).toContain('"finish_reason":"content_filter"')
    expect(answer.text).not.toContain('hurt')
    expect([quota, rows]).toEqual([
      CALL,
      [
        ['judge', 0],
        ['m', CALL],
      ],
    ])
  },
)

describe('with charge: true', () => {
  test('a moderation guard with charge: true charges the caller exactly the price of the moderation call in addition to the call', async () => {
    const { quota, rows } = await costOf(2, () => fixture.chat('paidin', say('hello')))
    expect([quota, rows]).toEqual([
      CALL + CHECK,
      [
        ['judge', CHECK],
        ['m', CALL],
      ],
    ])
  })

  test('a request that a moderation guard with charge: true blocks costs the price of the moderation call', async () => {
    const { answer, quota, rows } = await costOf(2, () => fixture.chat('paidin', say('hurt him')))
    expect([answer.status, quota, rows]).toEqual([400, CHECK, [['judge', CHECK]]])
  })

  test.each([false, true])(
    'a moderation guard with charge: true charges the caller for the moderation of the answer (stream: %s)',
    async (stream) => {
      if (stream)
        fixture.upstream.script('m', { kind: 'stream', usage: usageText(100, 50), usageIn: 'always' })
      const { quota, rows } = await costOf(2, () =>
        fixture.chat('paidout', stream ? askStream('m') : ask('m')),
      )
      expect([quota, rows]).toEqual([
        CALL + CHECK,
        [
          ['judge', CHECK],
          ['m', CALL],
        ],
      ])
    },
  )

  test('a caller that cannot pay for the moderation call gets no unchecked answer, whatever on_failure is', async () => {
    const asked = await costOf(4, () => fixture.chat('poori', say('hello')))
    expect([asked.answer.status, asked.quota, asked.rows]).toEqual([403, 0, []])
    expect(JSON.parse(asked.answer.text).error.code).toBe('insufficient_quota')
    expect(fixture.upstream.received('m')).toEqual([])
    const said = await costOf(5, () => fixture.chat('pooro', ask('m', { max_tokens: 100 })))
    expect(said.answer.text).not.toContain('fine')
    expect([said.quota, said.rows]).toEqual([CALL, [['m', CALL]]])
  })
})

test('a moderation guard with a threshold for a category that its model does not know fails, and blocks the request', async () => {
  const answer = await fixture.chat('unknown', say('hello'))
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'unknown=failed_blocked;count=0'])
})

test('a moderation guard whose model has no channel fails, and blocks the request', async () => {
  const answer = await fixture.chat('nobody', say('hello'))
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'nobody=failed_blocked;count=0'])
})

test('a moderation guard may use a model that only another group may call', async () => {
  expect((await fixture.chat('hidden', say('hello'))).status).toBe(200)
  expect((await fixture.chat('hidden', say('hurt him'))).status).toBe(400)
})

test('a moderation guard checks calls of a key that may not call the moderation model itself', async () => {
  expect((await fixture.chat('limited', say('hello'))).status).toBe(200)
  expect((await fixture.chat('limited', say('hurt him'))).status).toBe(400)
})

test.each([
  { kind: 'status', status: 500, body: '{}' },
  { kind: 'whole', body: '{"results":[]}' },
  { kind: 'whole', body: '{"id":"modr-1","results":[{"flagged":false}]}' },
] as const)('a request is refused where the moderation call of its guard fails: %j', async (behaviour) => {
  fixture.upstream.script('judge', behaviour)
  const answer = await fixture.chat('in', say('hello'))
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'in=failed_blocked;count=0'])
})
