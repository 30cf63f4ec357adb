import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { type SocketProvider, startSocketProvider } from '../fixtures/socket-provider.ts'
import { completed, endedEarly, started, tell } from '../fixtures/steered-answers.ts'
import { eventually, openSocket, type SocketClient } from '../fixtures/web-socket-client.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
/** Enough for a short turn and a short steer, and not for a steer of some thousand bytes. */
const BARELY = 2_000

let provider: SocketProvider
let guards: GuardServices
let gateway: RunningGateway
const clients: SocketClient[] = []
beforeAll(async () => {
  provider = await startSocketProvider()
  guards = await startGuardServices()
  gateway = await startGateway({
    config: {
      options: { retries: 0 },
      models: priced(['m', 'set']),
      channels: [channel('m', provider.baseUrl, { protocol: 'responses', websocket: true })],
      guards: ['input', 'output'].map((where) => ({
        name: `judge-${where}`,
        do: 'redact',
        where: [where],
        match: { webhook: { url: guards.url } },
        timeout: '60s',
        tokens: [`token-${where}`],
      })),
      users: [
        ROOT,
        user(2, 'ann', [
          token('ann'),
          token('input'),
          token('output'),
          token('barely', { remain_quota: BARELY }),
        ]),
      ],
    },
  })
})
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate()
  await provider.reset()
  guards.after = undefined
})
afterAll(async () => {
  await gateway?.discard()
  await provider?.close()
  await guards?.stop()
})

const said = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
const rowOf = (id: string) => databaseOf(gateway.dataDir).usageOf(id)
const accepted = { type: 'response.steer.accepted', previous_response_id: 'resp_p1' }
const isCompleted = ({ type }: { type: string }): boolean => type === 'response.completed'

/** A client whose turn is running, and a function that steers it with an input. */
async function running(
  key = 'ann',
  fields: object = { model: 'm' },
): Promise<{ client: SocketClient; id: string; steer: (input: unknown) => void }> {
  provider.answer = (_, count) => (count === 1 ? { event: started('resp_p1') } : { silent: true })
  const client = await openSocket(gateway.url, key)
  clients.push(client)
  client.send({ type: 'response.create', input: 'one', max_output_tokens: 16, ...fields })
  const { response } = await client.next(({ type }) => type === 'response.created')
  const { id } = response as { id: string }
  return {
    client,
    id,
    steer: (input) => client.send({ type: 'response.steer', previous_response_id: id, input }),
  }
}

const framesSent = (count: number) => eventually(() => expect(provider.turns).toHaveLength(count))

/** Goes on from the last answer after all sockets broke, and returns the input that the provider gets. */
async function conversationAfterBreak(client: SocketClient, last: object): Promise<unknown> {
  provider.breakAll()
  await eventually(() => expect(provider.open.size).toBe(0))
  provider.answer = () => ({ id: 'resp_p9', text: 'so be it' })
  const { id } = (last as { response: { id: string } }).response
  await client.turn({ model: 'm', input: 'at last', previous_response_id: id })
  return provider.turns.at(-1)?.frame['input']
}

test('a steer that is refused leaves the answer that follows from an earlier one', async () => {
  const { client, steer } = await running('barely')
  steer('short')
  await framesSent(2)
  steer('x'.repeat(4_000))
  await client.next(({ type }) => type === 'response.steer.failed')
  tell(provider, accepted, endedEarly('resp_p1'), started('resp_p2'), completed('resp_p2'))
  await client.next(isCompleted)
  await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ quota: 32, reason: 'complete' }))
})

test('a client with several steers hears of each what the provider says, and the conversation has the input of all', async () => {
  const { client, steer } = await running()
  for (const input of ['first', 'second']) steer(input)
  await framesSent(3)
  tell(provider, accepted, accepted, endedEarly('resp_p1'), started('resp_p2'), completed('resp_p2'))
  const last = await client.next(isCompleted)
  const told = client.events.filter(({ type }) => type.startsWith('response.steer.'))
  expect(told.map(({ type }) => type)).toEqual(['response.steer.accepted', 'response.steer.accepted'])
  expect(provider.turns[2]?.frame['input']).toEqual([said('second')])
  expect(await conversationAfterBreak(client, last)).toEqual(
    ['one', 'first', 'second', 'at last'].map((text) => said(text)),
  )
})

