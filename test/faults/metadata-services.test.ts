import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Network, startNetwork } from '../fixtures/network.ts'
import { ask, startFixture, type Fixture } from '../fixtures/fixture.ts'

const ACCOUNTS = {
  root: { id: 1, accessToken: ROOT.access_token },
  admin: { id: 4, accessToken: 'the-access-token-of-an-admin' },
} as const

/** Names of the cloud's services; the second also has a harmless address. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'metadata.test': ['169.254.169.254'],
  'mixed.test': ['127.0.0.1', '100.100.100.200'],
  'azure.test': ['168.63.129.16'],
  'six.test': ['fd00:ec2::254'],
  'mapped.test': ['::ffff:169.254.169.254'],
  'inside.test': ['127.0.0.1'],
  'declared.test': ['169.254.169.254'],
  'alerts.test': ['169.254.170.2'],
}

let internet: Server
let network: Network
let fixture: Fixture
beforeAll(async () => {
  internet = createServer((_, reply) => void reply.end('{}')).listen(0, '127.0.0.1')
  await once(internet, 'listening')
  // Redirects the cloud's addresses to a port of this machine, so that none is really called.
  const outside = Object.values(NAMES)
    .flat()
    .filter((address) => address !== '127.0.0.1')
  network = await startNetwork((name) => NAMES[name] ?? [], port(), outside)
  fixture = await startFixture(
    () => ({
      rate_limits: {},
      options: { unpriced_models: 'free', retries: 0 },
      channels: [channel('declared', 'http://declared.test:9/v1')],
      alerts: [{ url: 'http://alerts.test:9', secret: `whsec_${'A'.repeat(32)}`, events: ['quota.low'] }],
      users: [ROOT, user(4, 'ada', [token('ada')], { access_token: ACCOUNTS.admin.accessToken, role: 10 })],
    }),
    { env: network.env },
  )
})
afterAll(async () => {
  await fixture?.close()
  await network?.stop()
  internet?.close()
})

const make = (who: keyof typeof ACCOUNTS, name: string, baseUrl: string) =>
  manage<{ ids: number[] }>(fixture.gateway.url, ACCOUNTS[who], 'POST /api/channel/', {
    name,
    type: 8,
    key: 'sk-any',
    base_url: baseUrl,
    models: name,
  })

const port = (): number => (internet.address() as AddressInfo).port

const reached = (): string[] => network.connections().map(({ address }) => address)

describe("a cloud's metadata service", () => {
  test.each([
    'http://169.254.169.254',
    'http://169.254.170.2/v1',
    'http://2852039166',
    'http://0xa9.0376.169.254',
    'http://168.63.129.16',
    'http://100.100.100.200',
    'http://192.0.0.192',
    'http://[fd00:ec2::254]',
    'http://[::ffff:169.254.169.254]',
  ])("a cloud metadata service is refused as a channel's address over HTTP: %s", async (address) => {
    for (const who of ['admin', 'root'] as const) {
      const { status, message } = await make(who, 'refused', address)
      expect([status, message]).toEqual([
        400,
        "base_url: expected another address than that of a cloud's metadata service",
      ])
    }
  })

  test.each([
    'http://169.254.169.254:3128',
    'socks5://0xa9fea9fe:1080',
    'socks5://2852039166',
    'SOCKS5H://ann:secret@0251.0376.0251.0376:9',
    'socks5://169。254。169。254:9',
    'socks5://%31%36%39.254.169.254:9',
    'socks5://169.254.169.254.:9',
    'socks5://[::ffff:169.254.169.254]:9',
  ])(
    'a cloud metadata service is refused as the proxy of a channel, whether saved or tested over HTTP: %s',
    async (proxy) => {
      const message = "proxy: expected another address than that of a cloud's metadata service"
      const made = {
        type: 8,
        key: 'sk-any',
        base_url: 'http://127.0.0.1:9',
        setting: JSON.stringify({ proxy }),
      }
      const saved = { ...made, name: 'by-proxy', models: 'by-proxy' }
      for (const who of ['admin', 'root'] as const)
        expect(await manage(fixture.gateway.url, ACCOUNTS[who], 'POST /api/channel/', saved)).toMatchObject({
          status: 400,
          message,
        })
      const draft = { channel: made, model: 'm' }
      for (const path of ['test', 'models'] as const)
        expect(
          await manage(fixture.gateway.url, ACCOUNTS.root, `POST /api/channel/${path}`, draft),
        ).toMatchObject({ status: 400, message })
    },
  )

  test('the address of a cloud metadata service is refused when a channel is changed to it', async () => {
    const { data } = await make('root', 'changed', 'http://127.0.0.1:9')
    const change = { id: data.ids[0], base_url: 'http://169.254.169.254', key: 'sk-any' }
    expect((await manage(fixture.gateway.url, ACCOUNTS.root, 'PUT /api/channel/', change)).status).toBe(400)
  })

  test.each(['metadata.test', 'mixed.test', 'azure.test', 'six.test', 'mapped.test'])(
    'no connection is made where the host name of a channel resolves to a cloud metadata service: %s',
    async (name) => {
      const { data } = await make('admin', name, `http://${name}:9`)
      const tested = await manage(fixture.gateway.url, ACCOUNTS.root, `GET /api/channel/test/${data.ids[0]}`)
      expect(tested.body).toMatchObject({ success: false, message: 'no answer: EMETADATA' })
      const draft = { channel: { type: 8, key: 'sk-any', base_url: `http://${name}:9` }, model: 'm' }
      for (const path of ['test', 'models'] as const)
        expect(
          await manage(fixture.gateway.url, ACCOUNTS.root, `POST /api/channel/${path}`, draft),
        ).toMatchObject({ message: 'no answer: EMETADATA' })
      expect((await fixture.chat('sk-ada', ask(name))).status).toBe(500)
      expect(reached().filter((address) => (NAMES[name] ?? []).includes(address))).toEqual([])
    },
  )

  test('a channel may have an address of a private network that is not a cloud metadata service', async () => {
    const { data } = await make('admin', 'inside', `http://inside.test:${port()}`)
    const tested = await manage(fixture.gateway.url, ACCOUNTS.root, `GET /api/channel/test/${data.ids[0]}`)
    expect(tested.body).toMatchObject({ success: true })
  })

  test('a cloud metadata service receives no alerts, even if a host name in gateway.yaml resolves to it', async () => {
    const fields = { id: 4, action: 'add_quota', mode: 'override', value: 1 }
    const lowered = await manage(fixture.gateway.url, ACCOUNTS.root, 'POST /api/user/manage', fields)
    expect(lowered.status).toBe(200)
    const failure = '"receiver":"alerts.test:9","reason":"it cannot be reached (EMETADATA)"'
    await expect.poll(() => fixture.gateway.logs()).toContain(failure)
    expect(reached()).not.toContain('169.254.170.2')
  })

  test('a cloud metadata service is permitted where gateway.yaml names its address: the operator decides', async () => {
    await fixture.chat('sk-ada', ask('declared'))
    expect(reached()).toContain('169.254.169.254')
  })
})
