import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

const gateways: RunningGateway[] = []
afterAll(() => Promise.all(gateways.map((gateway) => gateway.discard())))

/** A gateway with a global limit that trusts this machine as a proxy. */
async function limited(requests: number, window: string): Promise<RunningGateway> {
  const gateway = await startGateway({
    config: {
      options: { trusted_proxies: ['127.0.0.1/32'] },
      rate_limits: { global: { requests, window } },
      users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
    },
  })
  gateways.push(gateway)
  return gateway
}

const self = ({ url }: RunningGateway, address: string) =>
  manage(url, ANN, 'GET /api/user/self', undefined, { 'x-forwarded-for': address })

const get = ({ url }: RunningGateway, path: string, address: string, method = 'GET'): Promise<FullResponse> =>
  call(url, undefined, { method, path, headers: { 'x-forwarded-for': address } })

describe('the global limit', () => {
  let gateway: RunningGateway
  let last = 0
  /** A new address for each test, whose limit is unused. */
  let address: string
  afterEach(() => void (last += 1))
  const fresh = async (): Promise<void> => {
    gateway ??= await limited(3, '1h')
    address = `10.0.0.${last}`
  }

  test('the global rate limit of the management API refuses requests above its number with 429 and retry-after', async () => {
    await fresh()
    const began = performance.now()
    /** What is left of the hour at least, in whole seconds. */
    const least = (): number => 3_600 - Math.ceil((performance.now() - began) / 1_000)
    for (const remaining of ['2', '1', '0']) {
      const { status, headers } = await self(gateway, address)
      expect(status).toBe(200)
      expect(headers).toMatchObject({ 'ratelimit-limit': '3', 'ratelimit-remaining': remaining })
      expect(Number(headers['ratelimit-reset'])).toBeGreaterThanOrEqual(least())
      expect(Number(headers['ratelimit-reset'])).toBeLessThanOrEqual(3600)
      expect(headers).not.toHaveProperty('retry-after')
    }
    const refused = await self(gateway, address)
    expect(refused).toMatchObject({ status: 429, success: false })
    expect(refused.message).toMatch(/rate limit of this address is reached/)
    expect(refused.body).not.toHaveProperty('data')
    expect(refused.headers).toMatchObject({ 'ratelimit-limit': '3', 'ratelimit-remaining': '0' })
    const wait = Number(refused.headers['retry-after'])
    expect(wait).toBeGreaterThanOrEqual(least())
    expect(wait).toBeLessThanOrEqual(3600)
  })

  test('the global rate limit of the management API counts each client address separately', async () => {
    await fresh()
    for (let n = 0; n < 4; n++) await self(gateway, address)
    expect((await self(gateway, address)).status).toBe(429)
    const other = await self(gateway, '10.9.9.9')
    expect(other).toMatchObject({ status: 200, headers: { 'ratelimit-remaining': '2' } })
  })

  test('the global rate limit of the management API also counts unauthenticated and refused requests', async () => {
    await fresh()
    expect((await get(gateway, '/api/user/self', address)).status).toBe(401)
    const wrong = { 'x-forwarded-for': address }
    const asked = await manage(gateway.url, ANN, 'GET /api/log/self?start_timestamp=x', undefined, wrong)
    expect(asked.status).toBe(400)
    expect((await manage(gateway.url, ANN, 'GET /api/log/', undefined, wrong)).status).toBe(403)
    expect((await self(gateway, address)).status).toBe(429)
  })

  test('the global rate limit of the management API also counts requests for unknown paths and methods', async () => {
    await fresh()
    expect((await get(gateway, '/api/no/such', address)).status).toBe(404)
    expect((await get(gateway, '/api/user/self', address, 'DELETE')).status).toBe(405)
    expect((await get(gateway, '/v1/dashboard/nothing', address)).status).toBe(404)
    expect((await get(gateway, '/api/no/such', address)).status).toBe(429)
    expect((await self(gateway, address)).status).toBe(429)
  })

  test('the global rate limit of the management API does not count or limit requests for other paths', async () => {
    await fresh()
    for (let n = 0; n < 6; n++) {
      expect((await get(gateway, '/healthz', address)).status).toBe(200)
      const answer = await get(gateway, '/nothing', address)
      expect(answer.status).toBe(404)
      expect(answer.headers).not.toHaveProperty('ratelimit-limit')
    }
    expect(await self(gateway, address)).toMatchObject({
      status: 200,
      headers: { 'ratelimit-remaining': '2' },
    })
  })
})