test.each(['failed', 'pending'])(
  'a response.steer.%s that comes after the end of the answer has the id that the client knows',
  async (outcome) => {
    const { client, id, steer } = await running()
    steer('late')
    await framesSent(2)
    tell(provider, completed('resp_p1'))
    const last = await client.next(isCompleted)
    await eventually(() => expect(rowOf(`${client.id}.1`)).toMatchObject({ reason: 'complete' }))
    tell(provider, { type: `response.steer.${outcome}`, previous_response_id: 'resp_p1' })
    const told = await client.next(({ type }) => type.startsWith('response.steer.'))
    expect(told).toEqual({ type: `response.steer.${outcome}`, previous_response_id: id })
    const inputs = outcome === 'pending' ? ['one', 'late', 'at last'] : ['one', 'at last']
    expect(await conversationAfterBreak(client, last)).toEqual(inputs.map((text) => said(text)))
  },
)

test('an answer that follows and is stopped before it begins is read by no other turn, and costs nothing', async () => {
  const { client, steer } = await running()
  steer('two')
  await framesSent(2)
  const { status } = await manage(gateway.url, AS_ROOT, `POST /api/running/${client.id}.2/stop`)
  expect(status).toBe(200)
  await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ quota: 0 }))
  tell(provider, accepted, endedEarly('resp_p1'), started('resp_p2'))
  await client.next(({ type }) => type === 'response.incomplete')
  await eventually(() => expect(provider.open.size).toBe(0))
  provider.answer = () => ({ id: 'resp_p3', text: 'three' })
  await client.turn({ model: 'm', input: 'three' })
  expect(provider.turns.at(-1)).toMatchObject({ socket: 2 })
})

test.each([
  ['its socket breaks', () => provider.breakAll()],
  ['it is stopped', (id: string) => manage(gateway.url, AS_ROOT, `POST /api/running/${id}.1/stop`)],
])('nothing follows from a response that was steered if %s', async (_, end) => {
  const { client, steer } = await running()
  for (const input of ['one more', 'another']) steer(input)
  await framesSent(3)
  tell(provider, accepted)
  await client.next(({ type }) => type === 'response.steer.accepted')
  await end(client.id)
  const { error } = await client.next(({ type }) => type === 'response.steer.failed')
  expect(error).toMatchObject({ code: 'steering_not_supported' })
  await eventually(() =>
    expect(rowOf(`${client.id}.3`)).toMatchObject({ quota: 0, cause: 'provider_refused' }),
  )
  provider.answer = () => ({ id: 'resp_p3', text: 'three' })
  await client.turn({ model: 'm', input: 'three' })
})

test('a steer that was taken is refused if the socket breaks before the answer that follows', async () => {
  const { client, steer } = await running()
  steer('two')
  await framesSent(2)
  tell(provider, accepted)
  await client.next(({ type }) => type === 'response.steer.accepted')
  provider.breakAll()
  await client.next(({ type }) => type === 'response.failed')
  const { error } = await client.next(({ type }) => type === 'error')
  expect(error).toMatchObject({ code: 'steering_not_supported' })
})

test('a client that leaves pays nothing for an answer that would have followed', async () => {
  const { client, steer } = await running()
  steer('two')
  await framesSent(2)
  client.socket.terminate()
  await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ quota: 0 }))
})

test('an answer that follows reaches the client also if the one before is checked for longer', async () => {
  const { client, steer } = await running('output')
  steer('two')
  await framesSent(2)
  const { promise: judged, resolve: judge } = Promise.withResolvers<void>()
  guards.after = judged
  tell(
    provider,
    accepted,
    { type: 'response.output_text.delta', item_id: 'a', output_index: 0, content_index: 0, delta: 'half' },
    endedEarly('resp_p1'),
  )
  await eventually(() => expect(guards.open()).toBe(1))
  tell(provider, started('resp_p2'), completed('resp_p2'))
  await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ reason: 'complete' }))
  judge()
  await client.next(isCompleted)
  const ends = ['response.incomplete', 'response.completed']
  expect(client.events.map(({ type }) => type).filter((type) => ends.includes(type))).toEqual(ends)
})

test('a steer that fails has the name of the lane whose response it steers', async () => {
  const { client, steer } = await running('ann', { model: 'm', stream_id: 'a' })
  steer([])
  expect(await client.next(({ type }) => type === 'response.steer.failed')).toMatchObject({
    error: { code: 'invalid_input' },
    stream_id: 'a',
  })
  tell(provider, completed('resp_p1'))
  await client.next(isCompleted)
})

