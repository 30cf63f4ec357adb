import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse } from '../fixtures/responses-behaviour.ts'
import {
  eventually,
  isEnd,
  maskedFrame,
  openSocket,
  rawWrite,
  type SocketClient,
  type SocketEvent,
  textOf,
} from '../fixtures/web-socket-client.ts'

const PROTOCOLS = ['responses', 'chat', 'messages'] as const
/** How a key ends, the path that ends it, and the body. */
const ENDING = [
  ['deleted', (id: number) => `DELETE /api/token/${id}` as const, () => undefined],
  ['disabled', () => 'PUT /api/token/?status_only=1' as const, (id: number) => ({ id, status: 2 })],
  ['expired', () => 'PUT /api/token/' as const, (id: number) => ({ id, expired_time: 1_000_000_000 })],
] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, body_limit: '64KiB', keep_responses: '1h' },
    models: priced([...PROTOCOLS, 'slow']),
    channels: [
      ...PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
      channel('slow', upstream.baseUrl('slow'), { protocol: 'chat' }),
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('ann'),
          ...ENDING.map(([name]) => token(name)),
          token('poor', { unlimited_quota: false, remain_quota: 1_000_000 }),
          token('one', { rate_limit: { requests: 1, window: '1h' } }),
          token('alone', { rate_limit: { parallel: 1 } }),
        ],
        { access_token: 'ann-access-token' },
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

const answer: Record<(typeof PROTOCOLS)[number], (text: string) => Behaviour> = {
  responses: (text) => streamedResponse({ text }),
  chat: (text) => streamedChat({ text }),
  messages: (text) => streamedMessage([{ text }]),
}

const open = (key = 'ann'): Promise<SocketClient> => openSocket(fixture.gateway.url, key)

/** The id of the answer at the end of a turn. */
function idOf(events: readonly SocketEvent[]): string {
  const response = events.at(-1)?.['response'] as { id: string } | undefined
  return response?.id ?? ''
}

