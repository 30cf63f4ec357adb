import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { PROXY_PASSWORD, PROXY_USER, type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { responsesUsage } from '../fixtures/responses-behaviour.ts'
import { type SocketProvider, startSocketProvider } from '../fixtures/socket-provider.ts'
import { completed, endedEarly, started, tell } from '../fixtures/steered-answers.ts'
import { eventually, openSocket, type SocketClient, textOf } from '../fixtures/web-socket-client.ts'

let provider: SocketProvider
let proxy: ProxyServer
let gateway: RunningGateway
const clients: SocketClient[] = []
/** Enough for a short turn, and not for a steer of some thousand bytes. */
const BARELY = 2_000
beforeAll(async () => {
  provider = await startSocketProvider()
  proxy = await startHttpProxy(new Map([['far.test:80', Number(new URL(provider.baseUrl).port)]]))
  const own = { protocol: 'responses', base_url: provider.baseUrl, websocket: true }
  gateway = await startGateway({
    config: {
      options: { retries: 2 },
      models: priced(['m', 'refusing', 'posted', 'named', 'forked', 'silent', 'azure', 'several', 'proxied']),
      channels: [
        channel('m', provider.baseUrl, { ...own, headers: { 'x-team': 'red' } }),
        channel('forked', provider.baseUrl, { ...own, name: 'other' }),
        channel('silent', provider.baseUrl, { ...own, timeouts: { idle: '500ms' } }),
        channel('refusing', provider.baseUrl, own),
        channel('posted', provider.baseUrl, own),
        channel('named', provider.baseUrl, { ...own, model_mapping: { named: 'upstream-name' } }),
        channel('azure', provider.baseUrl.slice(0, -'/v1'.length), {
          protocol: 'responses',
          websocket: true,
          provider: 'azure',
        }),
        channel('proxied', 'http://far.test/v1', {
          ...own,
          base_url: 'http://far.test/v1',
          proxy: `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`,
        }),
        ...[3, 2, 1].map((priority) =>
          channel('several', provider.baseUrl, { ...own, name: `several-${priority}`, priority }),
        ),
      ],
      users: [
        ROOT,
        user(2, 'ann', [
          token('ann'),
          token('poor', { remain_quota: 1 }),
          token('barely', { remain_quota: BARELY }),
        ]),
      ],
    },
  })
})
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate()
  await provider.reset()
})
afterAll(async () => {
  await gateway?.discard()
  await provider?.close()
  await proxy?.close()
})

async function opened(key = 'ann'): Promise<SocketClient> {
  const client = await openSocket(gateway.url, key)
  clients.push(client)
  return client
}

const rowOf = (id: string) => databaseOf(gateway.dataDir).usageOf(id)
const heldIds = () =>
  databaseOf(gateway.dataDir)
    .openHolds()
    .map(({ id }) => id)
const idOf = (events: readonly { readonly type: string }[]): string =>
  (events.at(-1) as unknown as { response: { id: string } }).response.id
const said = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })

