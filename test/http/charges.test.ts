import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Behaviour,
  contentFrame,
  DONE_FRAME,
  errorBody,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { send, streamedContent } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase, type UsageRow } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { untilOver } from '../fixtures/open-calls.ts'

const MODELS = {
  // One unit for a prompt token, four for an output token, a quarter for a cached one.
  m: PLAIN_PRICE,
  drained: PLAIN_PRICE,
  retried: PLAIN_PRICE,
  refused: PLAIN_PRICE,
  free: { input: 0, output: 0 },
  tiny: { input: 0.0002, output: 0.0002 },
  percall: { request: 0.002 },
  tiered: { ...PLAIN_PRICE, tiers: [{ above: 200, input: 4, output: 12 }] },
}

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 1, hold_tokens: 100 },
    groups: { default: { ratio: 1 }, half: { ratio: 0.5 } },
    models: Object.fromEntries(Object.entries(MODELS).map(([name, price]) => [name, { price }])),
    channels: [
      ...['m', 'refused', 'free', 'tiny', 'percall', 'tiered'].map((name) =>
        channel(name, upstream.baseUrl(name), { groups: ['default', 'half'] }),
      ),
      channel('drained', upstream.baseUrl('drained'), { on_client_gone: 'drain' }),
      channel('retried', upstream.baseUrl('retried'), { priority: 5 }),
      channel('second', upstream.baseUrl('second'), { models: ['retried'] }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann', { remain_quota: 1_000_000_000 }),
        token('half', { remain_quota: 1_000_000_000, group: 'half' }),
        token('endless'),
        token('small', { remain_quota: 1000 }),
      ]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

/** A prompt of three hundred tokens in any tokenizer, and an answer of two hundred. */
const PROMPT = Array.from({ length: 300 }, () => 'apple').join(' ')
const ANSWER = ' banana'.repeat(200)
const LONG = { messages: [{ role: 'user', content: PROMPT }] }

interface Charged {
  readonly row: UsageRow
  readonly status: number
  readonly text: string
}

/**
 * Makes a call, and checks that token and user were charged as its row says by the time the response was
 * complete.
 */
async function charged(
  lane: keyof typeof MODELS,
  behaviour: Behaviour,
  fields: Record<string, unknown> = {},
  key = 'ann',
): Promise<Charged> {
  fixture.upstream.script(lane, behaviour)
  const before = { token: database.token(`token-${key}`), user: database.user('ann') }
  const live = await fixture.live(key, ask(lane, { stream: behaviour.kind === 'stream', ...fields }))
  const answer = await live.end()
  const row = database.usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error(`no usage row for ${answer.status} ${answer.text.slice(0, 300)}`)
  const after = { token: database.token(`token-${key}`), user: database.user('ann') }
  expect(after.token.used_quota - before.token.used_quota).toBe(row.quota)
  expect(after.user.used_quota - before.user.used_quota).toBe(row.quota)
  expect(before.user.quota - after.user.quota).toBe(row.quota)
  expect(after.user.request_count - before.user.request_count).toBe(1)
  if (key === 'endless') return { row, status: answer.status, text: answer.text }
  expect(before.token.remain_quota - after.token.remain_quota).toBe(row.quota)
  return { row, status: answer.status, text: answer.text }
}

/** Makes a call that delivers nothing, and checks that it cost nothing and counts for nothing. */
async function uncharged(lane: keyof typeof MODELS, behaviour: Behaviour, body: object): Promise<void> {
  fixture.upstream.script(lane, behaviour)
  const before = { token: database.token('token-ann'), user: database.user('ann') }
  await (await fixture.live('ann', body)).end()
  await untilNoHolds()
  const after = { token: database.token('token-ann'), user: database.user('ann') }
  expect(after.token).toMatchObject({
    used_quota: before.token.used_quota,
    remain_quota: before.token.remain_quota,
  })
  expect(after.user).toEqual(before.user)
}

async function untilNoHolds(): Promise<void> {
  await expect.poll(() => database.openHolds()).toHaveLength(0)
}

const whole = (usage: string | null, content?: string): Behaviour => ({
  kind: 'whole',
  usage,
  ...(content === undefined ? {} : { content }),
})

describe('a complete response costs its reported usage', () => {
  test('a whole response costs its reported usage: 100 prompt and 50 output tokens', async () => {
    const { row } = await charged('m', whole(usageText(100, 50)))
    expect(row).toMatchObject({
      quota: 300,
      reason: 'complete',
      input_tokens: 100,
      output_tokens: 50,
      model: 'm',
    })
  })
  test('cached prompt tokens are charged at their own price, and only once', async () => {
    const { row } = await charged('m', whole(usageText(100, 50, 40)))
    expect(row).toMatchObject({ quota: 60 + 10 + 200, input_tokens: 60, cache_read_tokens: 40 })
  })
  test.each([
    ['streamed, usage in a frame of its own, requested by the gateway', {}, {}],
    ['streamed, requested by the client', {}, { stream_options: { include_usage: true } }],
    ['streamed, usage in the chunk that finishes', { usageIn: 'finish chunk' as const }, {}],
    ['streamed byte by byte', { drip: true, events: 2 }, {}],
  ])('a complete response costs its reported usage: %s', async (_, streamed, fields) => {
    const { row } = await charged('m', { kind: 'stream', usage: usageText(100, 50), ...streamed }, fields)
    expect(row).toMatchObject({ quota: 300, reason: 'complete', stream: 1 })
  })
  test('a stream with usage in several chunks is charged by the last usage', async () => {
    const first = finishFrame(usageText(100, 1))
    const frames = [contentFrame('a'), first, usageFrame(usageText(100, 50)), DONE_FRAME]
    const { row } = await charged('m', { kind: 'stream', frames })
    expect(row.quota).toBe(300)
  })
  test.each([
    [3, 2, 1, 6], // 1 + 0.5 + 4 = 5.5, rounded away from zero
    [3, 1, 1, 6], // 2 + 0.25 + 4 = 6.25
    [3, 3, 1, 5], // 0.75 + 4 = 4.75
  ])(
    'a charge is rounded once: %i prompt, %i of them cached, %i output cost %i',
    async (prompt, cached, output, quota) => {
      expect((await charged('m', whole(usageText(prompt, output, cached)))).row.quota).toBe(quota)
    },
  )
  test('a response is charged at the price times the ratio of the group', async () => {
    expect((await charged('m', whole(usageText(100, 50)), {}, 'half')).row.quota).toBe(150)
    expect((await charged('m', whole(usageText(1, 1)), {}, 'half')).row.quota).toBe(3)
  })
  test('a response is charged at the prices of the tier that its prompt tokens reach', async () => {
    expect((await charged('tiered', whole(usageText(200, 10)))).row.quota).toBe(240)
    expect((await charged('tiered', whole(usageText(201, 10)))).row.quota).toBe(402 + 60)
  })
  test('a response is charged the price per call where there is one', async () => {
    expect((await charged('percall', whole(usageText(100, 50)))).row.quota).toBe(1000)
    expect((await charged('percall', { kind: 'stream' }, {}, 'half')).row.quota).toBe(500)
  })
  test('a response with any usage costs at least one unit', async () => {
    expect((await charged('tiny', whole(usageText(1, 1)))).row.quota).toBe(1)
  })
  test('a free model costs nothing, but the request is counted', async () => {
    expect((await charged('free', whole(usageText(100, 50)))).row.quota).toBe(0)
  })
  test("a call with an unlimited token is charged to the token's counters and its user", async () => {
    expect((await charged('m', whole(usageText(100, 50)), {}, 'endless')).row.quota).toBe(300)
  })
  test('a response is charged even above its hold: the balance goes below zero', async () => {
    const { row, status } = await charged('m', whole(usageText(10, 5000)), { max_tokens: 10 }, 'small')
    expect({ status, quota: row.quota }).toEqual({ status: 200, quota: 20_010 })
    expect(database.token('token-small').remain_quota).toBe(1000 - 20_010)
    const next = await fixture.chat('small', ask('m'))
    expect(next.status).toBe(401)
    expect(next.json().error.message).toMatch(/exhausted|quota/i)
  })
  test('a response updates the last access time of its token', async () => {
    await charged('m', whole(usageText(1, 1)))
    expect(Math.abs(database.token('token-ann').accessed_time - Date.now() / 1000)).toBeLessThan(120)
  })
})

describe('complete responses without usable usage', () => {
  const estimated = (row: UsageRow): void => {
    expect(row.reason).toBe('estimated')
    expect(row.input_tokens).toBeGreaterThanOrEqual(280)
    expect(row.input_tokens).toBeLessThanOrEqual(350)
    expect(row.output_tokens).toBeGreaterThanOrEqual(190)
    expect(row.output_tokens).toBeLessThanOrEqual(230)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
  }
  const USELESS: [string, string | null][] = [
    ['absent', null],
    ['null', 'null'],
    ['empty', '{}'],
    ['negative', '{"prompt_tokens":-100,"completion_tokens":50}'],
    ['a fraction', '{"prompt_tokens":100.5,"completion_tokens":50}'],
    ['text', '{"prompt_tokens":"100","completion_tokens":"50"}'],
    ['infinite', '{"prompt_tokens":1e400,"completion_tokens":50}'],
    ['2^63', '{"prompt_tokens":9223372036854775808,"completion_tokens":50}'],
    ['all zero', usageText(0, 0)],
    ['zero where there is text', usageText(100, 0)],
  ]
  test.each(USELESS)(
    'a whole response without usable usage is counted by the gateway: %s',
    async (_, usage) => {
      estimated((await charged('m', whole(usage, ANSWER), LONG)).row)
    },
  )
  test.each(USELESS)(
    'a streamed response without usable usage is counted by the gateway: %s',
    async (_, usage) => {
      estimated((await charged('m', { kind: 'stream', events: 200, word: ' banana', usage }, LONG)).row)
    },
  )
})

describe('calls without a charge', () => {
  test('nothing is charged for an error that sets the upstream key aside', async () => {
    await uncharged('refused', { kind: 'status', status: 401, body: errorBody('no') }, ask('refused'))
  })
  test.each([400, 404, 429, 500, 503, 418])(
    'nothing is charged for an error with status %i',
    async (status) => {
      await uncharged('m', { kind: 'status', status, body: errorBody('no') }, ask('m'))
    },
  )
  test('nothing is charged for a connection that breaks before the answer', () =>
    uncharged('m', { kind: 'drop' }, ask('m')))
  test('nothing is charged for invalid data in place of an answer', () =>
    uncharged('m', { kind: 'whole', body: '{"half":' }, ask('m')))
  test('nothing is charged for a stream that breaks before any content', () =>
    uncharged('m', { kind: 'stream', frames: [roleFrame()], ending: 'reset' }, askStream('m')))
  test('nothing is charged for a stream whose first event is an error', () =>
    uncharged('m', { kind: 'stream', events: 0, ending: 'error' }, askStream('m')))
  test('nothing is charged for a request that the gateway refuses', () =>
    uncharged('m', whole(null), ask('m', { n: 0 })))
})

describe('a response that breaks off after content', () => {
  test.each(['reset', 'close', 'error', 'half frame'] as const)(
    'a response that breaks off after content costs the prompt and output tokens that the gateway counts (%s)',
    async (ending) => {
      const { row, text } = await charged('m', { kind: 'stream', events: 200, word: ' banana', ending }, LONG)
      expect(text).not.toContain('[DONE]')
      expect(row.reason).toBe('cut')
      expect(row.input_tokens).toBeGreaterThanOrEqual(280)
      expect(row.input_tokens).toBeLessThanOrEqual(350)
      expect(row.output_tokens).toBeGreaterThanOrEqual(190)
      expect(row.output_tokens).toBeLessThanOrEqual(230)
      expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
    },
  )
  const withUsage = (usage: string): string =>
    contentFrame(ANSWER).replace(/\}\n\n$/, `,"usage":${usage}}\n\n`)
  test('a response that breaks off costs the reported input, and the reported output where it exceeds the counted one', async () => {
    const frames = [roleFrame(), withUsage(usageText(50, 500))]
    const { row } = await charged('m', { kind: 'stream', frames, ending: 'reset' }, LONG)
    expect(row).toMatchObject({ quota: 50 + 2000, reason: 'cut' })
  })
  test('a response that breaks off costs the reported input, and the counted output where it exceeds the reported one', async () => {
    const frames = [roleFrame(), withUsage(usageText(50, 3))]
    const { row } = await charged('m', { kind: 'stream', frames, ending: 'reset' }, LONG)
    expect(row.input_tokens).toBe(50)
    expect(row.output_tokens).toBeGreaterThanOrEqual(190)
    expect(row.output_tokens).toBeLessThanOrEqual(230)
  })
})

