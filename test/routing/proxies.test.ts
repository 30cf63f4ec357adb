import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import {
  PROXY_PASSWORD,
  PROXY_USER,
  type ProxyServer,
  startHttpProxy,
  startNoProxy,
  startSocksProxy,
} from '../fixtures/proxy-servers.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'

const file = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const CERTIFICATE = file('localhost.cert.pem')
const CREDENTIALS = 'ann:a%3Ab%40c'
const MODELS = [
  'http',
  'socks',
  'http-tls',
  'socks-tls',
  'refusing',
  'socks-refusing',
  'page',
  'mute',
  'spare',
]
const LONG = 'x'.repeat(300_000)

let upstream: ScriptedUpstream
let secure: Server
let proxies: Record<'http' | 'socks' | 'page' | 'mute', ProxyServer>
let gateway: RunningGateway

beforeAll(async () => {
  upstream = await startUpstream()
  const said = wholeChat({ text: LONG })
  secure = createServer({ key: readFileSync(file('localhost.key.pem')), cert: readFileSync(CERTIFICATE) })
  secure.on('request', (request, reply) => {
    request.resume().on('end', () => {
      reply.writeHead(200, { 'content-type': 'application/json' }).end('body' in said ? said.body : '')
    })
  })
  await once(secure.listen(0, '127.0.0.1'), 'listening')
  const [http, socks, page, mute] = await Promise.all([
    startHttpProxy(),
    startSocksProxy(),
    startNoProxy('<html>no proxy here</html>\r\n\r\n'),
    startNoProxy(undefined),
  ])
  proxies = { http, socks, page, mute }
  const tls = `https://localhost:${(secure.address() as AddressInfo).port}/v1`
  const through = (name: string, address: string, proxy: string): Record<string, unknown> =>
    channel(name, address, { proxy, timeouts: { connect: name === 'mute' ? '300ms' : '60s' } })
  gateway = await startGateway({
    env: { NODE_EXTRA_CA_CERTS: CERTIFICATE },
    config: {
      models: priced(MODELS),
      channels: [
        through('http', upstream.baseUrl('http'), `http://${CREDENTIALS}@${http.address}`),
        through('socks', upstream.baseUrl('socks'), `socks5://${CREDENTIALS}@${socks.address}`),
        through('http-tls', tls, `http://${CREDENTIALS}@${http.address}/`),
        through('socks-tls', tls, `socks5://${CREDENTIALS}@${socks.address}`),
        through('refusing', upstream.baseUrl('refusing'), `http://ann:wrong@${http.address}`),
        through('socks-refusing', upstream.baseUrl('refusing'), `socks5://ann:wrong@${socks.address}`),
        through('page', upstream.baseUrl('page'), `http://${page.address}`),
        through('mute', upstream.baseUrl('mute'), `socks5://${mute.address}`),
        channel('spare', upstream.baseUrl('spare'), { models: ['page'], priority: -1 }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await Promise.all(Object.values(proxies ?? {}).map((proxy) => proxy.close()))
  await upstream?.stop()
  secure?.closeAllConnections()
  secure?.close()
})

const chat = (model: string) => call(gateway.url, ask(model), { key: 'ann' })

describe('a channel with a proxy', () => {
  test.each(['http', 'socks'] as const)(
    'a channel is called through its proxy, over a connection that is reused: %s',
    async (kind) => {
      upstream.script(kind, wholeChat({ text: LONG }))
      const tunnelsOfCall = async (): Promise<number> => {
        const count = () => proxies[kind].tunnels.filter((to) => to === `127.0.0.1:${upstream.port}`).length
        const before = count()
        const { status, text } = await chat(kind)
        expect(status, text.slice(0, 500)).toBe(200)
        expect(text).toContain(LONG)
        return count() - before
      }
      expect(await tunnelsOfCall()).toBe(1)
      // Repeated, because the upstream closes a connection that is idle for seconds.
      await expect.poll(tunnelsOfCall).toBe(0)
    },
  )

  test.each([
    ['http-tls', 'http'],
    ['socks-tls', 'socks'],
  ] as const)(
    "a channel is called through its proxy in TLS, and the proxy resolves the upstream's name: %s",
    async (model, kind) => {
      const { status, text } = await chat(model)
      expect(status, text.slice(0, 500)).toBe(200)
      expect(text).toContain(LONG)
      const { port } = secure.address() as AddressInfo
      expect(proxies[kind].tunnels).toContain(`localhost:${port}`)
    },
  )

  test.each([
    ['refusing', 'the proxy refused the credentials'],
    ['socks-refusing', 'the proxy refused the credentials'],
    ['mute', 'connect time-out'],
  ])('a call through a broken proxy fails, and the log names the cause: %s', async (model, cause) => {
    expect((await chat(model)).status).toBe(500)
    await expect.poll(() => gateway.logs()).toContain(`"cause":"${cause}"`)
    expect(gateway.logs()).not.toContain('wrong')
  })

  test("an upstream's error that repeats the credentials of the channel's proxy is passed on without them", async () => {
    const pair = `${PROXY_USER}:${PROXY_PASSWORD}`
    const told = ['base64', 'base64url', 'hex'].map((encoding) =>
      Buffer.from(pair).toString(encoding as BufferEncoding),
    )
    const message = [PROXY_PASSWORD, pair, encodeURIComponent(pair), ...told].join(' ')
    upstream.script('http', { kind: 'status', status: 400, body: errorBody(`via ${message} end`) })
    const { status, text } = await chat('http')
    expect(status).toBe(400)
    expect(text).toContain(`via ${Array(6).fill('[redacted]').join(' ')} end`)
    expect(gateway.logs()).not.toContain(PROXY_PASSWORD)
  })

  test('another channel is tried where the server configured as a proxy answers with a web page', async () => {
    upstream.script('spare', { kind: 'whole' })
    expect((await chat('page')).status).toBe(200)
    await expect.poll(() => gateway.logs()).toContain('"cause":"the server is not a proxy"')
  })
})