describe('a turn to a channel with websocket: true', () => {
  test('a turn that goes on from the last answer of its lane is sent over the same socket with the new items and the id of the provider', async () => {
    const client = await opened()
    const first = await client.turn({ model: 'm', input: 'one', store: false })
    expect(textOf(first)).toBe('answer 1')
    const second = await client.turn({
      model: 'm',
      input: [said('two')],
      store: false,
      previous_response_id: idOf(first),
    })
    expect(textOf(second)).toBe('answer 2')
    expect(idOf(second)).not.toBe('resp_p2')
    expect(provider.upgrades).toMatchObject([
      { authorization: 'Bearer upstream-key-of-m', 'x-team': 'red', upgrade: 'websocket' },
    ])
    expect(provider.upgrades[0]).not.toHaveProperty('sec-websocket-extensions')
    expect(provider.turns).toEqual([
      { socket: 1, frame: { type: 'response.create', model: 'm', store: false, input: 'one' } },
      {
        socket: 1,
        frame: {
          type: 'response.create',
          model: 'm',
          store: false,
          input: [said('two')],
          previous_response_id: 'resp_p1',
        },
      },
    ])
  })

  test('the whole conversation of a turn over the socket is charged by the usage that the provider reports', async () => {
    provider.answer = () => ({ id: 'resp_a', text: 'hi', usage: responsesUsage(100, 7, 70) })
    const client = await opened()
    await client.turn({ model: 'm', input: 'one' })
    await eventually(() =>
      // At one unit a token of the prompt, a quarter for cached ones, and four for those of the answer.
      expect(rowOf(`${client.id}.1`)).toMatchObject({
        quota: Math.ceil(30 + 70 / 4 + 28),
        reason: 'complete',
      }),
    )
  })

  test('an answer of any size over the socket reaches the client to its last byte', async () => {
    const text = 'word '.repeat(20_000)
    provider.answer = () => ({ id: 'resp_l', text })
    const events = await (await opened()).turn({ model: 'm', input: 'one' })
    expect(textOf(events)).toBe(text)
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { output: [{ content: [{ text }] }] },
    })
  })

  test('POST to the same channel stays HTTP', async () => {
    const answer = await call(
      gateway.url,
      { model: 'm', input: 'one', stream: true },
      { key: 'ann', path: '/v1/responses' },
    )
    expect(answer.status).toBe(200)
    expect(provider.upgrades).toEqual([])
    expect(provider.turns).toMatchObject([{ socket: 0 }])
  })

  test('a turn that goes on from an earlier answer is sent with its whole conversation and without an id', async () => {
    const client = await opened()
    const first = await client.turn({ model: 'm', input: 'one', stream_id: 'a' })
    await client.turn({ model: 'm', input: 'two', stream_id: 'b', previous_response_id: idOf(first) })
    expect(provider.turns.map(({ socket }) => socket)).toEqual([1, 2])
    expect(provider.turns[1]?.frame).not.toHaveProperty('previous_response_id')
    expect(provider.turns[1]?.frame['input']).toMatchObject([
      said('one'),
      { type: 'message', role: 'assistant' },
      said('two'),
    ])
  })

  test('a lane that moves to another channel closes its socket and sends the whole conversation', async () => {
    const client = await opened()
    const first = await client.turn({ model: 'm', input: 'one' })
    await client.turn({ model: 'forked', input: 'two', previous_response_id: idOf(first) })
    expect(provider.turns[1]).toMatchObject({ socket: 2, frame: { input: [{}, {}, {}] } })
    await eventually(() => expect(provider.open.size).toBe(1))
  })

  test('the sockets of providers end with that of the client', async () => {
    const client = await opened()
    await client.turn({ model: 'm', input: 'one', stream_id: 'a' })
    await client.turn({ model: 'm', input: 'one', stream_id: 'b' })
    expect(provider.open.size).toBe(2)
    client.socket.close(1000)
    await eventually(() => expect(provider.open.size).toBe(0))
  })

  test('the socket of a provider ends with that of the client after a turn of its lane that was sent by HTTP', async () => {
    provider.upgradeStatus = 404
    const client = await opened()
    await client.turn({ model: 'posted', input: 'one' })
    provider.upgradeStatus = 101
    await client.turn({ model: 'm', input: 'one' })
    expect(provider.open.size).toBe(1)
    client.socket.close(1000)
    await eventually(() => expect(provider.open.size).toBe(0))
  })

  test('a turn over a socket names the model as the channel maps it', async () => {
    const client = await opened()
    await client.turn({ model: 'named', input: 'one' })
    expect(provider.turns[0]?.frame['model']).toBe('upstream-name')
  })

  test('a turn to a channel of Azure is sent over a WebSocket with its path and its header for keys', async () => {
    const client = await opened()
    expect(textOf(await client.turn({ model: 'azure', input: 'one' }))).toBe('answer 1')
    expect(provider.upgrades).toMatchObject([
      { path: '/openai/v1/responses', 'api-key': 'upstream-key-of-azure' },
    ])
    expect(provider.upgrades[0]).not.toHaveProperty('authorization')
    expect(provider.turns).toMatchObject([{ socket: 1, frame: { model: 'azure' } }])
  })

  test('the socket of a channel with a proxy goes through it', async () => {
    const client = await opened()
    expect(textOf(await client.turn({ model: 'proxied', input: 'one' }))).toBe('answer 1')
    expect(provider.turns).toMatchObject([{ socket: 1 }])
    expect(proxy.tunnels).toEqual(['far.test:80'])
  })

  test('a turn that cannot be paid reaches no provider', async () => {
    const client = await opened('poor')
    const events = await client.turn({ model: 'm', input: 'one' })
    expect(events).toMatchObject([{ type: 'error', error: { code: 'insufficient_quota' } }])
    expect(provider.upgrades).toEqual([])
  })
})