describe('a client that leaves', () => {
  const rowAfter = async (start: () => Promise<void>): Promise<UsageRow> => {
    const known = new Set(database.usage().map(({ id }) => id))
    await start()
    const fresh = (): UsageRow[] => database.usage().filter(({ id }) => !known.has(id))
    await expect.poll(() => fresh().length).toBe(1)
    await untilNoHolds()
    return fresh()[0] as UsageRow
  }

  test('a client that leaves before the first byte pays for the prompt', async () => {
    fixture.upstream.script('m', { kind: 'silence' })
    const row = await rowAfter(async () => {
      const leaving = send(fixture.gateway.url, ask('m', LONG), { key: 'ann' })
      await fixture.upstream.receivedAtLeast('m', 1)
      leaving.destroy()
    })
    expect(row.reason).toBe('client_gone')
    expect(row.quota).toBeGreaterThanOrEqual(280)
    expect(row.quota).toBeLessThanOrEqual(350)
  })

  test('a client that leaves in the middle of a stream pays for the prompt and the output generated until then', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: Infinity, word: ' banana', paceMs: 5 })
    const row = await rowAfter(async () => {
      const live = await fixture.live('ann', askStream('m', LONG))
      // What the client has received, the gateway has counted.
      await expect
        .poll(() => streamedContent(live.text()).length)
        .toBeGreaterThanOrEqual(20 * ' banana'.length)
      live.abort()
    })
    const { eventsSent } = fixture.upstream.only('m')
    expect(row.reason).toBe('client_gone')
    expect(row.input_tokens).toBeGreaterThanOrEqual(280)
    expect(row.output_tokens).toBeGreaterThanOrEqual(10)
    expect(row.output_tokens).toBeLessThanOrEqual(eventsSent + 30)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
  })

  test.each(['whole', 'stream'] as const)(
    'a client that leaves pays exactly the reported usage if the channel has on_client_gone: drain (%s)',
    async (kind) => {
      let release: (value?: unknown) => void = () => {}
      const after = new Promise((resolve) => (release = resolve))
      fixture.upstream.script('drained', { kind, usage: usageText(100, 50), after })
      const row = await rowAfter(async () => {
        const leaving = send(fixture.gateway.url, ask('drained', { stream: kind === 'stream' }), {
          key: 'ann',
        })
        await fixture.upstream.receivedAtLeast('drained', 1)
        leaving.destroy()
        // The gateway must notice this before the response arrives.
        await untilOver(fixture.gateway.url, 0)
        release()
      })
      expect(row).toMatchObject({ quota: 300, reason: 'client_gone' })
    },
  )
})

test('a call that is tried on several channels is charged only for the delivered attempt', async () => {
  fixture.upstream.script('retried', { kind: 'status', status: 503, body: errorBody('no') })
  fixture.upstream.script('second', whole(usageText(100, 50)))
  const rows = database.usage().length
  const answer = await fixture.chat('ann', ask('retried'))
  expect(answer.status).toBe(200)
  expect(database.usageOf(String(answer.headers['x-request-id']))?.quota).toBe(300)
  expect(database.usage()).toHaveLength(rows + 1)
})

test('after all charges the balance, the sums and the usage log of every account agree', async () => {
  await untilNoHolds()
  const ann = database.user('ann')
  const rows = database.usage().filter((row) => row.user_id === ann.id)
  const sum = (each: UsageRow[]): number => each.reduce((total, row) => total + row.quota, 0)
  expect(ann.used_quota).toBe(sum(rows))
  for (const each of database.tokens().filter((token) => token.user_id === ann.id))
    expect(each.used_quota).toBe(sum(rows.filter((row) => row.token_id === each.id)))
})