/** A stream that stays open until `end`. */
function held(): { readonly behaviour: Behaviour; end(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { behaviour: { kind: 'stream', endsAfter: promise }, end: resolve }
}

const begun = (client: SocketClient): Promise<SocketEvent> =>
  client.next(({ type }) => type === 'response.output_text.delta')

describe.each(PROTOCOLS)('state on a socket, for a channel of %s', (protocol) => {
  test('a turn goes on from the last answer of the socket, although nothing is stored', async () => {
    fixture.upstream.script(protocol, answer[protocol]('first answer'), answer[protocol]('second answer'))
    const client = await open()
    const first = await client.turn({ model: protocol, input: 'first question', store: false })
    const second = await client.turn({
      model: protocol,
      input: [{ role: 'user', content: 'second question' }],
      store: false,
      previous_response_id: idOf(first),
    })
    expect(textOf(second)).toBe('second answer')
    const sent = fixture.upstream.received(protocol)[1]?.text ?? ''
    const places = ['first question', 'first answer', 'second question'].map((text) => sent.indexOf(text))
    expect(places.every((place) => place > 0)).toBe(true)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(sent).not.toContain('previous_response_id')
    client.socket.close(1000)
  })

  test('a frame that generates nothing gets an answer without output, costs nothing, and the next turn carries its items and instructions', async () => {
    fixture.upstream.script(protocol, answer[protocol]('answer'))
    const client = await open()
    const prepared = await client.turn({
      model: protocol,
      instructions: 'Be brief.',
      input: 'context',
      generate: false,
      store: false,
    })
    expect(prepared.map(({ type }) => type)).toEqual(['response.created', 'response.completed'])
    expect(prepared[1]).toMatchObject({ response: { output: [], usage: { total_tokens: 0 } } })
    expect(fixture.upstream.received(protocol)).toHaveLength(0)
    await client.turn({
      model: protocol,
      input: 'question',
      store: false,
      previous_response_id: idOf(prepared),
    })
    const sent = fixture.upstream.only(protocol).text
    for (const text of ['Be brief.', 'context', 'question']) expect(sent).toContain(text)
    await eventually(() => expect(row(client, 2)).toBeDefined())
    expect(row(client, 1)).toBeUndefined()
    client.socket.close(1000)
  })
})

const row = (client: SocketClient, number: number) =>
  databaseOf(fixture.gateway.dataDir).usageOf(`${client.id}.${number}`)

describe('state on a socket', () => {
  test('a frame that generates nothing is checked as a turn: its model and its body', async () => {
    const client = await open()
    const [unknown] = await client.turn({ model: 'none', input: 'x', generate: false })
    expect(unknown).toMatchObject({ type: 'error', status: 503, error: { code: 'model_not_found' } })
    const [wrong] = await client.turn({ model: 'chat', input: 5, generate: false })
    expect(wrong).toMatchObject({ type: 'error', status: 400, error: { code: 'invalid_request' } })
    // Codex prepares its first turn without an input.
    expect(await client.turn({ model: 'chat', input: [], generate: false })).toHaveLength(2)
    client.socket.close(1000)
  })

  test('a frame that generates nothing counts in no limit', async () => {
    fixture.upstream.script('chat', answer.chat('the only one'))
    const client = await open('one')
    const prepared = await client.turn({ model: 'chat', input: 'context', generate: false })
    const next = { model: 'chat', input: 'q', previous_response_id: idOf(prepared) }
    expect(textOf(await client.turn(next))).toBe('the only one')
    expect((await client.turn({ model: 'chat', input: 'q' })).at(-1)).toMatchObject({ status: 429 })
    client.socket.close(1000)
  })

  test('a stored answer goes on on any socket of its user, and from either transport to the other', async () => {
    fixture.upstream.script('chat', answer.chat('an answer'))
    const client = await open()
    const first = await client.turn({ model: 'chat', input: 'first question', store: true })
    const other = await open()
    const second = await other.turn({
      model: 'chat',
      input: 'second question',
      store: true,
      previous_response_id: idOf(first),
    })
    const posted = await call(
      fixture.gateway.url,
      {
        model: 'chat',
        input: 'third question',
        store: true,
        previous_response_id: idOf(second),
        stream: true,
      },
      { key: 'ann', path: '/v1/responses' },
    )
    const third = /"id":"(resp_[^"]+)"/.exec(posted.text)?.[1]
    await client.turn({ model: 'chat', input: 'fourth question', previous_response_id: third })
    const sent = fixture.upstream.received('chat')[3]?.text ?? ''
    for (const number of ['first', 'second', 'third', 'fourth']) expect(sent).toContain(`${number} question`)
    client.socket.close(1000)
    other.socket.close(1000)
  })

  test('the whole conversation is the prompt of a turn, which is held and charged', async () => {
    fixture.upstream.script('chat', streamedChat({ text: 'short', usage: 'null' }))
    const client = await open()
    const first = await client.turn({ model: 'chat', input: 'long '.repeat(2_000), store: false })
    await client.turn({ model: 'chat', input: 'short', store: false, previous_response_id: idOf(first) })
    const tokens = (turn: number): number => Number(row(client, turn)?.input_tokens)
    await eventually(() => expect(tokens(2)).toBeGreaterThan(tokens(1)))
    client.socket.close(1000)
  })

  test('an answer of one lane can be continued on another, and not on another socket', async () => {
    fixture.upstream.script('chat', answer.chat('first answer'))
    const client = await open()
    const first = await client.turn({ model: 'chat', input: 'q', stream_id: 'a', store: false })
    expect(first.every(({ stream_id: lane }) => lane === 'a')).toBe(true)
    const fork = { model: 'chat', input: 'fork', store: false, previous_response_id: idOf(first) }
    expect(textOf(await client.turn({ ...fork, stream_id: 'b' }))).toBe('first answer')
    const other = await open()
    expect((await other.turn(fork))[0]).toMatchObject({
      status: 400,
      error: { code: 'previous_response_not_found' },
    })
    client.socket.close(1000)
    other.socket.close(1000)
  })

  test('a turn that was refused changes nothing: the answer before it can still be continued', async () => {
    fixture.upstream.script('chat', answer.chat('first answer'))
    const client = await open()
    const first = await client.turn({ model: 'chat', input: 'q', store: false })
    await client.turn({ model: 'none', input: 'q' })
    const next = { model: 'chat', input: 'more', store: false, previous_response_id: idOf(first) }
    expect(textOf(await client.turn(next))).toBe('first answer')
    client.socket.close(1000)
  })
})