describe('a provider that does not upgrade', () => {
  test.each([401, 403, 429])('a %i of the upgrade is what it is by HTTP', async (status) => {
    provider.upgradeStatus = status
    const client = await opened()
    const events = await client.turn({ model: 'named', input: 'one' })
    expect(events.at(-1)).toMatchObject({ type: 'error' })
    expect(provider.turns).toEqual([])
  })

  test('any other answer leads to the same turn by POST, and to no further upgrade of that channel', async () => {
    provider.upgradeStatus = 404
    const client = await opened()
    const first = await client.turn({ model: 'refusing', input: 'one' })
    expect(textOf(first)).toBe('answer 1')
    provider.upgradeStatus = 101
    await client.turn({ model: 'refusing', input: 'two', previous_response_id: idOf(first) })
    expect(provider.upgrades).toHaveLength(1)
    expect(provider.turns).toMatchObject([
      { socket: 0, frame: { model: 'refusing', stream: true } },
      { socket: 0, frame: { input: [{}, {}, {}] } },
    ])
  })
})

describe('a socket of a provider that fails', () => {
  test.each([
    ['a break', { breaks: true }],
    [
      'previous_response_not_found',
      {
        event: {
          type: 'error',
          status: 400,
          error: { code: 'previous_response_not_found', message: 'gone' },
        },
      },
    ],
    [
      'websocket_connection_limit_reached',
      {
        event: {
          type: 'error',
          status: 400,
          error: { code: 'websocket_connection_limit_reached', message: 'old' },
        },
      },
    ],
  ] as const)(
    '%s before the first event is met once with a new socket and the whole conversation, unseen',
    async (_, failure) => {
      const client = await opened()
      const first = await client.turn({ model: 'm', input: 'one' })
      provider.answer = (_turn, count) => (count === 2 ? failure : { id: 'resp_p3', text: 'after all' })
      const second = await client.turn({ model: 'm', input: 'two', previous_response_id: idOf(first) })
      expect(textOf(second)).toBe('after all')
      expect(provider.turns.map(({ socket }) => socket)).toEqual([1, 1, 2])
      expect(provider.turns[1]?.frame['previous_response_id']).toBe('resp_p1')
      expect(provider.turns[2]?.frame).not.toHaveProperty('previous_response_id')
      expect(provider.turns[2]?.frame['input']).toHaveLength(3)
      await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ reason: 'complete' }))
    },
  )

  test('a socket that breaks twice before the first event fails the attempt', async () => {
    provider.answer = () => ({ breaks: true })
    const client = await opened()
    const events = await client.turn({ model: 'm', input: 'one' })
    expect(events.at(-1)).toMatchObject({ type: 'error', status: 500, error: { code: 'upstream_error' } })
    expect(provider.turns).toHaveLength(2)
  })

  test('a break after the first event is a broken stream', async () => {
    provider.answer = () => ({ breaks: true, text: 'half' })
    const client = await opened()
    const events = await client.turn({ model: 'm', input: 'one' })
    expect(events[0]).toMatchObject({ type: 'response.created' })
    expect(events.at(-1)?.type).not.toBe('response.completed')
    expect(provider.turns).toHaveLength(1)
    await eventually(() => expect(rowOf(`${client.id}.1`)).toMatchObject({ reason: 'failed' }))
  })

  test('any other error of a provider has the consequences that its status has by HTTP', async () => {
    provider.answer = () => ({
      event: {
        type: 'error',
        status: 400,
        error: { type: 'invalid_request_error', code: 'bad', message: 'no such tool' },
      },
    })
    const client = await opened()
    const events = await client.turn({ model: 'm', input: 'one' })
    expect(events).toMatchObject([{ type: 'error', status: 400, error: { message: /no such tool/ } }])
  })

  test('an error of a provider with 503 or 429 leads to the next channel', async () => {
    const failure = (status: number) => ({
      event: { type: 'error', status, error: { code: 'busy', message: 'later' } },
    })
    provider.answer = (_, count) =>
      [failure(503), failure(429)][count - 1] ?? { id: 'resp_p3', text: 'by the last' }
    const client = await opened()
    expect(textOf(await client.turn({ model: 'several', input: 'one' }))).toBe('by the last')
    expect(provider.turns.map(({ socket }) => socket)).toEqual([1, 2, 3])
    await eventually(() => expect(rowOf(`${client.id}.1`)).toMatchObject({ reason: 'complete' }))
  })

  test('a provider that says nothing for the time-out of its channel fails', async () => {
    provider.answer = () => ({
      event: {
        type: 'response.created',
        sequence_number: 0,
        response: { id: 'resp_x', output: [], status: 'in_progress' },
      },
    })
    const client = await opened()
    const events = await client.turn({ model: 'silent', input: 'one' })
    expect(events.at(-1)?.type).not.toBe('response.completed')
    await eventually(() => expect(provider.open.size).toBe(0))
  })

  test('a message that no turn waits for closes the socket', async () => {
    const client = await opened()
    await client.turn({ model: 'm', input: 'one' })
    for (const socket of provider.open) socket.send('{"type":"response.created"}', { binary: false })
    await eventually(() => expect(provider.open.size).toBe(0))
  })
})

