import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type Behaviour, completionText, usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { messageFrames } from '../fixtures/messages-behaviour.ts'

const BETA = 'cache-diagnosis-2026-04-07'
const LANES = ['messages', 'responses', 'silent', 'first', 'second'] as const
type Lane = (typeof LANES)[number]
const PROTOCOLS: Readonly<Record<Lane, 'messages' | 'responses'>> = {
  messages: 'messages',
  responses: 'responses',
  silent: 'messages',
  first: 'messages',
  second: 'messages',
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { keep_responses: '1h' },
    models: priced(['messages', 'responses', 'silent', 'two', 'chat']),
    channels: [
      ...LANES.map((lane, index) =>
        channel(lane, upstream.baseUrl(lane), {
          protocol: PROTOCOLS[lane],
          models: [lane === 'first' || lane === 'second' ? 'two' : lane],
          priority: -index,
          cache_diagnostics: lane !== 'silent',
        }),
      ),
      channel('chat', upstream.baseUrl('chat')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
  }))
})
afterAll(() => fixture?.close())

/** A whole answer with this id and verdict. */
function answer(lane: Lane, id: string, verdict: object | null = null, read = 4_000): Behaviour {
  const fields =
    PROTOCOLS[lane] === 'messages'
      ? {
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [{ type: 'text', text: 'Hello' }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          usage: { input_tokens: 100, cache_read_input_tokens: read, output_tokens: 5 },
          diagnostics: verdict,
        }
      : {
          object: 'response',
          created_at: 1,
          status: 'completed',
          model: 'm',
          output: [],
          usage: {
            input_tokens: 4_100,
            input_tokens_details: { cached_tokens: read },
            output_tokens: 5,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: 4_105,
          },
          ...(verdict && { prompt_cache_diagnostics: verdict }),
        }
  return { kind: 'whole', body: JSON.stringify({ id, ...fields }) }
}

beforeEach(() => {
  for (const lane of LANES) fixture.upstream.script(lane, answer(lane, `${lane}-answer`))
})

interface Row {
  readonly cache_verdict: string
  readonly cache_break: string
}

/** Makes a call; `lane` is also the model. */
async function ask(
  model: string,
  session: string,
  { more = {}, headers = {} }: { readonly more?: object; readonly headers?: Record<string, string> } = {},
): Promise<Row> {
  const isMessages = model !== 'responses'
  const body = isMessages
    ? { model, max_tokens: 50, messages: [{ role: 'user', content: 'hello' }], ...more }
    : { model, store: false, input: 'hello', ...more }
  const got = await call(fixture.gateway.url, body, {
    key: 'ann',
    path: isMessages ? '/v1/messages' : '/v1/responses',
    headers: { 'x-session-id': session, ...headers },
  })
  expect(got.status, got.text).toBe(200)
  const row = await rowOf(got)
  if (!row) throw new Error('the call has no row')
  return row
}

async function rowOf({ headers }: FullResponse): Promise<Row | undefined> {
  const path = `GET /api/log/?request_id=${String(headers['x-request-id'])}` as const
  const { data } = await manage<{ items: Row[] }>(fixture.gateway.url, ADMIN, path)
  return data.items[0]
}

const sent = (lane: Lane): Record<string, unknown> =>
  JSON.parse(fixture.upstream.received(lane).at(-1)?.text ?? '')
const betaSent = (lane: Lane): unknown => fixture.upstream.received(lane).at(-1)?.headers['anthropic-beta']

let sessions = 0
const newSession = (): string => `diagnosed-${++sessions}`

describe('what a provider of messages is asked', () => {
  test('with the channel option cache_diagnostics, each messages request of a session names the id of the previous answer', async () => {
    const session = newSession()
    for (const [id, previous] of [
      ['msg_1', null],
      ['msg_2', 'msg_1'],
      ['msg_3', 'msg_2'],
    ] as const) {
      fixture.upstream.script('messages', answer('messages', id))
      await ask('messages', session)
      expect(sent('messages')['diagnostics']).toEqual({ previous_message_id: previous })
      expect(betaSent('messages')).toBe(BETA)
    }
  })

  test("the channel option cache_diagnostics changes no other byte of a request, and keeps the client's beta features", async () => {
    const session = newSession()
    await ask('silent', session, { headers: { 'anthropic-beta': 'context-1m-2025-08-07' } })
    await ask('messages', session, { headers: { 'anthropic-beta': 'context-1m-2025-08-07' } })
    const [plain, asking] = (['silent', 'messages'] as const).map(
      (lane) => fixture.upstream.received(lane).at(-1)?.text ?? '',
    )
    expect(
      asking?.replace(/,"diagnostics":\{[^}]*\}/, '').replace('"model":"messages"', '"model":"silent"'),
    ).toBe(plain)
    expect(betaSent('messages')).toBe(`context-1m-2025-08-07,${BETA}`)
    expect(betaSent('silent')).toBe('context-1m-2025-08-07')
  })

  test("a messages client's own request for cache diagnostics is forwarded unchanged", async () => {
    const session = newSession()
    await ask('messages', session)
    const diagnostics = { previous_message_id: 'msg_of_the_client' }
    await ask('messages', session, { more: { diagnostics } })
    expect(sent('messages')['diagnostics']).toEqual(diagnostics)
  })

  test('a request for cache diagnostics does not name an answer of another channel', async () => {
    const session = newSession()
    await ask('two', session)
    expect(sent('first')['diagnostics']).toEqual({ previous_message_id: null })
    fixture.upstream.script('first', { kind: 'status', status: 503, body: '{}' })
    await ask('two', session)
    expect(sent('second')['diagnostics']).toEqual({ previous_message_id: null })
  })

  test('an invalid answer id, such as one with quotes, is not sent in a request for cache diagnostics', async () => {
    const session = newSession()
    for (const id of ['msg "1"', 'm'.repeat(201), '']) {
      fixture.upstream.script('messages', answer('messages', id))
      await ask('messages', session)
      await ask('messages', session)
      expect(sent('messages')['diagnostics']).toEqual({ previous_message_id: null })
    }
  })

  test('a channel without cache_diagnostics gets no request for them, and its usage rows have no verdict', async () => {
    const session = newSession()
    const verdict = { cache_miss_reason: { type: 'tools_changed' } }
    fixture.upstream.script('silent', answer('silent', 'msg_1', verdict))
    await ask('silent', session)
    expect((await ask('silent', session)).cache_verdict).toBe('')
    expect(sent('silent')).not.toHaveProperty('diagnostics')
    expect(betaSent('silent')).toBeUndefined()
  })
})

