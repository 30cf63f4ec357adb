import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { contentFrame } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { randomFrom } from '../fixtures/random.ts'
import { type Slowness, slowClients } from '../fixtures/slow-clients.ts'
import { ask, askStream, startFixture } from '../fixtures/fixture.ts'
import { nightSeed } from './night-seed.ts'

const CLIENTS = 1_000
/**
 * The maximum milliseconds that each client may keep its connection: the gateway's own timeout, the interval
 * of its checks, and a margin for a busy machine.
 */
const LONGEST_MS: Record<Slowness, number> = {
  'says nothing': 10_000 + 10_000,
  headers: 10_000 + 10_000,
  body: 10_000 + 10_000,
  // The call ends with its channel's timeout; bytes sent until then may stay unread for a minute.
  'reads nothing': 10_000 + 60_000 + 30_000,
}

test.each(Object.keys(LONGEST_MS) as Slowness[])(
  `${CLIENTS} slow clients do not delay the calls of others, and are disconnected after the timeout: %s`,
  { timeout: 180_000 },
  async (slowness) => {
    const random = randomFrom(nightSeed())
    const fixture = await startFixture((upstream) => ({
      models: priced(['m', 'endless']),
      channels: [
        channel('m', upstream.baseUrl('m')),
        channel('endless', upstream.baseUrl('endless'), { timeouts: { total: '10s' } }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }))
    onTestFinished(() => fixture.close())
    const frame = contentFrame('x').replace('{', `{"obfuscation":"${'x'.repeat(1_000)}",`)
    fixture.upstream.script('endless', { kind: 'stream', frames: Array(500).fill(frame), ending: 'stall' })
    const reads = JSON.stringify(askStream('endless'))
    const body = slowness === 'reads nothing' ? reads : `{${' '.repeat(1_000)}`
    const length = slowness === 'reads nothing' ? reads.length : Math.ceil(1_000_000 * (1 + random()))
    const head =
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\n` +
      `content-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n`
    const waited = async (): Promise<number> => {
      const began = performance.now()
      const { status } = await call(fixture.gateway.url, ask('m'), { key: 'ann' })
      expect(status).toBeOneOf([200, 503])
      await sleep(20)
      return performance.now() - began - 20
    }
    const before: number[] = []
    while (before.length < 200) before.push(await waited())
    const clients = await slowClients(fixture.gateway.port, CLIENTS, slowness, head, body)
    const open = (): number => clients.filter(({ lasted }) => lasted() === undefined).length
    const waits: number[] = []
    const deadline = performance.now() + LONGEST_MS[slowness]
    while (performance.now() < deadline && open() > 0) waits.push(await waited())
    const [p99, baseline] = [waits, before].map(ninetyNinth)
    console.log(
      `${slowness}: ${waits.length} calls meanwhile, p99 ${p99?.toFixed(0)} ms, ${baseline?.toFixed(0)} ms without them;  ${open()} still open`,
    )
    // A client that reads nothing does not notice the end of its connection; its upstream and its call are
    // over.
    if (slowness === 'reads nothing')
      expect(fixture.upstream.received('endless').filter(({ endedAt }) => endedAt === undefined)).toEqual([])
    else expect(open()).toBe(0)
    expect(waits.length).toBeGreaterThan(100)
    // Ten milliseconds are no noticeable delay.
    expect(p99).toBeLessThan(2 * (baseline ?? 0) + 10)
    for (const client of clients) client.hangUp()
  },
)

function ninetyNinth(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0
}