describe('generate: false', () => {
  test('a frame that generates nothing goes to a provider over its socket, and is charged for what it reports', async () => {
    provider.answer = (_, count) => ({ id: `resp_p${count}`, text: '', usage: responsesUsage(100, 0, 0) })
    const client = await opened()
    const first = await client.turn({ model: 'm', instructions: 'Be kind.', input: 'one', generate: false })
    expect(provider.turns).toEqual([
      {
        socket: 1,
        frame: {
          type: 'response.create',
          model: 'm',
          instructions: 'Be kind.',
          input: 'one',
          generate: false,
        },
      },
    ])
    await eventually(() => expect(rowOf(`${client.id}.1`)).toMatchObject({ quota: 100 }))
    const line = `"id":"${client.id}.1"`
    await eventually(() => expect(gateway.logs()).toContain(line))
    expect(gateway.logs().split(line)).toHaveLength(2)
    await client.turn({ model: 'm', input: 'two', previous_response_id: idOf(first) })
    expect(provider.turns[1]?.frame).toMatchObject({
      instructions: 'Be kind.',
      previous_response_id: 'resp_p1',
    })
    expect(provider.turns[1]?.frame['input']).toHaveLength(1)
  })

  test('a frame that generates nothing and offers tools of the gateway is answered by the gateway', async () => {
    const client = await opened()
    const tools = [{ type: 'mcp', server_label: 'tools', server_url: '/mcp' }]
    const events = await client.turn({ model: 'm', input: 'one', generate: false, tools })
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.completed'])
    expect(provider.turns).toEqual([])
  })

  test('a frame that generates nothing is answered by the gateway where the provider refuses the upgrade', async () => {
    provider.upgradeStatus = 404
    const client = await opened()
    const events = await client.turn({ model: 'refusing', input: 'one', generate: false })
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.completed'])
    expect(provider.turns).toEqual([])
  })
})

