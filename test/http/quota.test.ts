import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame, usageText } from '../fixtures/behaviour.ts'
import { events } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Maximum output of each concurrent call; at four units a token it far outweighs the prompt. */
const MAXIMUM = 100_000
/** Ten holds and a margin that is less than an eleventh, if the prompt costs at most 10,000 units. */
const FOR_TEN = 10 * (4 * MAXIMUM + 10_000)
const SLICE_TOKENS = 100
const GROWING = 3000

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { hold_tokens: SLICE_TOKENS, hold_wait: 0 },
    models: priced(['m', 'o3', 'open', 'messages', 'responses', 'gemini']),
    channels: [
      channel('m', upstream.baseUrl('m'), { models: ['m', 'o3'] }),
      channel('open', upstream.baseUrl('open'), { pass_through: true }),
      ...['messages', 'responses', 'gemini'].map((protocol) =>
        channel(protocol, upstream.baseUrl(protocol), { protocol }),
      ),
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('whole', { remain_quota: FOR_TEN }),
        token('stream', { remain_quota: FOR_TEN }),
        token('growing', { remain_quota: GROWING }),
        token('poor', { remain_quota: 10 }),
        token('rich', { remain_quota: 100_000 }),
        token('watched'),
      ]),
      user(3, 'beggar', [token('bybeggar'), token('promised', { remain_quota: 1_000_000 })], { quota: 100 }),
      user(4, 'team', [token('one'), token('two'), token('three')], { quota: FOR_TEN }),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

describe('concurrent calls on a quota for 10', () => {
  async function crowd(keys: string[], stream: boolean): Promise<void> {
    let release: (value?: unknown) => void = () => {}
    const after = new Promise((resolve) => (release = resolve))
    const usage = usageText(10, 5)
    fixture.upstream.script('m', stream ? { kind: 'stream', usage, after } : { kind: 'whole', usage, after })
    let refused = 0
    const calls = Array.from({ length: 50 }, async (_, index) => {
      const answer = await fixture.chat(
        keys[index % keys.length] ?? '',
        // A stream holds its whole maximum only if its model may think unseen.
        ask(stream ? 'o3' : 'm', { stream, max_tokens: MAXIMUM }),
      )
      if (answer.status !== 200) refused++
      return answer
    })
    await expect.poll(() => refused + fixture.upstream.received('m').length).toBe(50)
    expect(fixture.upstream.received('m')).toHaveLength(10)
    release()
    const answers = await Promise.all(calls)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(answer.status).toBe(429)
      expect(answer.json().error.code).toBe('quota_held')
    }
    expect(database.openHolds()).toHaveLength(0)
  }

  test.each([
    ['whole', false],
    ['stream', true],
  ])(
    'of 50 concurrent calls of a token with a quota for 10 calls, exactly 10 are admitted (%s)',
    async (key, stream) => {
      await crowd([key], stream)
      // Ten responses with ten prompt and five output tokens.
      expect(database.token(`token-${key}`)).toMatchObject({ used_quota: 300, remain_quota: FOR_TEN - 300 })
    },
  )
  test('of 50 concurrent calls of three API keys of a user with a quota for 10 calls, exactly 10 are admitted', async () => {
    await crowd(['one', 'two', 'three'], false)
    expect(database.user('team')).toMatchObject({ used_quota: 300, quota: FOR_TEN - 300 })
  })
  test('the unused part of held quota is released when a call ends', async () => {
    await crowd(['whole'], false)
  })
})

