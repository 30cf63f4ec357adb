import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ConnectionPools } from './connection-pools.ts'
import type { Destination } from './destination.ts'
import { originOf } from './origin.ts'
import { Pool } from './pool.ts'
import type { TransportError, UpstreamRequest } from './upstream-request.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
/** An answer after which the connection is kept for longer than a test takes. */
const KEPT_ANSWER = 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=60\r\ncontent-length: 2\r\n\r\nok'

/** A server that answers each request with `say`, and keeps a list of its connections. */
async function upstream(
  say: (socket: Socket, count: number) => void,
): Promise<{ url: URL; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server: Server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.setNoDelay(true)
    let count = 0
    socket.on('data', () => say(socket, (count += 1)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), sockets }
}

interface Heard {
  readonly exchange: UpstreamRequest
  readonly body: () => string
  /** Resolves at the end of the response. */
  readonly end: Promise<'ended' | TransportError>
}

/** One channel of a server, with one of its keys. */
interface Target extends Destination {
  readonly channel: string
}

function targetOf(url: URL, channel: string, key: string): Target {
  const upstream = `${channel} ${url.origin}`
  return { id: `${upstream} ${key}`, upstream, origin: originOf(url), channel }
}

/** Pools, the configured channels, and the reports of unsolicited bytes. */
interface Opened {
  readonly connections: ConnectionPools<Target>
  channels: readonly string[]
  readonly unasked: { readonly channel: string; readonly isNews: boolean }[]
}

function opened(): Opened {
  const unasked: { channel: string; isNews: boolean }[] = []
  const connections = new ConnectionPools<Target>({
    source: { current: () => it.channels, has: ({ channel }) => it.channels.includes(channel) },
    onUnsolicited: ({ channel }, isNews) => void unasked.push({ channel, isNews }),
  })
  const it: Opened = { connections, channels: [], unasked }
  onTestFinished(() => connections.close())
  return it
}

interface Sent {
  readonly connectMs?: number
  readonly responseMs?: number
  readonly idleMs?: number
  readonly body?: Buffer
  readonly channel?: string
  readonly key?: string
  /** Whether the call pauses itself when data of its response arrives. */
  readonly pausesOnData?: boolean
  /** Called after data of the response has arrived. */
  readonly onData?: () => void
}

/** Sends a request of a channel, which is added to the configured ones if needed. */
function send(to: Opened, url: URL, options: Sent = {}): Heard {
  const { channel = 'a', key = 'k' } = options
  if (!to.channels.includes(channel)) to.channels = [...to.channels, channel]
  return sendOver(to.connections.poolFor(targetOf(url, channel, key)), options)
}