describe('steering', () => {
  /** A client whose turn is running, and the id of its answer. */
  async function running(key = 'ann'): Promise<{ client: SocketClient; id: string }> {
    provider.answer = (_, count) => (count === 1 ? { event: started('resp_p1') } : { silent: true })
    const client = await opened(key)
    client.send({ type: 'response.create', model: 'm', input: 'one', max_output_tokens: 16 })
    const { response } = await client.next(({ type }) => type === 'response.created')
    return { client, id: (response as { id: string }).id }
  }

  test('a steer passes to the provider, and the answer that follows is a call with a row of its own', async () => {
    const { client, id } = await running()
    client.send({ type: 'response.steer', previous_response_id: id, input: 'rather two' })
    await eventually(() => expect(provider.turns).toHaveLength(2))
    expect(provider.turns[1]?.frame).toEqual({
      type: 'response.steer',
      previous_response_id: 'resp_p1',
      input: [said('rather two')],
    })
    await eventually(() => expect(heldIds()).toContain(`${client.id}.2`))
    tell(
      provider,
      { type: 'response.steer.accepted', previous_response_id: 'resp_p1' },
      endedEarly('resp_p1'),
    )
    expect(await client.next(({ type }) => type === 'response.steer.accepted')).toEqual({
      type: 'response.steer.accepted',
      previous_response_id: id,
    })
    await client.next(({ type }) => type === 'response.incomplete')
    tell(provider, started('resp_p2'), completed('resp_p2'))
    const last = await client.next(({ type }) => type === 'response.completed')
    await eventually(() => {
      expect(rowOf(`${client.id}.1`)).toMatchObject({ quota: 10 + 5 * 4 })
      expect(rowOf(`${client.id}.2`)).toMatchObject({ quota: 20 + 3 * 4, reason: 'complete' })
    })
    expect(JSON.stringify(client.events)).not.toContain('resp_p')
    provider.answer = () => ({ id: 'resp_p3', text: 'so be it' })
    await client.turn({
      model: 'm',
      input: 'three',
      previous_response_id: (last['response'] as { id: string }).id,
    })
    expect(provider.turns[2]?.frame).toMatchObject({
      previous_response_id: 'resp_p2',
      input: [said('three')],
    })
  })

  test('a steer that is pending releases its hold, and the next turn has its input', async () => {
    const { client, id } = await running()
    client.send({ type: 'response.steer', previous_response_id: id, input: 'later' })
    await eventually(() => expect(provider.turns).toHaveLength(2))
    tell(provider, { type: 'response.steer.pending', previous_response_id: 'resp_p1' })
    expect(await client.next(({ type }) => type === 'response.steer.pending')).toMatchObject({
      previous_response_id: id,
    })
    await eventually(() => expect(heldIds()).not.toContain(`${client.id}.2`))
    tell(provider, completed('resp_p1'))
    const last = await client.next(({ type }) => type === 'response.completed')
    provider.answer = () => ({ id: 'resp_p3', text: 'so be it' })
    const after = (last['response'] as { id: string }).id
    const next = await client.turn({ model: 'm', input: 'next', previous_response_id: after })
    expect(provider.turns[2]?.frame).toMatchObject({ input: [said('next')], previous_response_id: 'resp_p1' })
    // On another socket the provider does not have it, so that it is sent with the whole conversation.
    provider.breakAll()
    await eventually(() => expect(provider.open.size).toBe(0))
    await client.turn({ model: 'm', input: 'at last', previous_response_id: idOf(next) })
    expect(provider.turns[3]?.frame['input']).toMatchObject([
      said('one'),
      said('later'),
      said('next'),
      { role: 'assistant' },
      said('at last'),
    ])
  })

  test('a steer that a provider refuses fails with its words, and the turn goes on', async () => {
    const { client, id } = await running()
    client.send({ type: 'response.steer', previous_response_id: id, input: 'no' })
    await eventually(() => expect(provider.turns).toHaveLength(2))
    tell(provider, {
      type: 'response.steer.failed',
      previous_response_id: 'resp_p1',
      error: { code: 'response_not_active', message: 'late' },
      input: 'no',
    })
    expect(await client.next(({ type }) => type === 'response.steer.failed')).toMatchObject({
      previous_response_id: id,
      error: { code: 'response_not_active' },
    })
    tell(provider, completed('resp_p1'))
    await client.next(({ type }) => type === 'response.completed')
    await eventually(() => expect(rowOf(`${client.id}.1`)).toMatchObject({ reason: 'complete' }))
    expect(client.events.some(({ type }) => type === 'error')).toBe(false)
  })

  test('a steer whose hold cannot be made fails, nothing is sent, and the turn goes on', async () => {
    const { client, id } = await running('barely')
    client.send({ type: 'response.steer', previous_response_id: id, input: 'x'.repeat(4_000) })
    expect(await client.next(({ type }) => type === 'response.steer.failed')).toMatchObject({
      error: { code: expect.stringMatching(/^(insufficient_quota|quota_held)$/) },
      input: 'x'.repeat(4_000),
    })
    expect(provider.turns).toHaveLength(1)
    tell(provider, completed('resp_p1'))
    await client.next(({ type }) => type === 'response.completed')
  })

  test('of several steers of one turn one call follows', async () => {
    const { client, id } = await running()
    for (const input of ['first', 'second'])
      client.send({ type: 'response.steer', previous_response_id: id, input })
    await eventually(() => expect(provider.turns).toHaveLength(3))
    tell(
      provider,
      { type: 'response.steer.accepted', previous_response_id: 'resp_p1' },
      { type: 'response.steer.accepted', previous_response_id: 'resp_p1' },
      endedEarly('resp_p1'),
      started('resp_p2'),
      completed('resp_p2'),
    )
    await client.next(({ type }) => type === 'response.completed')
    await eventually(() => expect(rowOf(`${client.id}.3`)).toMatchObject({ quota: 32, reason: 'complete' }))
    await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ quota: 0 }))
  })

  test.each([
    ['another member', { stream_id: 'a', input: 'x' }, 'invalid_input'],
    [
      'an assistant message',
      { input: [{ type: 'message', role: 'assistant', content: 'x' }] },
      'invalid_input',
    ],
    ['no input', {}, 'invalid_input'],
    [
      'an id that is not of this socket',
      { previous_response_id: 'resp_other', input: 'x' },
      'response_not_found',
    ],
  ])('a steer with %s fails', async (_, fields, code) => {
    const { client, id } = await running()
    client.send({ type: 'response.steer', previous_response_id: id, ...fields })
    const failed = await client.next(({ type }) => type === 'response.steer.failed')
    expect(failed).toMatchObject({ error: { code } })
    expect(failed['input']).toEqual('input' in fields ? fields.input : undefined)
    expect(provider.turns).toHaveLength(1)
  })

  test('a client that leaves after a steer leaves nothing held', async () => {
    const { client, id } = await running()
    client.send({ type: 'response.steer', previous_response_id: id, input: 'two' })
    await eventually(() => expect(provider.turns).toHaveLength(2))
    client.socket.terminate()
    await eventually(() => expect(heldIds().filter((hold) => hold.startsWith(client.id))).toEqual([]))
    await eventually(() => expect(provider.open.size).toBe(0))
  })
})