describe('the size of a hold', () => {
  /** The units that a refusal states as needed. */
  async function needed(fields: Record<string, unknown>): Promise<number> {
    const answer = await fixture.chat('poor', ask('m', fields))
    expect(answer.status, answer.text).toBe(403)
    return (answer.json().error as unknown as { readonly needed: number }).needed
  }
  const PROMPT_AT_MOST = 2000
  test.each([
    ['max_tokens', { max_tokens: 1000 }, 1000],
    ['max_completion_tokens', { max_completion_tokens: 1000 }, 1000],
    ['the larger of both', { max_tokens: 500, max_completion_tokens: 1000 }, 1000],
    ['options.hold_tokens where the request names no maximum', {}, SLICE_TOKENS],
    ['n times the maximum', { max_tokens: 1000, n: 5 }, 5000],
  ])('the hold is computed from %s', async (_, fields, outputTokens) => {
    const units = await needed(fields)
    expect(units).toBeGreaterThan(4 * outputTokens)
    expect(units).toBeLessThan(4 * outputTokens + PROMPT_AT_MOST)
  })
  describe('of a stream of a model of which nothing is known', () => {
    const most = 100_000
    const REQUESTS = {
      chat: { path: '/v1/chat/completions', body: ask('m', { max_tokens: most }) },
      converted: { path: '/v1/chat/completions', body: ask('messages', { max_tokens: most }) },
      open: { path: '/v1/chat/completions', body: ask('open', { max_tokens: most }) },
      messages: { path: '/v1/messages', body: ask('messages', { max_tokens: most }) },
      responses: {
        path: '/v1/responses',
        body: { model: 'responses', input: 'hi', max_output_tokens: most },
      },
      gemini: {
        path: '/v1beta/models/gemini:streamGenerateContent',
        body: { contents: [{ parts: [{ text: 'hi' }] }] },
      },
    }
    const thinkingOf = (thinkingConfig: object): object => ({
      generationConfig: { maxOutputTokens: most, thinkingConfig },
    })
    test.each<[keyof typeof REQUESTS, object, number]>([
      ['chat', {}, SLICE_TOKENS],
      ['chat', { reasoning_effort: 'high' }, most],
      ['chat', { enable_thinking: true }, most],
      ['chat', { reasoning: { max_tokens: 5_000 } }, SLICE_TOKENS + 5_000],
      ['chat', { vllm_xargs: { thinking: true } }, most],
      // Not sent but in pass-through mode.
      ['chat', { extra_body: { thinking: true } }, SLICE_TOKENS],
      ['open', { extra_body: { thinking: true } }, most],
      ['converted', { reasoning_effort: 'high' }, most],
      ['messages', { thinking: { type: 'enabled', budget_tokens: 5_000 } }, SLICE_TOKENS + 5_000],
      ['messages', { thinking: { type: 'disabled' } }, SLICE_TOKENS],
      ['messages', { nvext: { max_thinking_tokens: 5_000 } }, SLICE_TOKENS + 5_000],
      ['responses', { parameters: { reasoning: true } }, most],
      ['responses', { reasoning: { effort: 'high' } }, most],
      ['gemini', thinkingOf({ thinkingBudget: 5_000 }), SLICE_TOKENS + 5_000],
      ['gemini', thinkingOf({ thinkingLevel: 'HIGH' }), most],
      ['gemini', thinkingOf({ thinkingBudget: 0 }), SLICE_TOKENS],
    ])(
      'is for what it may think unseen if the request switches thinking on: %s %j',
      async (kind, fields, tokens) => {
        const { path, body } = REQUESTS[kind]
        const streamed = kind === 'gemini' ? {} : { stream: true }
        const { status, text } = await fixture.chat('poor', { ...body, ...fields, ...streamed }, { path })
        expect(status, text).toBe(403)
        const units = Number(/(\d+) are needed/.exec(text)?.[1])
        // On the road to messages a budget of thinking stands for the effort.
        expect(units).toBeGreaterThan(4 * (kind === 'converted' ? 2_000 : tokens))
        expect(units).toBeLessThan(4 * tokens + PROMPT_AT_MOST)
      },
    )
  })

  test('the hold of a call covers its prompt tokens', async () => {
    const units = await needed({
      max_tokens: 1,
      messages: [{ role: 'user', content: 'apple '.repeat(2000) }],
    })
    expect(units).toBeGreaterThanOrEqual(2000)
  })
})