describe('what a provider of responses is asked', () => {
  test('from the second request of a session on, a provider of responses is asked to compare it with the previous answer', async () => {
    const session = newSession()
    fixture.upstream.script('responses', answer('responses', 'resp_1'), answer('responses', 'resp_2'))
    await ask('responses', session)
    expect(sent('responses')).not.toHaveProperty('prompt_cache_options')
    await ask('responses', session, { more: { prompt_cache_options: { ttl: '30m' } } })
    expect(sent('responses')['prompt_cache_options']).toEqual({
      ttl: '30m',
      comparison_response_id: 'resp_1',
    })
    await ask('responses', session)
    expect(sent('responses')['prompt_cache_options']).toEqual({ comparison_response_id: 'resp_2' })
  })

  test("a responses client's own request for cache diagnostics is forwarded unchanged", async () => {
    const session = newSession()
    await ask('responses', session)
    const prompt_cache_options = { comparison_response_id: 'resp_of_the_client' }
    await ask('responses', session, { more: { prompt_cache_options } })
    expect(sent('responses')['prompt_cache_options']).toEqual(prompt_cache_options)
  })
})

describe('the verdict of a provider', () => {
  test.each(['messages', 'responses'] as const)(
    'the cache verdict of a %s provider is in the usage row unchanged, and left out if it has more than 2,048 characters',
    async (lane) => {
      const session = newSession()
      // `{"why":""}` has ten characters.
      for (const [length, isKept] of [
        [2_038, true],
        [2_039, false],
      ] as const) {
        const verdict = { why: 'w'.repeat(length) }
        fixture.upstream.script(lane, answer(lane, 'answer', verdict))
        const row = await ask(lane, session)
        expect(row.cache_verdict).toBe(isKept ? JSON.stringify(verdict) : '')
      }
    },
  )

  test('the cache verdict in a usage row is empty where the provider gives none', async () => {
    const session = newSession()
    expect((await ask('messages', session)).cache_verdict).toBe('')
    expect((await ask('responses', session)).cache_verdict).toBe('')
  })
})

