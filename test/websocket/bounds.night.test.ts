import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { frames as framesOf } from '../fixtures/responses-behaviour.ts'
import { type SocketProvider, startSocketProvider } from '../fixtures/socket-provider.ts'
import {
  connectionOf,
  eventually,
  isEnd,
  maskedFrame,
  maskedText,
  openSocket,
  rawWrite,
  type SocketClient,
  textOf,
} from '../fixtures/web-socket-client.ts'
import { atNight } from '../runner/tier.ts'

/** Maximum number of connections of the gateway. */
const CONNECTIONS = 24

let fixture: Fixture
let provider: SocketProvider
let discard: (() => unknown) | undefined
beforeAll(async () => {
  const copy = await patchedProgram([
    {
      file: 'src/gateway/listen.ts',
      text: 'const MAX_CONNECTIONS = 10_000',
      by: `const MAX_CONNECTIONS = ${CONNECTIONS}`,
    },
    // Less memory than a message may have.
    { file: 'src/limits/request-memory.ts', text: 'SHARED_BYTES = 192 * MIB', by: 'SHARED_BYTES = MIB' },
    { file: 'src/limits/request-memory.ts', text: 'SHARED_BODIES = 4', by: 'SHARED_BODIES = 1 / 4' },
    { file: 'src/limits/request-memory.ts', text: 'RESERVE_BYTES = 64 * MIB', by: 'RESERVE_BYTES = MIB' },
    { file: 'src/call/slow-bodies.ts', text: 'const SAMPLE_MS = 1_000', by: 'const SAMPLE_MS = 100' },
  ])
  discard = () => copy.discard()
  provider = await startSocketProvider()
  const overSockets = { protocol: 'responses', websocket: true }
  fixture = await startFixture(
    (upstream) => ({
      options: { retries: 0, body_limit: '4MiB' },
      models: priced(['slow', 'endless', 'native', 'patient', 'hasty']),
      channels: [
        ...['slow', 'endless'].map((name) => channel(name, upstream.baseUrl(name))),
        channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
        channel('patient', provider.baseUrl, { ...overSockets, timeouts: { idle: '1s' } }),
        channel('hasty', provider.baseUrl, { ...overSockets, timeouts: { first_byte: '1s', total: '3s' } }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  await provider?.close()
  await discard?.()
})

const open = (): Promise<SocketClient> => openSocket(fixture.gateway.url, 'ann')

test('a socket without a running turn gives way to other connections with 1013, one with a turn does not', async () => {
  fixture.upstream.script('slow', { kind: 'stream', events: 3, ending: 'stall' })
  const busy = await open()
  busy.send({ type: 'response.create', model: 'slow', input: 'x' })
  await busy.next(({ type }) => type === 'response.output_text.delta')
  const oldest = await open()
  const others: SocketClient[] = []
  while (oldest.socket.readyState === WebSocket.OPEN && others.length < CONNECTIONS) others.push(await open())
  expect(await oldest.closed).toBe(1013)
  expect(busy.socket.readyState).toBe(WebSocket.OPEN)
  for (const { socket } of [busy, ...others]) socket.terminate()
})

test('a message that arrives too slowly closes the socket with 1008', async () => {
  const client = await open()
  rawWrite(client.socket, maskedFrame(0x01, Buffer.from('{"type":')))
  expect(await client.closed).toBe(1008)
})

test('a message for which its user has no memory left closes the socket with 1013', async () => {
  const client = await open()
  rawWrite(client.socket, maskedFrame(0x01, Buffer.alloc(3 * 2 ** 20, ' ')))
  expect(await client.closed).toBe(1013)
})

/** Opens a socket that is closed after the test. */
async function opened(): Promise<SocketClient> {
  const client = await open()
  onTestFinished(() => client.socket.terminate())
  return client
}

/**
 * Begins a turn whose answer goes beyond the share of its user, which one answer at a time may. Its provider answers other turns
 * with the text.
 */
async function startBeyond(text: string): Promise<SocketClient> {
  await provider.reset()
  provider.answer = ({ frame }, count) => {
    if (count === 1) return { silent: true }
    if (frame['model'] === 'patient') return { id: `resp_p${count}`, text }
    return { event: { type: 'response.created', response: { id: `resp_p${count}`, instructions: text } } }
  }
  const client = await opened()
  client.send({ type: 'response.create', model: 'patient', input: 'x' })
  await eventually(() => expect(provider.turns).toHaveLength(1))
  const [socket] = provider.open as Set<WebSocket>
  const connection = connectionOf(socket as WebSocket)
  // More than the buffers of the system take.
  connection.write(unfinishedEvent(16 * 2 ** 20))
  await eventually(() => expect(connection.writableLength).toBe(0))
  return client
}

/** A text of more than what is not counted, and what the reserve for small amounts has for one event. */
const LARGE_TEXT = 'word '.repeat(80_000)

// Repeated, because the time-outs also pass if this process is halted before the provider has answered.
atNight(
  'an event of a provider for which its user has no memory is waited for, and its turn is sent once',
  {
    retry: 2,
  },
  async () => {
    const beyond = await startBeyond(LARGE_TEXT)
    const waiting = await opened()
    waiting.send({ type: 'response.create', model: 'patient', input: 'x' })
    await waiting.next(({ type }) => type === 'response.created')
    const hasty = await opened()
    expect(await hasty.turn({ model: 'hasty', input: 'x' })).toMatchObject([
      { type: 'error', status: 503, error: { code: 'overloaded' } },
    ])
    expect(waiting.events.some(isEnd)).toBe(false)
    beyond.socket.terminate()
    await waiting.next(isEnd)
    expect(textOf(waiting.events)).toBe(LARGE_TEXT)
    expect(provider.turns.map(({ frame }) => frame['model'])).toEqual(['patient', 'patient', 'hasty'])
  },
)

/** Lets an upstream answer by HTTP with an event of this size before the text. */
function scriptEvent(bytes: number): void {
  const event = `event: response.note\ndata: {"type":"response.note","padding":"${'x'.repeat(bytes)}"}\n\n`
  const all = framesOf({ text: 'Hi.' }).toSpliced(2, 0, event)
  fixture.upstream.script('native', { kind: 'stream', frames: all, ending: 'no done' })
}

test('an event of a turn for which its user has no memory is waited for', async () => {
  const beyond = await startBeyond('')
  scriptEvent(LARGE_TEXT.length)
  const turn = { model: 'native', input: 'x' }
  const waiting = await opened()
  waiting.send({ type: 'response.create', ...turn })
  await waiting.next(({ type }) => type === 'response.created')
  // By the time that a client by POST has its whole stream, the turn would have ended, too.
  const posted = await call(
    fixture.gateway.url,
    { ...turn, stream: true },
    { key: 'ann', path: '/v1/responses' },
  )
  expect(posted.text).toContain('event: response.completed')
  expect(waiting.events.some(isEnd)).toBe(false)
  beyond.socket.terminate()
  expect(await waiting.next(isEnd)).toMatchObject({ type: 'response.completed' })
})

test('an event of more than 32 MiB breaks its turn off', async () => {
  scriptEvent(33 * 2 ** 20)
  const events = await (await opened()).turn({ model: 'native', input: 'x' })
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'upstream_error' } })
})

/** The first bytes of a frame of a provider, and not its last one. */
function unfinishedEvent(bytes: number): Buffer {
  const frame = Buffer.alloc(10 + bytes, ' ')
  frame[0] = 0x81
  frame[1] = 127
  frame.writeBigUInt64BE(BigInt(bytes + 1), 2)
  return frame
}

test('a message of many small fragments takes more memory of its user than its bytes', async () => {
  const client = await open()
  const fragments = Array.from({ length: 8_000 }, (_, at) =>
    maskedFrame(at === 0 ? 0x01 : 0x00, Buffer.of(0x20)),
  )
  rawWrite(client.socket, Buffer.concat(fragments))
  expect(await client.closed).toBe(1013)
})

test('a provider is not read any further once its client leaves more than 1 MiB unread', async () => {
  // More than twice what the buffers of the system take on both connections, and read by a busy machine within the minute after
  // which a client that reads nothing is left.
  const frames = 500
  fixture.upstream.script('endless', { kind: 'stream', events: frames, word: 'x'.repeat(65_536) })
  const turn = { type: 'response.create', model: 'endless', input: 'x' }
  const unread = await open()
  unread.send(turn)
  await unread.next(({ type }) => type === 'response.created')
  unread.socket.pause()
  // By the time that another client has read its whole stream, the first one's would have been read too.
  const reading = await open()
  reading.send(turn)
  await reading.next(({ type }) => type === 'response.completed')
  const sent = fixture.upstream.received('endless').map(({ eventsSent }) => eventsSent)
  expect(sent[0]).toBeLessThan(frames / 2)
  expect(sent[1]).toBe(frames)
  for (const { socket } of [unread, reading]) socket.terminate()
})

/** So many messages take a busy machine more than a minute. */
const PATIENCE = { timeout: 240_000 }

// Repeated, because a message is too slow if this process is halted for more than a second after the gateway has read a part of it.
atNight('a client that reads no answers is not read any further', { retry: 2 }, async () => {
  // More than the buffers of the system take in both directions.
  const message = maskedText('x'.repeat(4_096))
  const messages = 16_384
  const untilAnswered = async ({ socket, events }: SocketClient): Promise<void> => {
    const isOver = (): boolean => events.length === messages || socket.readyState !== WebSocket.OPEN
    await expect.poll(isOver, PATIENCE).toBe(true)
    expect(events.length).toBe(messages)
  }
  const unread = await open()
  onTestFinished(() => unread.socket.terminate())
  unread.socket.pause()
  const connection = connectionOf(unread.socket)
  for (let sent = 0; sent < messages; sent += 64) connection.write(Buffer.concat(Array(64).fill(message)))
  // By the time that another client has an answer to each, the first one's messages would have been read too.
  const reading = await open()
  onTestFinished(() => reading.socket.terminate())
  for (let sent = 0; sent < messages; sent += 64)
    rawWrite(reading.socket, Buffer.concat(Array(64).fill(message)))
  await untilAnswered(reading)
  expect(connection.writableLength).toBeGreaterThan(0)
  // A message that the gateway has read in part is not too slow while it does not read the rest.
  for (let slow = 0; slow < 3; slow++) {
    const client = await open()
    rawWrite(client.socket, maskedFrame(0x01, Buffer.from('{')))
    expect(await client.closed).toBe(1008)
  }
  // It is read again once it reads.
  unread.socket.resume()
  await untilAnswered(unread)
})
