import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import {
  connectionOf,
  maskedFrame,
  maskedText,
  openSocket,
  rawWrite,
  type SocketClient,
} from '../fixtures/web-socket-client.ts'

/** Maximum number of connections of the gateway. */
const CONNECTIONS = 24

let fixture: Fixture
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
  fixture = await startFixture(
    (upstream) => ({
      options: { retries: 0, body_limit: '4MiB' },
      models: priced(['slow', 'endless']),
      channels: ['slow', 'endless'].map((name) => channel(name, upstream.baseUrl(name))),
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
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
test('a client that reads no answers is not read any further', { retry: 2 }, async () => {
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