test('a steer that makes a request of too many values is invalid, and takes no place of the socket', async () => {
  const tools = [
    { type: 'function', name: 'f', parameters: { type: 'object', enum: Array<number>(110_000).fill(1) } },
  ]
  const { client, steer } = await running('ann', { model: 'm', tools })
  const many = Array.from({ length: 25_000 }, () => ({ type: 'message', role: 'user', content: 'x' }))
  for (let count = 0; count < 16; count += 1) steer(many)
  for (let count = 0; count < 16; count += 1)
    expect(await client.next(({ type }) => type === 'response.steer.failed')).toMatchObject({
      error: { code: 'invalid_input' },
    })
  tell(provider, completed('resp_p1'))
  await client.next(isCompleted)
  provider.answer = () => ({ id: 'resp_p2', text: 'goes on' })
  await client.turn({ model: 'm', input: 'two' })
})

test('at most 16 steers of a response are open', async () => {
  const { client, steer } = await running('input')
  const { promise: judged, resolve: judge } = Promise.withResolvers<void>()
  guards.after = judged
  for (let count = 0; count < 17; count += 1) steer(`steer ${count}`)
  expect(await client.next(({ type }) => type === 'response.steer.failed')).toMatchObject({
    error: { code: 'websocket_queue_full' },
    input: 'steer 16',
  })
  judge()
})

test('a socket that has reached its age takes no steer', async () => {
  const old = await startGateway({
    config: {
      // Long enough for the turn to begin on a slow machine.
      options: { websocket: { age: '6s' } },
      models: priced(['m']),
      channels: [channel('m', provider.baseUrl, { protocol: 'responses', websocket: true })],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
  onTestFinished(() => old.discard())
  provider.answer = (_, count) => (count === 1 ? { event: started('resp_p1') } : { silent: true })
  const client = await openSocket(old.url, 'ann')
  clients.push(client)
  client.send({ type: 'response.create', model: 'm', input: 'one' })
  client.send({ type: 'response.create', model: 'm', input: 'waits' })
  const { response } = await client.next(({ type }) => type === 'response.created')
  // The first one is that of the turn that waits.
  const refusals = (count: number) =>
    eventually(() => {
      const errors = client.events.filter(({ type }) => type === 'error')
      expect(errors.map(({ error }) => error)).toMatchObject(
        Array.from({ length: count }, () => ({ code: 'websocket_connection_limit_reached' })),
      )
    })
  await refusals(1)
  client.send({
    type: 'response.steer',
    previous_response_id: (response as { id: string }).id,
    input: 'two',
  })
  await refusals(2)
  expect(provider.turns).toHaveLength(1)
  tell(provider, completed('resp_p1'))
  expect(await client.closed).toBe(1000)
})

test('a socket of a provider ends once its channel changes or is deleted, and a running answer is steered no more', async () => {
  const fields = { protocol: 'responses', websocket: true, models: 'set', base_url: provider.baseUrl }
  const made = await manage<{ ids: number[] }>(gateway.url, AS_ROOT, 'POST /api/channel/', {
    name: 'set',
    type: 1,
    key: 'sk-upstream-0123456789',
    ...fields,
  })
  const id = made.data.ids[0]
  const { client, steer } = await running('ann', { model: 'set' })
  const changed = await manage(gateway.url, AS_ROOT, 'PUT /api/channel/', { id, websocket: false })
  expect(changed).toMatchObject({ status: 200 })
  steer('two')
  expect(await client.next(({ type }) => type === 'response.steer.failed')).toMatchObject({
    error: { code: 'steering_not_supported' },
  })
  expect(provider.turns).toHaveLength(1)
  tell(provider, completed('resp_p1'))
  await client.next(isCompleted)
  await eventually(() => expect(provider.open.size).toBe(0))
  await manage(gateway.url, AS_ROOT, 'PUT /api/channel/', { id, websocket: true })
  provider.answer = () => ({ id: 'resp_p2', text: 'two' })
  await client.turn({ model: 'set', input: 'two' })
  expect(provider.open.size).toBe(1)
  await manage(gateway.url, AS_ROOT, `DELETE /api/channel/${id}`)
  await eventually(() => expect(provider.open.size).toBe(0))
})

test('a change of other settings leaves the socket of a provider to its lane', async () => {
  const client = await openSocket(gateway.url, 'ann')
  clients.push(client)
  await client.turn({ model: 'm', input: 'one' })
  const made = await manage(gateway.url, AS_ROOT, 'POST /api/channel/', {
    name: 'other',
    type: 1,
    key: 'sk-upstream-0123456789',
    models: 'm2',
    base_url: provider.baseUrl,
  })
  expect(made).toMatchObject({ status: 200 })
  await client.turn({ model: 'm', input: 'two' })
  expect(provider.turns.map(({ socket }) => socket)).toEqual([1, 1])
})