describe('lanes', () => {
  test('turns of one lane run one after the other, and those of several lanes side by side', async () => {
    const first = held()
    fixture.upstream.script('slow', first.behaviour)
    fixture.upstream.script('chat', answer.chat('quick'))
    const client = await open()
    client.send({ type: 'response.create', model: 'slow', input: 'x', stream_id: 'a' })
    await begun(client)
    client.send({ type: 'response.create', model: 'chat', input: 'waits', stream_id: 'a' })
    const events = await client.turn({ model: 'chat', input: 'at once', stream_id: 'b' })
    expect(textOf(events.filter((event) => event['stream_id'] === 'b'))).toBe('quick')
    expect(fixture.upstream.received('chat').map(({ text }) => text.includes('waits'))).toEqual([false])
    first.end()
    await client.next((event) => isEnd(event) && event['stream_id'] === 'a')
    await client.next((event) => isEnd(event) && event['stream_id'] === 'a')
    expect(fixture.upstream.received('chat').map(({ text }) => text.includes('waits'))).toEqual([false, true])
    client.socket.close(1000)
  })

  test('a turn that waits in its lane holds nothing, and no limit counts it', async () => {
    const first = held()
    fixture.upstream.script('slow', first.behaviour)
    fixture.upstream.script('chat', answer.chat('after it'))
    // The key may have one call at a time.
    const client = await open('alone')
    client.send({ type: 'response.create', model: 'slow', input: 'x' })
    await begun(client)
    client.send({ type: 'response.create', model: 'chat', input: 'waits' })
    const beside = await client.turn({ model: 'chat', input: 'x', stream_id: 'beside' })
    expect(beside.at(-1)).toMatchObject({ status: 429, stream_id: 'beside' })
    const holds = databaseOf(fixture.gateway.dataDir)
      .openHolds()
      .filter(({ id }) => id.startsWith(client.id))
    expect(holds.map(({ id }) => id)).toEqual([`${client.id}.1`])
    first.end()
    await client.next((event) => isEnd(event) && !('stream_id' in event))
    expect(await client.next(isEnd)).toMatchObject({ type: 'response.completed' })
    client.socket.close(1000)
  })

  test('the name of a lane that is none is refused without a name', async () => {
    const client = await open()
    for (const lane of ['', 'a b', 'x'.repeat(257), 5]) {
      client.send({ type: 'response.create', model: 'chat', input: 'x', stream_id: lane })
      const event = await client.next(isEnd)
      expect(event).toMatchObject({ status: 400, error: { code: 'invalid_stream_id' } })
      expect(event).not.toHaveProperty('stream_id')
    }
    client.socket.close(1000)
  })

  test('a socket has 32 names of lanes in its life, and goes on with those', async () => {
    fixture.upstream.script('chat', answer.chat('ok'))
    const client = await open()
    for (let lane = 1; lane <= 32; lane++)
      await client.turn({ model: 'chat', input: 'x', generate: false, stream_id: `lane-${lane}` })
    const [refused] = await client.turn({ model: 'chat', input: 'x', stream_id: 'lane-33' })
    expect(refused).toMatchObject({
      status: 400,
      error: { code: 'websocket_stream_limit_reached' },
      stream_id: 'lane-33',
    })
    expect(textOf(await client.turn({ model: 'chat', input: 'x', stream_id: 'lane-1' }))).toBe('ok')
    expect(textOf(await client.turn({ model: 'chat', input: 'x' }))).toBe('ok')
    client.socket.close(1000)
  })

  test('frames that are ignored or refused use no name of a lane', async () => {
    fixture.upstream.script('chat', answer.chat('ok'))
    const client = await open()
    const frames = [
      ['ignored', { type: 'response.processed', response_id: 'resp_1' }],
      ['unknown', { type: 'response.cancel' }],
      ['steer', { type: 'response.steer', previous_response_id: 'resp_1', input: 'x' }],
      ['refused', { type: 'response.create', model: 'chat', input: 'x', background: true }],
    ] as const
    for (const [name, frame] of frames)
      for (let lane = 1; lane <= 33; lane++) client.send({ ...frame, stream_id: `${name}-${lane}` })
    for (let errors = 0; errors < 66; errors++) await client.next(isEnd)
    expect(textOf(await client.turn({ model: 'chat', input: 'x', stream_id: 'served' }))).toBe('ok')
    const refused = client.events.filter(({ type }) => type === 'error' || type === 'response.steer.failed')
    expect(refused.map(({ error }) => (error as { code: string }).code)).toEqual([
      ...Array<string>(33).fill('invalid_request'),
      ...Array<string>(33).fill('invalid_input'),
      ...Array<string>(33).fill('invalid_request'),
    ])
    expect(refused.map((event) => event['stream_id'])).toEqual(
      ['unknown', 'steer', 'refused'].flatMap((name) =>
        Array.from({ length: 33 }, (_, index) => `${name}-${index + 1}`),
      ),
    )
    client.socket.close(1000)
  })

  test('sixteen turns run and 64 frames wait; one more is refused with a time to retry', async () => {
    const all = held()
    fixture.upstream.script('slow', all.behaviour)
    const client = await open()
    for (let turn = 0; turn < 80; turn++)
      client.send({ type: 'response.create', model: 'slow', input: 'x', stream_id: `lane-${turn % 20}` })
    client.send({ type: 'response.create', model: 'slow', input: 'x' })
    expect(await client.next(isEnd)).toMatchObject({
      status: 429,
      error: { code: 'websocket_queue_full' },
      headers: { 'retry-after': '1' },
    })
    await fixture.upstream.receivedAtLeast('slow', 16)
    expect(fixture.upstream.received('slow')).toHaveLength(16)
    client.socket.terminate()
    // What waited is dropped with its client, and what ran is charged like a stream that was left.
    await eventually(() => expect(reasons(client, 16)).toEqual(Array(16).fill('client_gone')))
    all.end()
    expect(row(client, 17)).toBeUndefined()
    expect(fixture.upstream.received('slow')).toHaveLength(16)
  })
})

