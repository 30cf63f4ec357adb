import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { responsesUsage } from '../fixtures/responses-behaviour.ts'
import { type SocketProvider, startSocketProvider } from '../fixtures/socket-provider.ts'
import { eventually, openSocket, type SocketClient, textOf } from '../fixtures/web-socket-client.ts'

let provider: SocketProvider
let gateway: RunningGateway
const clients: SocketClient[] = []
beforeAll(async () => {
  provider = await startSocketProvider()
  const own = { protocol: 'responses', base_url: provider.baseUrl, websocket: true }
  gateway = await startGateway({
    config: {
      options: { retries: 0 },
      models: priced(['m', 'refusing', 'named', 'forked']),
      channels: [
        channel('m', provider.baseUrl, { ...own, headers: { 'x-team': 'red' } }),
        channel('forked', provider.baseUrl, { ...own, name: 'other', timeouts: { idle: '500ms' } }),
        channel('refusing', provider.baseUrl, own),
        channel('named', provider.baseUrl, { ...own, model_mapping: { named: 'upstream-name' } }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })])],
    },
  })
})
afterEach(() => {
  for (const { socket } of clients.splice(0)) socket.terminate()
  provider.reset()
})
afterAll(async () => {
  await gateway?.discard()
  await provider?.close()
})

async function opened(key = 'ann'): Promise<SocketClient> {
  const client = await openSocket(gateway.url, key)
  clients.push(client)
  return client
}

const rowOf = (id: string) => databaseOf(gateway.dataDir).usageOf(id)
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

  test('a turn over a socket names the model as the channel maps it', async () => {
    const client = await opened()
    await client.turn({ model: 'named', input: 'one' })
    expect(provider.turns[0]?.frame['model']).toBe('upstream-name')
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

  test('a provider that says nothing for the time-out of its channel fails', async () => {
    provider.answer = () => ({
      event: {
        type: 'response.created',
        sequence_number: 0,
        response: { id: 'resp_x', output: [], status: 'in_progress' },
      },
    })
    const client = await opened()
    const events = await client.turn({ model: 'forked', input: 'one' })
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
    await client.turn({ model: 'm', input: 'two', previous_response_id: idOf(first) })
    expect(provider.turns[1]?.frame).toMatchObject({
      instructions: 'Be kind.',
      previous_response_id: 'resp_p1',
    })
    expect(provider.turns[1]?.frame['input']).toHaveLength(1)
  })

  test('a frame that generates nothing is answered by the gateway where the provider refuses the upgrade', async () => {
    provider.upgradeStatus = 404
    const client = await opened()
    const events = await client.turn({ model: 'refusing', input: 'one', generate: false })
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.completed'])
    expect(provider.turns).toEqual([])
  })
})