test.each([
  ['has no limit', 'bybeggar'],
  ['could', 'promised'],
])("a call that its user's quota cannot pay is refused, though the token %s", async (_, key) => {
  fixture.upstream.script('m', { kind: 'whole' })
  const answer = await fixture.chat(key, ask('m', { max_tokens: 1000 }))
  expect(answer.status).toBe(403)
  expect(answer.json().error).toMatchObject({ type: 'permission_error', code: 'insufficient_quota' })
  expect(answer.json().error.message).toContain('100')
  expect(fixture.upstream.received('m')).toHaveLength(0)
})

describe('the hold of a stream that reaches its maximum', () => {
  const MAX_TOKENS = 150
  // A conversation whose tokens no earlier call has reported.
  const messages = [{ role: 'user', content: 'how long will it be?' }]
  const fields = { stream: true, max_tokens: MAX_TOKENS, messages }
  /** Whether what a key holds fits, once all content events of its stream were read. */
  async function holdsAfter(word: string, events: number, fits: (held: number) => void): Promise<void> {
    const read = Promise.withResolvers<void>()
    fixture.upstream.script('m', {
      kind: 'stream',
      frames: [...Array.from({ length: events }, () => contentFrame(word)), contentFrame(' the end')],
      rest: { after: read.promise, frames: [finishFrame(), DONE_FRAME] },
    })
    const live = await fixture.live('watched', ask('m', fields))
    await live.until(' the end')
    await vi.waitFor(
      async () => {
        const { text } = await fixture.chat('watched', '', { path: '/api/usage/token/', method: 'GET' })
        fits(JSON.parse(text).data.held_quota)
      },
      { timeout: 60_000, interval: 250 },
    )
    read.resolve()
    expect((await live.end()).broken).toBe(false)
  }
  async function heldAtFirst(): Promise<number> {
    const answer = await fixture.chat('poor', ask('m', { ...fields, max_tokens: 100 }))
    return (answer.json().error as unknown as { readonly needed: number }).needed
  }

  test.each([
    ['of one token each', ' banana', MAX_TOKENS - 3],
    ['of more bytes than three for each token', ' extraordinarily incomprehensible accountability', 25],
  ])('does not grow beyond the maximum, by words %s', async (_, word, events) => {
    // The hold at first is one step of 100 tokens.
    const whole = (await heldAtFirst()) + (MAX_TOKENS - SLICE_TOKENS) * 4
    await holdsAfter(word, events, (held) => expect(held).toBe(whole))
  })

  test('grows beyond the maximum where the upstream exceeds it', async () => {
    await holdsAfter(' banana', 2 * MAX_TOKENS, (held) =>
      expect(held).toBeGreaterThanOrEqual(2 * MAX_TOKENS * 4),
    )
  })
})

describe('an upstream that ignores the maximum', () => {
  test('a stream above its max_tokens ends with an error when the quota is used up, and overdraws it by at most one step of its hold', async () => {
    fixture.upstream.script('m', {
      kind: 'stream',
      events: Number.POSITIVE_INFINITY,
      word: ' banana',
      usage: null,
    })
    const answer = await (await fixture.live('growing', askStream('m', { max_tokens: 50 }))).end()
    expect(answer.text).not.toContain('[DONE]')
    const { error } = JSON.parse(events(answer.text).at(-1) ?? '{}')
    expect(error).toMatchObject({ code: expect.any(String), type: expect.any(String) })
    expect(error.message).toMatch(/quota/i)
    await fixture.upstream.only('m').ended
    const { used_quota: used, remain_quota: remain } = database.token('token-growing')
    expect(used + remain).toBe(GROWING)
    expect(used).toBeLessThanOrEqual(GROWING + SLICE_TOKENS * 4)
    // The call is not cut off while there is quota left for its hold to grow.
    expect(used).toBeGreaterThanOrEqual(GROWING - 2 * SLICE_TOKENS * 4)
    expect(database.usageOf(String(answer.headers['x-request-id']))?.reason).toBe('cut')
  })

  test('a stream that exceeds its hold is read to its end while there is quota left', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: 600, word: ' banana', usage: usageText(10, 600) })
    const answer = await fixture.chat('rich', askStream('m'))
    expect(answer.text).toContain('[DONE]')
    expect(database.token('token-rich').used_quota).toBe(10 + 2400)
  })
})
