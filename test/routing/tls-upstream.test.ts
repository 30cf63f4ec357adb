import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const tlsFile = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const CERTIFICATE = tlsFile('localhost.cert.pem')

let secure: Server
let silent: ReturnType<typeof createPlainServer>
let gateway: RunningGateway
let untrusting: RunningGateway
let connections = 0
let resumed = 0

beforeAll(async () => {
  const said = wholeChat({ text: 'under lock and key' })
  secure = createServer(
    { key: readFileSync(tlsFile('localhost.key.pem')), cert: readFileSync(CERTIFICATE) },
    (request, reply) => {
      request.resume().on('end', () => {
        reply.writeHead(200, { 'content-type': 'application/json' }).end('body' in said ? said.body : '')
        if (request.headers['x-close'] === 'yes') request.socket.end()
      })
    },
  ).listen(0, '127.0.0.1')
  // An idle connection outlasts a machine that halts for a while.
  secure.keepAliveTimeout = 60_000
  secure.on('secureConnection', (socket) => {
    connections += 1
    if (socket.isSessionReused()) resumed += 1
  })
  silent = createPlainServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await Promise.all(
    [secure, silent].map((server) => new Promise((resolve) => server.once('listening', resolve))),
  )
  const at = (server: { address(): unknown }): number => (server.address() as AddressInfo).port
  // On a slow machine, a handshake may take longer than the default.
  const timeouts = { connect: '60s' }
  const config = {
    options: { retries: 0 },
    models: priced(['named', 'numbered', 'closing', 'mute']),
    channels: [
      channel('named', `https://localhost:${at(secure)}/v1`, { timeouts }),
      channel('numbered', `https://127.0.0.1:${at(secure)}/v1`, { timeouts }),
      channel('closing', `https://localhost:${at(secure)}/v1`, { timeouts, headers: { 'x-close': 'yes' } }),
      channel('mute', `https://localhost:${at(silent)}/v1`, { timeouts: { connect: '500ms' } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }
  ;[gateway, untrusting] = await Promise.all([
    startGateway({ config, env: { NODE_EXTRA_CA_CERTS: CERTIFICATE } }),
    startGateway({ config }),
  ])
})
afterAll(async () => {
  await Promise.all([gateway.discard(), untrusting.discard()])
  secure.closeAllConnections()
  secure.close()
  silent.close()
})

function ask(model: string, of = gateway): Promise<FullResponse> {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] }
  return call(`${of.url}/v1/chat/completions`, body, { key: 'sk-ann' })
}

describe('an upstream with TLS', () => {
  test('successive calls to an upstream with TLS use one connection', async () => {
    for (let i = 0; i < 3; i++) expect((await ask('named')).text).toContain('under lock and key')
    expect(connections).toBe(1)
  })

  test('an upstream with TLS may be configured by its IP address', async () => {
    expect((await ask('numbered')).status).toBe(200)
  })

  test('an upstream with TLS resumes its session on the next connection', async () => {
    const before = resumed
    for (let i = 0; i < 3; i++) expect((await ask('closing')).status).toBe(200)
    expect(resumed).toBeGreaterThan(before)
  })

  test('an upstream that does not finish the TLS handshake is aborted at the connect timeout', async () => {
    expect((await ask('mute')).status).toBe(500)
    await expect.poll(() => gateway.logs()).toContain('"failure":"connect time-out"')
  })

  test('an upstream with an untrusted certificate gets no data', async () => {
    const before = connections
    expect((await ask('named', untrusting)).status).toBe(500)
    await expect.poll(() => untrusting.logs()).toContain('"failure":"DEPTH_ZERO_SELF_SIGNED_CERT"')
    expect(connections).toBe(before)
  })
})
