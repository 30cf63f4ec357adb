import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { createServer, type Server } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'
import { PROXY_PASSWORD, PROXY_USER, type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'

/** Google's hosts, by location. */
const HOSTS = {
  global: 'aiplatform.googleapis.com',
  us: 'aiplatform.us.rep.googleapis.com',
  eu: 'aiplatform.eu.rep.googleapis.com',
  'europe-west4': 'europe-west4-aiplatform.googleapis.com',
} as const
const LOCATIONS = Object.keys(HOSTS) as (keyof typeof HOSTS)[]
/** Locations by model; one channel names none. */
const CASES = [...LOCATIONS.map((location) => [location, location] as const), ['none', 'global'] as const]
const GENERATED = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
})

let vertex: VertexDouble
let secure: Server
let proxy: ProxyServer
let gateway: RunningGateway

beforeAll(async () => {
  vertex = await startVertex(() => ({ body: GENERATED }))
  const [certificate, key] = ['vertex.cert.pem', 'vertex.key.pem'].map((name) =>
    fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url)),
  ) as [string, string]
  secure = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (socket) => {
    const behind = connect(Number(new URL(vertex.url).port), '127.0.0.1')
    socket.on('error', () => behind.destroy()).on('close', () => behind.destroy())
    behind.on('error', () => socket.destroy())
    socket.pipe(behind).pipe(socket)
  })
  await once(secure.listen(0, '127.0.0.1'), 'listening')
  const { port } = secure.address() as AddressInfo
  proxy = await startHttpProxy(new Map(Object.values(HOSTS).map((host) => [`${host}:443`, port])))
  const channel = (model: string, fields: Record<string, unknown>) => ({
    name: model,
    provider: 'vertex',
    protocol: 'gemini',
    proxy: `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`,
    keys: [vertex.serviceAccount],
    models: [model],
    ...fields,
  })
  gateway = await startGateway({
    env: { NODE_EXTRA_CA_CERTS: certificate },
    config: {
      options: { media: { allow_private_networks: true } },
      models: priced(CASES.map(([model]) => model)),
      channels: [...LOCATIONS.map((location) => channel(location, { location })), channel('none', {})],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await proxy?.close()
  secure?.close()
  await vertex?.close()
})

test.each(CASES)(
  'a channel of Vertex calls the host name that belongs to its location: %s',
  async (model, location) => {
    vertex.received.length = 0
    proxy.tunnels.length = 0
    const { status, text } = await call(
      gateway.url,
      '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
      {
        key: 'ann',
        path: `/v1beta/models/${model}:generateContent`,
      },
    )
    expect([status, text]).toEqual([200, GENERATED])
    expect(proxy.tunnels.filter((target) => !target.startsWith('127.0.0.1:'))).toEqual([
      `${HOSTS[location]}:443`,
    ])
    const { path, headers } = vertex.received.find((request) => request.path !== '/token') ?? {}
    expect(headers?.host).toBe(HOSTS[location])
    expect(path).toBe(
      `/v1/projects/my-project/locations/${location}/publishers/google/models/${model}:generateContent`,
    )
  },
)