test('a management rate limit of 5 a second never admits more than 5 requests in any interval of a second', async () => {
  const gateway = await limited(5, '1s')
  const through: { readonly sent: number; readonly answered: number }[] = []
  const refused: { readonly sent: number; readonly answered: number }[] = []
  const once = async (): Promise<void> => {
    const sent = performance.now()
    const { status } = await self(gateway, '10.0.0.1')
    const seen = { sent, answered: performance.now() }
    if (status === 200) through.push(seen)
    else {
      expect(status).toBe(429)
      refused.push(seen)
    }
  }
  while (through.length < 15) {
    await once()
    await sleep(15)
  }
  // A busy machine may have been too slow to exceed the limit by one request after another.
  while (refused.length === 0) await Promise.all(Array.from({ length: 10 }, once))
  // The gateway counts a request at some moment between these two times. Six requests whose whole span is
  // within a second would be one too many.
  for (const { sent } of through) {
    const within = through.filter((one) => one.sent >= sent && one.answered < sent + 1000)
    expect(within.length).toBeLessThanOrEqual(5)
  }
  // No more is refused than necessary: before each refusal there were five admitted calls within a second,
  // give or take a sixteenth.
  expect(refused.length).toBeGreaterThan(0)
  for (const one of refused) {
    const before = through.filter(({ sent, answered }) => answered >= one.sent - 1063 && sent <= one.answered)
    expect(before.length).toBeGreaterThanOrEqual(5)
  }
})

let unlimited: Promise<RunningGateway> | undefined
/** A gateway without a global limit that several tests share. */
const unlimitedGateway = (): Promise<RunningGateway> => (unlimited ??= limited(0, '1s'))

test('a limit of 0 requests means that there is no limit', async () => {
  const gateway = await unlimitedGateway()
  for (let n = 0; n < 10; n++) {
    const { status, headers } = await self(gateway, '10.0.0.1')
    expect(status).toBe(200)
    expect(headers).not.toHaveProperty('ratelimit-limit')
  }
})

describe('unknown paths and methods', () => {
  let gateway: RunningGateway
  const management = async (method: string, path: string) => {
    gateway ??= await unlimitedGateway()
    const answer = await get(gateway, path, '10.0.0.1', method)
    return { status: answer.status, headers: answer.headers, body: JSON.parse(answer.text) }
  }

  test('an unknown path below /api/ is a 404 in the management envelope', async () => {
    const { status, body } = await management('GET', '/api/nothing')
    expect(status).toBe(404)
    expect(body).toMatchObject({ success: false, message: expect.stringContaining('/api/nothing') })
    expect(body).not.toHaveProperty('error')
  })

  test('an unsupported method below /api/ is a 405 in the management envelope that names the supported ones', async () => {
    const { status, headers, body } = await management('DELETE', '/api/user/self')
    expect(status).toBe(405)
    expect(headers['allow']).toBe('GET, HEAD, PUT')
    expect(body).toMatchObject({ success: false, message: expect.stringContaining('GET') })
    expect(body).not.toHaveProperty('error')
  })

  test('an unknown path or method outside /api/ is an error in the format of the API that the path belongs to', async () => {
    expect((await management('GET', '/nothing')).body).toMatchObject({ error: { code: 'not_found' } })
    expect((await management('GET', '/v1/chat/completions')).body).toMatchObject({
      error: { code: 'method_not_allowed' },
    })
    const { status, body } = await management('GET', '/v1/messages')
    expect(status).toBe(405)
    expect(body).toEqual({
      type: 'error',
      error: { type: 'gateway_error', message: expect.any(String), code: 'method_not_allowed' },
      request_id: expect.any(String),
    })
  })
})