const reasons = (client: SocketClient, turns: number): unknown[] =>
  Array.from({ length: turns }, (_, at) => row(client, at + 1)?.reason)

describe('the end of a socket', () => {
  test.each(ENDING)(
    'a key that is %s: its running turn ends, its next frame and those that wait are a 401, and the socket is closed with 1008',
    async (key, request, body) => {
      const running = held()
      fixture.upstream.script('slow', running.behaviour)
      const client = await open(key)
      client.send({ type: 'response.create', model: 'slow', input: 'x', stream_id: 'a' })
      await begun(client)
      for (const input of ['waits', 'waits, too'])
        client.send({ type: 'response.create', model: 'chat', input, stream_id: 'a' })
      const { id } = databaseOf(fixture.gateway.dataDir).token(`token-${key}`)
      const ann = { id: 2, accessToken: 'ann-access-token' }
      const ended = await manage(fixture.gateway.url, ann, request(id), body(id))
      expect(ended).toMatchObject({ status: 200 })
      client.send({ type: 'response.create', model: 'chat', input: 'x', stream_id: 'b' })
      const refused = await client.next(isEnd)
      expect(refused).toMatchObject({ status: 401, stream_id: 'b' })
      const { code } = refused['error'] as { code: string }
      for (let waiting = 0; waiting < 2; waiting++)
        expect(await client.next(isEnd)).toMatchObject({ status: 401, error: { code }, stream_id: 'a' })
      client.send({ type: 'response.create', model: 'chat', input: 'x' })
      expect(await client.next(isEnd)).toMatchObject({ status: 401, error: { code } })
      running.end()
      expect(await client.next(isEnd)).toMatchObject({ type: 'response.completed', stream_id: 'a' })
      expect(await client.closed).toBe(1008)
    },
  )

  test('a turn that is refused because the quota of its key is used up leaves the socket open', async () => {
    fixture.upstream.script('chat', answer.chat('ok'))
    const client = await open('poor')
    const { id } = databaseOf(fixture.gateway.dataDir).token('token-poor')
    const ann = { id: 2, accessToken: 'ann-access-token' }
    const setQuota = (remain_quota: number) =>
      manage(fixture.gateway.url, ann, 'PUT /api/token/', { id, remain_quota })
    expect(await setQuota(0)).toMatchObject({ status: 200 })
    const [refused] = await client.turn({ model: 'chat', input: 'x' })
    expect(refused).toMatchObject({ status: 401, error: { code: 'token_exhausted' } })
    expect(await setQuota(1_000_000)).toMatchObject({ status: 200 })
    expect(textOf(await client.turn({ model: 'chat', input: 'x' }))).toBe('ok')
    client.socket.close(1000)
  })
})

describe('bounds of a socket', () => {
  test('a message that arrives in pieces is read, with control frames between them', async () => {
    fixture.upstream.script('chat', answer.chat('whole'))
    const client = await open()
    const text = Buffer.from(JSON.stringify({ type: 'response.create', model: 'chat', input: 'x' }))
    rawWrite(client.socket, maskedFrame(0x01, text.subarray(0, 10)))
    rawWrite(client.socket, maskedFrame(0x89, Buffer.from('ping')))
    for (const byte of maskedFrame(0x80, text.subarray(10))) rawWrite(client.socket, Buffer.from([byte]))
    await client.next(isEnd)
    expect(textOf(client.events)).toBe('whole')
    client.socket.close(1000)
  })
})
