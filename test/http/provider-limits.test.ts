import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const LIMIT = 4_000

/** A provider whose keys have this much left, and its answers with 429. */
async function startProvider(left: Record<string, number>, states = true) {
  const met = { refused: 0, served: 0 }
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const key = String(request.headers.authorization).replace('Bearer ', '')
      const isServed = (left[key] ?? 0) > 0
      if (isServed) left[key] = (left[key] ?? 0) - 1
      met[isServed ? 'served' : 'refused'] += 1
      response.writeHead(isServed ? 200 : 429, {
        'content-type': 'application/json',
        ...(states && {
          'x-ratelimit-limit-requests': String(LIMIT),
          'x-ratelimit-remaining-requests': String(left[key] ?? 0),
          'x-ratelimit-reset-requests': '10m0s',
        }),
      })
      response.end(isServed ? ANSWER : '{"error":{"message":"slow down","type":"rate_limit_error"}}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { met, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

const ANSWER = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

async function startWith(channels: readonly Record<string, unknown>[]): Promise<Fixture> {
  const fixture = await startFixture(() => ({
    models: priced(['m']),
    channels,
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  onTestFinished(() => fixture.close())
  return fixture
}

/** Makes calls; resolves to the number of those that the client saw refused. */
async function callMany(fixture: Fixture, calls: number, atOnce: number): Promise<number> {
  let left = calls
  let refused = 0
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      if ((await fixture.chat('ann', ask('m'))).status !== 200) refused += 1
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return refused
}

const KEYS = ['full', 'low', 'none']
const sharesLeft = (): Record<string, number> => ({ full: LIMIT * 0.9, low: LIMIT * 0.1, none: 0 })

test('with keys at 90, 10 and 0 per cent, less than 1 per cent of 3,000 calls meet a 429, and a third without statements', async () => {
  const stating = await startProvider(sharesLeft())
  expect(await callMany(await startWith([channel('m', stating.url, { keys: KEYS })]), 3_000, 16)).toBe(0)
  const silent = await startProvider(sharesLeft(), false)
  await callMany(await startWith([channel('m', silent.url, { keys: KEYS })]), 3_000, 16)
  console.info(`met a 429: ${stating.met.refused} with statements, ${silent.met.refused} without`)
  expect(stating.met).toMatchObject({ served: 3_000 })
  expect(stating.met.refused).toBeLessThan(30)
  expect(silent.met.refused).toBeGreaterThan(900)
}, 120_000)

test('a channel whose keys are spent is passed over for one of equal priority, not for one of a lower', async () => {
  const [spent, equal, lower] = await Promise.all([
    startProvider({ key: 1 }),
    startProvider({ key: 1_000 }),
    startProvider({ key: 1_000 }),
  ])
  const at = (name: string, url: string, priority: number): Record<string, unknown> =>
    channel(name, url, { keys: ['key'], models: ['m'], priority })
  const fixture = await startWith([
    at('spent', spent.url, 1),
    at('equal', equal.url, 1),
    at('lower', lower.url, 0),
  ])
  expect(await callMany(fixture, 60, 1)).toBe(0)
  expect(spent.met).toEqual({ served: 1, refused: 0 })
  expect(equal.met.served).toBe(59)
  expect(lower.met.served).toBe(0)
})

test('GET /api/channel/health and the metrics show what a provider stated of each key', async () => {
  const provider = await startProvider({ one: 40, two: 0 })
  const fixture = await startWith([channel('m', provider.url, { keys: ['one', 'two'] })])
  await callMany(fixture, 3, 1)
  const { data } = await manage<{ items: { name: string; keys: { limits: object[] } }[] }>(
    fixture.gateway.url,
    AS_ROOT,
    'GET /api/channel/health',
  )
  const limits = data.items.find(({ name }) => name === 'm')?.keys.limits
  const left = (remaining: number) => ({
    model: 'm',
    requests: { limit: LIMIT, remaining, resets_at: expect.any(Number) },
  })
  expect(limits).toEqual([left(37), left(0)])
  expect(JSON.stringify(data)).not.toContain('"one"')
  const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
  expect(metrics).toMatch(
    /^sluice_provider_limit_remaining\{channel="m",key="1",model="m",kind="requests"\} 37$/m,
  )
  expect(metrics).toMatch(
    /^sluice_provider_limit_remaining\{channel="m",key="2",model="m",kind="requests"\} 0$/m,
  )
})
