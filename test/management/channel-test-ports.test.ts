import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createListener, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }
const SECRET = 'what-stands-inside'

/** Services that may listen in a private network; none of them is a model server. */
const SERVICES: Readonly<Record<string, Server | undefined>> = {
  refused: undefined,
  silent: createListener(() => {}),
  closed: createListener((socket) => socket.once('data', () => socket.destroy())),
  'a banner of another protocol': createListener((socket) => void socket.write(`SSH-2.0-${SECRET}\r\n`)),
  'an error of another protocol': createListener((socket) => void socket.end(`-ERR ${SECRET}\r\n`)),
  'a page': answering((_, reply) => void reply.end(`<html>${SECRET}</html>`)),
  'a page of errors': answering((_, reply) => void reply.writeHead(403).end(SECRET)),
  'a text as JSON': answering((_, reply) => void reply.end(JSON.stringify(SECRET))),
  'an answer without an end': answering((_, reply) => void reply.writeHead(200).write(`{"a":"${SECRET}`)),
}

let gateway: RunningGateway
const errs = answering((_, reply) => {
  reply.writeHead(401, { 'content-type': 'application/json' })
  reply.end(JSON.stringify({ error: { message: SECRET, type: 'x' } }))
})
const sockets = new Set<Socket>()
beforeAll(async () => {
  for (const server of [errs, ...Object.values(SERVICES)]) {
    server?.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('error', () => {})
    })
    server?.listen(0, '127.0.0.1')
    if (server) await once(server, 'listening')
  }
  gateway = await startGateway({
    config: {
      rate_limits: {},
      users: [ROOT, user(4, 'ada', [], { access_token: ADMIN.accessToken, role: 10 })],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  for (const socket of sockets) socket.destroy()
  for (const server of [errs, ...Object.values(SERVICES)]) server?.close()
})

function answering(listener: RequestListener): Server {
  return createServer(listener)
}

async function channelTo(name: string, server: Server | undefined): Promise<number> {
  // Port 9 is for discarded data, so that nothing listens there.
  const port = server ? (server.address() as AddressInfo).port : 9
  const { data } = await manage<{ ids: number[] }>(gateway.url, ADMIN, 'POST /api/channel/', {
    name,
    type: 8,
    models: 'm',
    base_url: `http://127.0.0.1:${port}`,
  })
  return data.ids[0] ?? 0
}

describe('a channel test by an administrator below root', () => {
  test('a channel test by an administrator below root does not reveal open ports without a model server, by message or time', async () => {
    const answers = await Promise.all(
      Object.entries(SERVICES).map(async ([name, server]) => {
        const id = await channelTo(name, server)
        const { body } = await manage(gateway.url, ADMIN, `GET /api/channel/test/${id}`)
        const { data } = await manage<Record<string, unknown>>(gateway.url, ADMIN, `GET /api/channel/${id}`)
        return [name, body, data['response_time']]
      }),
    )
    const same = {
      success: false,
      message: 'no model server answered',
      time: 10,
      model: 'm',
      endpoint: 'chat',
      costs: false,
      needs_repair: false,
    }
    expect(answers).toEqual(Object.keys(SERVICES).map((name) => [name, same, 10_000]))
  })

  test('while channels are tested, other requests of the same administrator are answered', async () => {
    const { silent } = SERVICES
    const ids = await Promise.all(Array.from({ length: 9 }, (_, at) => channelTo(`silent ${at}`, silent)))
    let connected = 0
    silent?.on('connection', () => (connected += 1))
    const order: string[] = []
    const tests = ids.map(async (id) => {
      await manage(gateway.url, ADMIN, `GET /api/channel/test/${id}`)
      order.push('test')
    })
    await expect.poll(() => connected).toBe(9)
    await manage(gateway.url, ADMIN, `GET /api/channel/${ids[0]}`)
    order.push('read')
    await Promise.all(tests)
    expect(order[0]).toBe('read')
  })

  test('a channel test by an administrator below root shows the status of a JSON error, without its text', async () => {
    const id = await channelTo('errs', errs)
    const below = await manage(gateway.url, ADMIN, `GET /api/channel/test/${id}`)
    expect(below.body).toMatchObject({ success: false, message: 'the upstream answered 401' })
    const root = await manage(gateway.url, ROOT_ACCOUNT, `GET /api/channel/test/${id}`)
    expect(root.body).toMatchObject({ success: false, message: `the upstream answered 401: ${SECRET}` })
  })
})
