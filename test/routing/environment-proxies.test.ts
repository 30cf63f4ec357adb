import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type Network, startNetwork } from '../fixtures/network.ts'
import { type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'outside.test': ['127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
}
const MODELS = ['far', 'near', 'excepted', 'own', 'outside', 'metadata', 'unknown']
const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

let upstream: ScriptedUpstream
let proxy: ProxyServer
let other: ProxyServer
let network: Network
let gateway: RunningGateway

beforeAll(async () => {
  upstream = await startUpstream()
  const routes = new Map(
    ['far.test', 'own.test', 'outside.test', 'metadata.test', 'unknown.test'].map((host) => [
      `${host}:80`,
      upstream.port,
    ]),
  )
  ;[proxy, other] = await Promise.all([startHttpProxy(routes), startHttpProxy(routes)])
  network = await startNetwork((name) => NAMES[name] ?? [], upstream.port, ['169.254.169.254'])
  gateway = await startGateway({
    env: {
      ...network.env,
      HTTP_PROXY: `http://ann:a%3Ab%40c@${proxy.address}`,
      NO_PROXY: 'excepted.test,.internal',
    },
    config: {
      options: { retries: 0 },
      models: priced(MODELS),
      channels: [
        channel('far', 'http://far.test/v1'),
        channel('near', upstream.baseUrl('near')),
        channel('excepted', 'http://a.excepted.test:9/v1'),
        channel('own', 'http://own.test/v1', { proxy: `http://ann:a%3Ab%40c@${other.address}` }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
  for (const name of ['outside', 'metadata', 'unknown']) {
    await manage(gateway.url, ROOT_ACCOUNT, 'POST /api/channel/', {
      name,
      type: 8,
      key: 'sk-any',
      base_url: `http://${name}.test`,
      models: name,
    })
  }
})
afterAll(async () => {
  await gateway?.discard()
  await network?.stop()
  await Promise.all([proxy, other].map((server) => server?.close()))
  await upstream?.stop()
})

const statusOf = async (model: string): Promise<number> =>
  (await call(gateway.url, ask(model), { key: 'ann' })).status

describe('the proxy of the environment', () => {
  test('is used by channels that name none, and the start says so without its password', async () => {
    upstream.script('', wholeChat({ text: 'hi' }))
    await statusOf('far')
    expect(proxy.tunnels).toContain('far.test:80')
    await expect
      .poll(() => gateway.logs())
      .toContain(
        `HTTP_PROXY: channels without a proxy call http addresses through ${proxy.address}, but for private ones and those in NO_PROXY.`,
      )
    expect(gateway.logs()).not.toMatch(/a%3Ab%40c|a:b@c/)
  })

  test("is used neither for loopback addresses and exceptions nor in place of a channel's proxy", async () => {
    upstream.script('near', wholeChat({ text: 'hi' }))
    expect(await statusOf('near')).toBe(200)
    await statusOf('excepted')
    await statusOf('own')
    expect(other.tunnels).toEqual(['own.test:80'])
    expect(proxy.tunnels.join()).not.toMatch(/127\.0\.0\.1|excepted|own/)
  })

  test('gets no name that was set over HTTP and belongs to a metadata service, or cannot be resolved here', async () => {
    await statusOf('outside')
    expect(proxy.tunnels).toContain('outside.test:80')
    for (const name of ['metadata', 'unknown']) expect(await statusOf(name)).toBe(500)
    expect(proxy.tunnels.join()).not.toMatch(/metadata|unknown/)
    await expect.poll(() => gateway.logs()).toContain('"cause":"EMETADATA"')
  })
})
