import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame } from '../equipment/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../equipment/configuration.ts'
import { rawConnection } from '../equipment/raw-socket.ts'
import { slowCallers } from '../equipment/slow-callers.ts'
import { ask, askStream, type Stage, setStage } from '../equipment/stage.ts'

const CALLERS = 100
/** The headers' time limit: a second passes until it is checked, and a busy machine needs a margin. */
const HEADERS_MS = 10_000
const SLACK_MS = 30_000
/** A request held up by slow clients would wait for as long as those may be slow. */
const SLOW_MS = 7_500
const QUICK_MS = 2_000

let stage: Stage
beforeAll(async () => {
  stage = await setStage((upstream) => ({
    models: priced(['m', 'endless']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('endless', upstream.baseUrl('endless'), { timeouts: { total: '15s' } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => stage?.close())

function head(length: number, key = 'ann'): string {
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  )
}

/** Takes 14 seconds to send a body of 28 kilobytes; settles with the response. */
async function steadyCaller(port: number): Promise<string> {
  const body = JSON.stringify(ask('m', { user: 'x'.repeat(28_000) }))
  const connection = rawConnection(port, head(body.length))
  for (let sent = 0; sent < body.length; sent += 1_000) {
    connection.socket.write(body.slice(sent, sent + 1_000))
    await sleep(500)
  }
  const answer = await connection.until('chatcmpl')
  connection.socket.destroy()
  return answer
}

/**
 * Calls one after the other until the condition holds. Returns the slowest latency and the number of calls.
 */
async function callsUntil(isSo: () => boolean, atLeast = 0): Promise<{ slowestMs: number; calls: number }> {
  let [slowestMs, calls] = [0, 0]
  while (calls < atLeast || !isSo()) {
    const began = performance.now()
    const { status, text } = await stage.chat('ann', ask('m'))
    if (status !== 503) expect(status, text).toBe(200)
    slowestMs = Math.max(slowestMs, performance.now() - began)
    calls += 1
    await sleep(20)
  }
  return { slowestMs, calls }
}

describe(`${CALLERS} callers that are slow`, () => {
  test('with their headers or bodies are closed in time, and others are answered meanwhile', {
    timeout: 300_000,
  }, async () => {
    const part = CALLERS / 4
    const { port } = stage.gateway
    const steady = steadyCaller(port)
    const callers = [
      ...(await slowCallers(port, part, 'headers', head(10), '')),
      ...(await slowCallers(port, part, 'says nothing', '', '')),
      ...(await slowCallers(port, 2 * part, 'body', head(1_000_000), '{'.repeat(100))),
    ]
    const { slowestMs, calls } = await callsUntil(() => callers.every(({ lasted }) => lasted() !== undefined))
    for (const { lasted } of callers) {
      expect(lasted()).toBeGreaterThan(HEADERS_MS - 1_000)
      expect(lasted()).toBeLessThan(HEADERS_MS + SLACK_MS)
    }
    expect(callers[0]?.heard()).toMatch(/^HTTP\/1\.1 408 /)
    const told = callers.slice(2 * part).map(({ heard }) => heard())
    for (const heard of told)
      expect(heard).toMatch(/^HTTP\/1\.1 408 .*connection: close.*"code":"request_timeout"/is)
    // A client that sends two kilobytes a second is slow but active.
    expect(await steady).toMatch(/^HTTP\/1\.1 200 /)
    expect(calls).toBeGreaterThan(2)
    expect(slowestMs).toBeLessThan(SLOW_MS)
  })

  test('with an unneeded body are answered before it comes', async () => {
    const callers = await slowCallers(
      stage.gateway.port,
      CALLERS,
      'body',
      head(1_000_000, 'nobody'),
      '{'.repeat(100),
    )
    await expect.poll(() => callers.every(({ heard }) => /^HTTP\/1\.1 (?:401|503) /.test(heard()))).toBe(true)
    for (const caller of callers) caller.hangUp()
  })

  test('with a body hold nothing that others need', async () => {
    const callers = await slowCallers(stage.gateway.port, CALLERS, 'body', head(30_000_000), '{'.repeat(100))
    const until = performance.now() + 2_000
    const { slowestMs, calls } = await callsUntil(() => performance.now() > until)
    expect(calls).toBeGreaterThan(2)
    expect(slowestMs).toBeLessThan(SLOW_MS)
    for (const { lasted } of callers) expect(lasted()).toBeUndefined()
    for (const caller of callers) caller.hangUp()
  })

  test('in reading delay nobody, and end with their call', { timeout: 300_000 }, async () => {
    // Padding, as providers send it: larger than the buffers on the way, and without content to count.
    const frame = contentFrame('x').replace('{', `{"obfuscation":"${'x'.repeat(65_536)}",`)
    const frames = Array.from({ length: 128 }, () => frame)
    stage.upstream.script('endless', { kind: 'stream', frames, ending: 'stall' })
    const body = JSON.stringify(askStream('endless'))
    const callers = await slowCallers(stage.gateway.port, CALLERS, 'reads nothing', head(body.length), body)
    const ended = (): boolean =>
      stage.upstream.received('endless').every(({ endedAt }) => endedAt !== undefined)
    await stage.upstream.receivedAtLeast('endless', CALLERS / 2)
    // The buffers on the way fill first, at full speed; only the latency of other calls after that counts.
    let before = 0
    await expect
      .poll(
        async () => {
          before += 1
          return (await callsUntil(() => true, 1)).slowestMs
        },
        { timeout: 30_000 },
      )
      .toBeLessThan(QUICK_MS)
    expect(ended()).toBe(false)
    const { slowestMs, calls } = await callsUntil(ended)
    expect(before + calls).toBeGreaterThan(2)
    expect(slowestMs).toBeLessThan(SLOW_MS)
    for (const caller of callers) caller.hangUp()
  })
})
