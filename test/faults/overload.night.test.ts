import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { type RawConnection, rawConnection } from '../fixtures/raw-socket.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const MAX = 10
/** Milliseconds that each turn of the event loop takes once the gateway is slow. */
const TURN_MS = 60
/** On SIGUSR2, makes every turn of the event loop slow; the next SIGUSR2 ends that. */
const SLOWED = `import { isMainThread } from 'node:worker_threads'
if (isMainThread) {
  let busy
  process.on('SIGUSR2', () => {
    if (busy) busy = clearInterval(busy)
    else busy = setInterval(() => { for (const end = performance.now() + ${TURN_MS}; performance.now() < end;); }, 1)
  })
}`

/** The head of a call whose announced body is never sent. */
function headOnly(port: number, more = ''): RawConnection {
  return rawConnection(
    port,
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n${more}\r\n`,
  )
}

const EXPECTING = 'expect: 100-continue\r\n'

describe('at the maximum number of open calls', () => {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture((upstream) => ({
      ...plainConfiguration(upstream.baseUrl('m')),
      options: { max_calls: MAX },
    }))
  })
  afterAll(() => fixture?.close())

  test('at the maximum of open calls the open ones continue, and one more gets 503 and retry-after before its body is read', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 50 })
    const streams = await Promise.all(Array.from({ length: MAX }, () => fixture.live('ann', askStream('m'))))
    for (const { status } of streams) expect(status).toBe(200)

    // The body is announced and never sent: a gateway that waits for it would wait for a long time.
    const refused = await fixture.live('ann', '{', { headers: { 'content-length': '1000000' } })
    expect(refused.status).toBe(503)
    const answer = await refused.end()
    expect(answer.headers['retry-after']).toBe('1')
    expect(answer.json().error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
    const expecting = headOnly(fixture.gateway.port, EXPECTING)
    expect(await expecting.until('overloaded')).toMatch(/^HTTP\/1\.1 503 /)
    expecting.socket.destroy()
    // Refused requests take no slots, however long their connections stay open.
    const staying = Array.from({ length: 3 * MAX }, () => headOnly(fixture.gateway.port))
    for (const connection of staying) await connection.until('overloaded')
    streams.pop()?.abort()
    await expect.poll(async () => (await fixture.chat('ann', '{')).status).toBe(400)
    for (const { socket } of staying) socket.destroy()
    expect(fixture.upstream.received('m')).toHaveLength(MAX)

    for (const stream of streams) stream.abort()
    fixture.upstream.script('m', { kind: 'whole' })
    await expect.poll(async () => (await fixture.chat('ann', ask('m'))).status).toBe(200)
  })
})

describe('a gateway whose event loop is late', () => {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')), {
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SLOWED)}` },
    })
    // Loads modules that are only loaded by the first call.
    await fixture.chat('ann', ask('m'))
    process.kill(fixture.gateway.pid, 'SIGUSR2')
  })
  afterAll(() => fixture?.close())

  test('a gateway whose event loop is late accepts several connections a turn, not one', async () => {
    const COUNT = 200
    const look = () => call(fixture.gateway.url, undefined, { method: 'GET', path: '/healthz' })
    /** Connections that were accepted in the time of a turn. */
    const perTurn = async (): Promise<number> => {
      const alone = performance.now()
      for (let i = 0; i < 4; i++) await look()
      const oneMs = (performance.now() - alone) / 4
      const began = performance.now()
      await Promise.all(Array.from({ length: COUNT }, look))
      return (COUNT * Math.max(TURN_MS, oneMs / 2)) / (performance.now() - began)
    }
    // Other programs may halt one of the attempts, and not each of them.
    await expect.poll(perTurn).toBeGreaterThan(3)
  })

  test('a gateway whose event loop is late refuses calls before bodies are read, and admits all once it has recovered', async () => {
    const { port } = fixture.gateway
    const crowd: RawConnection[] = []
    const heard = { refused: 0, asked: 0 }
    while (heard.refused < 20) {
      for (let i = 0; i < 40; i++) {
        const connection = headOnly(port, i % 2 === 0 ? '' : EXPECTING)
        crowd.push(connection)
        void connection.until('overloaded').then(
          (answer) => {
            heard.refused += 1
            expect(answer).toMatch(/^HTTP\/1\.1 503 [^\0]*\r\nretry-after: 1\r\n/)
          },
          () => {},
        )
        void connection.until('100 Continue').then(
          () => (heard.asked += 1),
          () => {},
        )
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    // Calls are only refused when there are many.
    expect(crowd.length - heard.refused).toBeGreaterThanOrEqual(64)
    await expect.poll(() => heard.asked).toBeGreaterThan(0)
    for (const { socket } of crowd) socket.destroy()

    process.kill(fixture.gateway.pid, 'SIGUSR2')
    // More calls than are admitted during overload, but too few to cause overload.
    const again = (): Promise<number[]> =>
      Promise.all(Array.from({ length: 60 }, async () => (await fixture.chat('ann', ask('m'))).status))
    await expect.poll(async () => new Set(await again())).toEqual(new Set([200]))
  })
})