test('a cache break of a call with previous_response_id has the reason tools_changed or provider, never messages_changed', async () => {
  const headers = { 'x-session-id': newSession() }
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' }, strict: false }]
  const turn = async (previous: string | undefined, read: number, more: object = {}) => {
    fixture.upstream.script('chat', { kind: 'whole', usage: usageText(4_100, 5, read) })
    const body = {
      model: 'chat',
      input: 'hello',
      ...more,
      ...(previous && { previous_response_id: previous }),
    }
    const got = await call(fixture.gateway.url, body, { key: 'ann', path: '/v1/responses', headers })
    expect(got.status, got.text).toBe(200)
    return { id: (JSON.parse(got.text) as { id: string }).id, reason: (await rowOf(got))?.cache_break }
  }
  const first = await turn(undefined, 4_000)
  const second = await turn(first.id, 4_000)
  expect(second.reason).toBe('')
  expect(await turn(second.id, 0, { tools })).toMatchObject({ reason: 'tools_changed' })
  expect((await turn(second.id, 4_000, { tools })).reason).toBe('')
  expect((await turn(second.id, 0, { tools })).reason).toBe('provider')
})

describe('an answer that is not compared', () => {
  /** Reads 4,000 tokens, gets that answer, and then reads none. Returns the reasons in the rows of the last two. */
  async function reasonsAfter(uncertain: Behaviour, { stream = false } = {}): Promise<string[]> {
    const session = newSession()
    const model = stream ? 'silent' : 'chat'
    const [read, none] = stream
      ? [answer('silent', 'a'), answer('silent', 'b', null, 0)]
      : [4_000, 0].map((tokens): Behaviour => ({ kind: 'whole', usage: usageText(4_100, 5, tokens) }))
    fixture.upstream.script(model, read as Behaviour, uncertain, none as Behaviour)
    const reasons: string[] = []
    for (const more of [{}, { stream }, {}]) {
      const body = { model, max_tokens: 50, messages: [{ role: 'user', content: 'hello' }], ...more }
      const path = stream ? '/v1/messages' : '/v1/chat/completions'
      const headers = { 'x-session-id': session }
      const got = await call(fixture.gateway.url, body, { key: 'ann', path, headers })
      reasons.push((await rowOf(got))?.cache_break ?? 'no row')
    }
    return reasons.slice(1)
  }

  test.each<[string, Behaviour]>([
    ['without a usage', { kind: 'whole', body: completionText('said', null) }],
    ['whose usage does not have the prompt', { kind: 'whole', usage: '{"completion_tokens":5}' }],
  ])(
    'cache diagnostics do not compare a call with an answer %s, but with the answer before that one',
    async (_, uncertain) => {
      expect(await reasonsAfter(uncertain)).toEqual(['', 'provider'])
    },
  )

  test('cache diagnostics compare a call with the previous complete answer, not with one that broke off', async () => {
    const counts = { input_tokens: 4_100, output_tokens: 5, cache_read_input_tokens: 0 }
    const frames = messageFrames([{ text: 'Hello' }], { counts }).slice(0, 4)
    const cut = { kind: 'stream', ending: 'reset', frames } as const
    expect(await reasonsAfter(cut, { stream: true })).toEqual(['', 'provider'])
  })
})