function sendOver(pool: Pool<Target>, options: Sent = {}): Heard {
  // Patience for a slow machine, where a test is not about a timeout.
  const { connectMs = 60_000, responseMs = 60_000, idleMs = 60_000 } = options
  const { body = Buffer.from('{}'), pausesOnData = false, onData } = options
  const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`
  const { promise, resolve } = Promise.withResolvers<'ended' | TransportError>()
  let text = ''
  const exchange = pool.send(
    { head, body, connectMs, responseMs, idleMs },
    {
      onHead: () => {},
      onData: (chunk) => {
        text += chunk.toString('latin1')
        if (pausesOnData) exchange.pause()
        onData?.()
      },
      onEnd: () => resolve('ended'),
      onError: resolve,
    },
  )
  return { exchange, body: () => text, end: promise }
}

describe('a connection', () => {
  test('a connection of the HTTP client is used for one call after another, but never for two at the same time', async () => {
    const { url, sockets } = await upstream((socket) => socket.write(ANSWER))
    const connections = opened()
    for (let i = 0; i < 3; i++) expect(await send(connections, url).end).toBe('ended')
    expect(sockets).toHaveLength(1)
    await Promise.all([send(connections, url).end, send(connections, url).end])
    expect(sockets).toHaveLength(2)
  })

  test.each([
    [
      'that the upstream closes with its answer',
      `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok`,
    ],
    ['on which more came than was asked for', `${ANSWER}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`],
    ['on which an answer without a body named one', 'HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\n'],
    [
      'that the upstream keeps for no time',
      `HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nok`,
    ],
    ['of an upstream of HTTP/1.0', `HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok`],
  ])('an upstream connection %s is not used for another call', async (_, answer) => {
    const { url, sockets } = await upstream((socket) => socket.write(answer))
    const connections = opened()
    expect(await send(connections, url).end).toBe('ended')
    const second = send(connections, url)
    expect(await second.end).toBe('ended')
    expect(second.body()).not.toContain('evil')
    expect(sockets).toHaveLength(2)
  })

  test('a connection of the HTTP client is not used again if bytes arrived on it without a request', async () => {
    const { url, sockets } = await upstream((socket, count) => {
      socket.write(ANSWER)
      if (count === 1) setTimeout(() => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil'), 20)
    })
    const connections = opened()
    expect(await send(connections, url).end).toBe('ended')
    await expect.poll(() => sockets[0]?.destroyed).toBe(true)
    const second = send(connections, url)
    expect(await second.end).toBe('ended')
    expect(second.body()).toBe('ok')
  })

  test('a connection of the HTTP client is not used again if the response arrived before the request was sent', async () => {
    const { url, sockets } = await upstream((socket, count) => {
      if (count > 1) return
      socket.pause()
      socket.write(ANSWER)
    })
    const connections = opened()
    const first = send(connections, url, { body: Buffer.alloc(16 * 1024 * 1024) })
    expect(await first.end).toBe('ended')
    void send(connections, url)
    await expect.poll(() => sockets.length).toBe(2)
  })

  test('a reused connection that breaks without a response is reported as reused, and not as a failure of the upstream', async () => {
    const { url } = await upstream((socket, count) => (count === 1 ? socket.write(ANSWER) : socket.destroy()))
    const connections = opened()
    expect(await send(connections, url).end).toBe('ended')
    expect(await send(connections, url).end).toMatchObject({ message: expect.any(String), wasReused: true })
    // A new connection that breaks is a fault of the upstream.
    const { url: other } = await upstream((socket) => socket.destroy())
    expect(await send(connections, other).end).toMatchObject({ wasReused: false })
  })

  test('a reused connection that breaks long after the request was sent is a failure of the upstream, which may have carried it out', async () => {
    const { url, sockets } = await upstream((socket, count) => {
      if (count === 1) socket.write(ANSWER)
    })
    const pool = new Pool(targetOf(url, 'a', 'k'), {
      readHeaders: new Set(),
      onOpened: () => {},
      onUnsolicited: () => {},
      mayReuse: () => true,
      onIdleChange: () => {},
    })
    onTestFinished(() => pool.close())
    expect(await sendOver(pool).end).toBe('ended')
    const second = sendOver(pool)
    await once(sockets[0] as Socket, 'data')
    for (let tick = 0; tick < 100; tick++) pool.tick(performance.now())
    sockets[0]?.destroy()
    expect(await second.end).toMatchObject({ wasReused: false })
    expect(sockets).toHaveLength(1)
  })

  test('a connection that breaks after the first byte of a response is a failure of the upstream, even if it was reused', async () => {
    const { url } = await upstream((socket, count) => {
      if (count === 1) socket.write(ANSWER)
      else socket.end('HTTP/1.1 200')
    })
    const connections = opened()
    expect(await send(connections, url).end).toBe('ended')
    expect(await send(connections, url).end).toMatchObject({ wasReused: false })
  })
})

describe('connections of a channel with a key', () => {
  test('an upstream connection is not used for calls of another channel or key', async () => {
    const { url, sockets } = await upstream((socket) => socket.write(ANSWER))
    const to = opened()
    for (let round = 0; round < 2; round++)
      for (const options of [{}, { key: 'l' }, { channel: 'b' }])
        expect(await send(to, url, options).end).toBe('ended')
    expect(sockets).toHaveLength(3)
  })

  test.each([
    ['an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil'],
    ['an interim answer', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['rubbish', 'x'],
    ['an empty line', '\r\n'],
  ])('connections are not used again once %s arrived after a response', async (_, more) => {
    const { url, sockets } = await upstream((socket) => socket.write(ANSWER + more))
    const to = opened()
    const first = send(to, url)
    expect(await first.end).toBe('ended')
    expect(first.body()).toBe('ok')
    expect(to.unasked).toEqual([{ channel: 'a', isNews: true }])
    expect(await send(to, url, { channel: 'b' }).end).toBe('ended')
    expect(to.unasked.slice(1)).toEqual([{ channel: 'b', isNews: true }])
    expect(await send(to, url, { key: 'l' }).end).toBe('ended')
    expect(to.unasked.slice(2)).toEqual([{ channel: 'a', isNews: false }])
    await expect.poll(() => sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, true])
  })

  test('after unrequested bytes on one connection all connections of its channel are closed, and a new one serves only one call', async () => {
    const { url, sockets } = await upstream((socket) => socket.write(ANSWER))
    const to = opened()
    for (const options of [{}, { key: 'l' }, { channel: 'b' }])
      expect(await send(to, url, options).end).toBe('ended')
    expect(to.unasked).toEqual([])
    sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil')
    // Connections of the other key are closed too; connections of the other channel are not.
    await expect.poll(() => sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, false])
    expect(to.unasked).toEqual([{ channel: 'a', isNews: true }])
    for (let i = 0; i < 3; i++) expect(await send(to, url).end).toBe('ended')
    expect(sockets).toHaveLength(6)
    expect(await send(to, url, { channel: 'b' }).end).toBe('ended')
    expect(sockets).toHaveLength(6)
  })

  test('an upstream connection is read once more before it is used again, so that unrequested bytes are noticed', async () => {
    const { url, sockets } = await upstream((socket) => socket.write(ANSWER))
    const to = opened()
    for (let i = 0; i < 20; i++) {
      const before = send(to, url, { channel: `a${i}` })
      expect(await before.end).toBe('ended')
      // Sent in the same turn of the event loop: nothing has been read since the response.
      sockets.at(-1)?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil')
      const after = send(to, url, { channel: `a${i}` })
      expect(await after.end).toBe('ended')
      expect(after.body()).toBe('ok')
    }
    expect(to.unasked).toHaveLength(20)
    expect(sockets).toHaveLength(40)
  })

  test('an upstream connection that has ended is not used again, and the next call does not notice it', async () => {
    const { url, sockets } = await upstream((socket) => socket.write(ANSWER))
    const to = opened()
    expect(await send(to, url).end).toBe('ended')
    sockets[0]?.end()
    await expect.poll(() => sockets[0]?.destroyed).toBe(true)
    expect(await send(to, url).end).toBe('ended')
    expect(to.unasked).toEqual([])
  })

  test('upstream connections are closed when no channel uses them any more, except for those with calls in flight', async () => {
    const { url, sockets } = await upstream((socket) => socket === sockets[1] || socket.write(KEPT_ANSWER))
    const to = opened()
    await send(to, url).end
    const slow = send(to, url, { key: 'l' })
    await expect.poll(() => sockets.length).toBe(2)
    await send(to, url, { channel: 'b' }).end
    to.channels = to.channels.filter((channel) => channel === 'b')
    const closed = (): boolean[] => sockets.map(({ destroyed }) => destroyed)
    await expect.poll(closed).toEqual([true, false, false])
    sockets[1]?.write(KEPT_ANSWER)
    expect(await slow.end).toBe('ended')
    await expect.poll(closed).toEqual([true, true, false])
  })

  test('a connection pool is removed when its last connection is closed', async () => {
    const { url } = await upstream((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nok'))
    const to = opened()
    const used = targetOf(url, 'a', 'k')
    const sent = send(to, url)
    const pool = to.connections.poolFor(used)
    expect(to.connections.poolFor(used)).toBe(pool)
    expect(await sent.end).toBe('ended')
    await expect.poll(() => to.connections.poolFor(used) === pool).toBe(false)
  })

  test('up to 1,024 idle upstream connections are kept; beyond that, those of the channel with most of them are closed first', async () => {
    const waiting: Socket[] = []
    const answerAll = (): void => {
      for (const socket of waiting.splice(0)) socket.write(KEPT_ANSWER)
    }
    const { url, sockets } = await upstream((socket) => waiting.push(socket))
    const to = opened()
    const round = async (count: number, channel: string): Promise<void> => {
      // So many calls take long on a slow machine.
      const patient = { connectMs: 120_000, responseMs: 120_000, idleMs: 120_000 }
      const calls = Array.from({ length: count }, () => send(to, url, { channel, ...patient }))
      await expect.poll(() => waiting.length).toBe(count)
      answerAll()
      for (const { end } of calls) expect(await end).toBe('ended')
    }
    await round(5, 'b')
    await round(1_040, 'a')
    const open = (): number => sockets.filter(({ destroyed }) => !destroyed).length
    await expect.poll(open).toBe(1_024)
    expect(sockets.slice(0, 5).some(({ destroyed }) => destroyed)).toBe(false)
  })
})

describe('a timeout', () => {
  test('a timeout ends a call to an upstream whose response does not begin', async () => {
    const { url } = await upstream(() => {})
    const began = performance.now()
    expect(await send(opened(), url, { responseMs: 300 }).end).toMatchObject({
      message: 'first byte time-out',
    })
    expect(performance.now() - began).toBeGreaterThanOrEqual(300)
  })

  test.each([
    ['goes silent', () => {}],
    ['says only what is no part of its body', (socket: Socket) => socket.write('1;x='.repeat(5))],
  ])('a timeout ends a call whose upstream %s', async (_, drip) => {
    const { url } = await upstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n1;')
      const timer = setInterval(() => drip(socket), 50)
      socket.on('close', () => clearInterval(timer))
    })
    const heard = send(opened(), url, { idleMs: 400 })
    expect(await heard.end).toMatchObject({ message: 'idle time-out' })
    expect(heard.body()).toBe('ok')
  })

  test('a timeout does not end a call whose bytes arrived in time while the event loop was blocked', async () => {
    const { url, sockets } = await upstream((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok'),
    )
    // No timer fires between the first part and this, so that a slow machine does not let the timeout pass before it.
    const answerAndBlock = (): void => {
      if (heard.body() !== 'ok') return
      sockets[0]?.write('ok')
      // After this blocking, timers fire first, and then input is read.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500)
    }
    const onData = (): unknown => setImmediate(answerAndBlock)
    const heard = send(opened(), url, { idleMs: 2_000, onData })
    expect(await heard.end).toBe('ended')
  })

  test('the idle timeout of a call does not run while the gateway does not read its response', async () => {
    const { url } = await upstream((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok'))
    const heard = send(opened(), url, { idleMs: 200, pausesOnData: true })
    await expect.poll(heard.body).toBe('ok')
    await delay(600)
    heard.exchange.resume()
    const resumed = performance.now()
    expect(await heard.end).toMatchObject({ message: 'idle time-out' })
    expect(performance.now() - resumed).toBeGreaterThanOrEqual(200)
  })
})

describe('a call', () => {
  test('a paused call gets no data of its response until it is resumed, and loses none', async () => {
    const size = 8 * 1024 * 1024
    const { url, sockets } = await upstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`)
      socket.write(Buffer.alloc(size, 'x'))
    })
    const heard = send(opened(), url)
    heard.exchange.pause()
    await expect.poll(() => sockets[0]?.writableLength ?? 0).toBeGreaterThan(0)
    await delay(200)
    expect(heard.body().length).toBeLessThan(size / 2)
    expect(sockets[0]?.writableLength).toBeGreaterThan(0)
    heard.exchange.resume()
    expect(await heard.end).toBe('ended')
    expect(heard.body().length).toBe(size)
  })

  test('aborting a call closes its upstream connection at once, and nothing more is reported for the call', async () => {
    const { url, sockets } = await upstream(() => {})
    const heard = send(opened(), url)
    await expect.poll(() => heard.exchange.isSent && sockets.length).toBe(1)
    let over = false
    void heard.end.then(() => (over = true))
    heard.exchange.cancel()
    heard.exchange.cancel()
    await expect.poll(() => sockets[0]?.destroyed, { interval: 5 }).toBe(true)
    expect(over).toBe(false)
  })

  test('a call that is aborted before its upstream connection exists is never sent', async () => {
    let asked = 0
    const { url } = await upstream(() => (asked += 1))
    const heard = send(opened(), url)
    expect(heard.exchange.isSent).toBe(false)
    heard.exchange.cancel()
    await delay(50)
    expect(asked).toBe(0)
  })

  test('cancelling or pausing a call that has ended does not affect the next call on the same connection', async () => {
    const { url } = await upstream((socket) => setTimeout(() => socket.write(ANSWER), 20))
    const connections = opened()
    const first = send(connections, url)
    await first.end
    const second = send(connections, url)
    first.exchange.cancel()
    first.exchange.pause()
    expect(await second.end).toBe('ended')
  })

  test('a call to a port without a server fails with the error code of the operating system', async () => {
    const { url } = await upstream(() => {})
    const nobody = new URL(url)
    nobody.port = '1'
    expect(await send(opened(), nobody).end).toMatchObject({ message: 'ECONNREFUSED', wasReused: false })
  })
})
