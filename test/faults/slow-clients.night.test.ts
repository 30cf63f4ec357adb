import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { call } from '../fixtures/client.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { type SlowClient, slowClients } from '../fixtures/slow-clients.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'

const CLIENTS = 32
/** A second of the gateway's timeouts in milliseconds: a quarter of a real one. */
const SECOND_MS = 250
/** The timeout of the headers in milliseconds. */
const HEADERS_MS = 10 * SECOND_MS
/** The time of a whole call of the model `brief`, in milliseconds. */
const BRIEF_MS = 900
/** The number of calls beside clients that do not read. */
const CALLS = 20

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(configure)
})
afterAll(() => fixture?.close())

function configure(upstream: ScriptedUpstream): Configuration {
  return {
    models: priced(['m', 'large', 'endless', 'brief', 'timed']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('large', upstream.baseUrl('large')),
      channel('endless', upstream.baseUrl('endless')),
      channel('timed', upstream.baseUrl('timed'), { timeouts: { total: '10s' } }),
      channel('brief', upstream.baseUrl('brief'), { timeouts: { total: `${BRIEF_MS}ms` } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }
}

/** A gateway whose seconds, in which it counts the timeouts of its clients, are short. */
async function impatientFixture(): Promise<Fixture> {
  const copy = await patchedProgram([
    {
      file: 'packages/http1/src/server/http-server.ts',
      text: 'const TICK_MS = 1_000',
      by: `const TICK_MS = ${SECOND_MS}`,
    },
    {
      file: 'src/call/slow-bodies.ts',
      text: 'const SAMPLE_MS = 1_000',
      by: `const SAMPLE_MS = ${SECOND_MS}`,
    },
  ])
  onTestFinished(() => copy.discard())
  const impatient = await startFixture(configure, { root: copy.root })
  onTestFinished(() => impatient.close())
  return impatient
}

function head(length: number, key = 'ann'): string {
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  )
}

/** Takes 14 of the gateway's seconds to send a body of 28 kilobytes; settles with the response. */
async function slowUpload(port: number): Promise<string> {
  const body = JSON.stringify(ask('m', { user: 'x'.repeat(28_000) }))
  const connection = rawConnection(port, head(body.length))
  const began = performance.now()
  for (let sent = 0; sent < body.length; ) {
    // A pause may last longer on a busy machine. The upload sends more after it.
    const due = 1_000 * (1 + Math.floor((performance.now() - began) / (SECOND_MS / 2)))
    if (due > sent) connection.socket.write(body.slice(sent, due))
    sent = due
    await sleep(SECOND_MS / 2)
  }
  const answer = await Promise.race([connection.until('chatcmpl'), connection.closed()])
  connection.socket.destroy()
  return answer
}

/** Makes calls one after the other until the condition holds. Returns the number of those that were answered. */
async function callsUntil(isSo: () => boolean, atLeast = 0, on = fixture): Promise<number> {
  let calls = 0
  while (calls < atLeast || !isSo()) {
    const { status, text } = await on.chat('ann', ask('m'))
    if (status !== 503) {
      expect(status, text).toBe(200)
      calls += 1
    }
    await sleep(20)
  }
  return calls
}

describe(`${CLIENTS} slow clients`, () => {
  test('clients that are slow with headers or bodies are disconnected after the timeout, and others are answered meanwhile', {
    timeout: 300_000,
  }, async () => {
    const part = CLIENTS / 4
    const impatient = await impatientFixture()
    const { port } = impatient.gateway
    const uploads = [slowUpload(port)]
    let clients: SlowClient[] = []
    /** Returns the number of calls that were answered while slow clients were connected. */
    const callsBeside = async (): Promise<number> => {
      clients = [
        ...(await slowClients(port, part, 'headers', head(10), '')),
        ...(await slowClients(port, part, 'says nothing', '', '')),
        ...(await slowClients(port, 2 * part, 'body', head(1_000_000), '{'.repeat(100))),
      ]
      return callsUntil(() => clients.every(({ lasted }) => lasted() !== undefined), 0, impatient)
    }
    // Repeated, because other programs may halt this one for as long as the slow clients are connected.
    await expect.poll(callsBeside).toBeGreaterThan(2)
    for (const { lasted } of clients) {
      expect(lasted()).toBeGreaterThan(HEADERS_MS - SECOND_MS)
    }
    expect(clients[0]?.received()).toMatch(/^HTTP\/1\.1 408 /)
    const told = clients.slice(2 * part).map(({ received: heard }) => heard())
    for (const heard of told)
      expect(heard).toMatch(/^HTTP\/1\.1 408 .*connection: close.*"code":"request_timeout"/is)
    // A client that sends two kilobytes a second is slow but active.
    // Repeated, because an upload that other programs halt is too slow.
    await expect.poll(() => uploads.pop() ?? slowUpload(port)).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('clients without a valid key that send a body slowly get 401 or 503 before the body has arrived', async () => {
    const clients = await slowClients(
      fixture.gateway.port,
      CLIENTS,
      'body',
      head(1_000_000, 'nobody'),
      '{'.repeat(100),
    )
    await expect
      .poll(() => clients.every(({ received: heard }) => /^HTTP\/1\.1 (?:401|503) /.test(heard())))
      .toBe(true)
    for (const client of clients) client.hangUp()
  })

  test('clients that send their bodies slowly do not delay the calls of other clients', async () => {
    /** Makes calls beside slow clients. Returns whether they were answered before the gateway had given up the slow ones. */
    const areAnswered = async (): Promise<boolean> => {
      const clients = await slowClients(
        fixture.gateway.port,
        CLIENTS,
        'body',
        head(30_000_000),
        '{'.repeat(100),
      )
      await callsUntil(() => true, 3)
      const areOpen = clients.some(({ lasted }) => lasted() === undefined)
      for (const client of clients) client.hangUp()
      return areOpen
    }
    // Repeated, because the gateway also gives them up while other programs halt this one.
    await expect.poll(areAnswered).toBe(true)
  })

  test('clients that pause reading a large stream get the whole stream afterwards', async () => {
    const frame = contentFrame('x').replace('{', `{"obfuscation":"${'x'.repeat(400_000)}",`)
    const frames = [...Array.from({ length: 30 }, () => frame), finishFrame(), DONE_FRAME]
    fixture.upstream.script('large', { kind: 'stream', frames })
    const body = JSON.stringify(askStream('large'))
    const connections = Array.from({ length: 3 }, () =>
      rawConnection(fixture.gateway.port, head(body.length) + body),
    )
    await Promise.all(
      connections.map(async ({ socket }) => {
        await once(socket, 'data')
        socket.pause()
      }),
    )
    await sleep(300)
    for (const { socket } of connections) socket.resume()
    for (const connection of connections) {
      const text = await connection.until('\r\n0\r\n\r\n')
      expect(text.match(/"obfuscation"/g)).toHaveLength(30)
      expect(text).toContain(DONE_FRAME)
      connection.socket.destroy()
    }
  })

  test('a stream whose time is over because its client reads slowly is no failure of its channel', async () => {
    const frame = contentFrame('x').replace('{', `{"obfuscation":"${'x'.repeat(65_536)}",`)
    const frames = Array.from({ length: 512 }, () => frame)
    const stalling = { kind: 'stream', ending: 'stall' } as const
    fixture.upstream.script('timed', { ...stalling, events: 1 }, { ...stalling, frames })
    const body = JSON.stringify(askStream('timed'))
    const read = await fixture.live('ann', body)
    const slow = Array.from({ length: 5 }, () =>
      rawConnection(fixture.gateway.port, head(body.length) + body),
    )
    await Promise.all(
      slow.map(async ({ socket }) => {
        await once(socket, 'data')
        socket.pause()
      }),
    )
    await Promise.all(fixture.upstream.received('timed').map(({ ended }) => ended))
    for (const { socket } of slow) socket.resume()
    for (const client of slow) {
      const text = await Promise.race([client.until('data: {"error"'), client.closed()])
      expect(text.slice(-400)).toContain('"code":"request_timeout"')
      client.socket.destroy()
    }
    // That of a client that reads everything is one.
    expect((await read.end()).text).toContain('"code":"upstream_error"')
    const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
    expect(text).toContain('sluice_upstream_errors_total{channel="timed",cause="total time-out"} 1\n')
    expect(text).toContain('sluice_resting_channels 0\n')
  })

  test('clients that do not read their streams delay no other call, and their upstream calls end', async () => {
    // Padding, as providers send it: larger than the buffers between upstream and client, and without content
    // to count.
    const frame = contentFrame('x').replace('{', `{"obfuscation":"${'x'.repeat(65_536)}",`)
    const frames = Array.from({ length: 128 }, () => frame)
    const reading = (model: string, count: number): Promise<SlowClient[]> => {
      fixture.upstream.script(model, { kind: 'stream', frames, ending: 'stall' })
      const body = JSON.stringify(askStream(model))
      return slowClients(fixture.gateway.port, count, 'reads nothing', head(body.length), body)
    }
    /** Makes calls until the upstream has sent nothing during three of them, which means that all buffers are full. */
    const heldBack = async (model: string): Promise<void> => {
      let [sent, unchanged] = [0, 0]
      await callsUntil(() => {
        const requests = fixture.upstream.received(model)
        const now = requests.reduce((sum, { eventsSent }) => sum + eventsSent, 0)
        unchanged = now > 0 && now === sent ? unchanged + 1 : 0
        sent = now
        return unchanged === 3
      })
      expect(sent).toBeLessThan(fixture.upstream.received(model).length * frames.length)
    }
    const ended = (model: string): boolean =>
      fixture.upstream.received(model).every(({ endedAt }) => endedAt !== undefined)
    const clients = await reading('endless', CLIENTS)
    await fixture.upstream.receivedAtLeast('endless', CLIENTS / 2)
    await heldBack('endless')
    await callsUntil(() => true, CALLS)
    // They were answered before the gateway had given up the clients that do not read.
    expect(ended('endless')).toBe(false)
    // Repeated, because the time of a call may be over before a busy gateway has sent it.
    while (fixture.upstream.received('brief').length === 0) {
      clients.push(...(await reading('brief', 2)))
      await Promise.race([fixture.upstream.receivedAtLeast('brief', 2), sleep(2 * BRIEF_MS)])
    }
    await expect.poll(() => ended('brief')).toBe(true)
    for (const client of clients) client.hangUp()
  })
})
