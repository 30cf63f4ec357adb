import { Agent } from 'node:http'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countsOf, COUNTED_CALLS, type CallCounts } from '../fixtures/call-counts.ts'
import { call } from '../fixtures/client.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { nextMessage, start } from './child.ts'
import { byTier } from '../runner/tier.ts'

const LIMITS = JSON.parse(
  readFileSync(new URL('../../bench/call-counts.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, CallCounts>>

const WARM_UP = byTier(1_000, 2_000)
const CALLS = byTier(2_000, 4_000)
const AT_ONCE = 16
const LIMIT = { requests: 1_000_000, tokens: 1_000_000_000, window: '1m' }

/** A kind of call: its path, its model, and what it brings along. */
const KINDS = {
  plain: { path: '/v1/chat/completions', model: 'plain', stream: false, headers: {}, key: 'ann' },
  'converted stream': {
    path: '/v1/chat/completions',
    model: 'stream',
    stream: true,
    headers: {},
    key: 'ann',
  },
  'with everything': {
    path: '/v1/chat/completions',
    model: 'guarded',
    stream: false,
    headers: { 'x-session-id': 'a' },
    key: 'limited',
  },
} as const

const upstreams = (['completion', 'short-stream'] as const).map((kind) =>
  start(new URL('./ready-upstream.ts', import.meta.url), kind, '0'),
)
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
let gateway: RunningGateway
beforeAll(async () => {
  const [whole, streamed] = await Promise.all(
    upstreams.map(async (one) => `http://127.0.0.1:${await nextMessage<number>(one)}/v1`),
  )
  gateway = await startGateway({
    config: {
      models: priced(['plain', 'stream', 'guarded']),
      channels: [
        channel('plain', String(whole)),
        channel('guarded', String(whole), { keys: ['one', 'two'] }),
        channel('stream', String(streamed), { protocol: 'messages' }),
      ],
      guards: [{ name: 'words', do: 'block', models: ['guarded'], match: { words: ['forbidden'] } }],
      users: [
        ROOT,
        user(2, 'ann', [
          token('ann', { remain_quota: AMPLE }),
          token('limited', { remain_quota: AMPLE, rate_limit: LIMIT, content_log: { what: 'full' } }),
        ]),
      ],
    },
    env: { LOG_LEVEL: 'info', ...COUNTED_CALLS },
  })
})
afterAll(async () => {
  agent.destroy()
  for (const one of upstreams) one.kill()
  await gateway?.discard()
})

async function make(kind: keyof typeof KINDS, calls: number): Promise<void> {
  const { path, model, stream, headers, key } = KINDS[kind]
  let left = calls
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const messages = [{ role: 'user', content: `${left} ${'word '.repeat(400)}` }]
      const answer = await call(gateway.url, { model, stream, messages }, { key, path, headers, agent })
      expect(answer.status, answer.text).toBe(200)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
}

// What a call does is counted, because times are noise on a busy machine. A change that needs more raises the limit in
// `bench/call-counts.json`, and says why.
test.each(Object.keys(KINDS) as (keyof typeof KINDS)[])(
  'a call does no more than bench/call-counts.json states: %s',
  async (kind) => {
    await make(kind, WARM_UP)
    const counts = await countsOf(gateway, () => make(kind, CALLS))
    const each = Object.entries(counts).map(([name, sum]) => [name, sum / CALLS] as const)
    for (const [name, value] of each)
      expect(value, name).toBeLessThanOrEqual(LIMITS[kind]?.[name as keyof CallCounts] ?? 0)
  },
)
