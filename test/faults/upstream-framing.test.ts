import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { call } from '../fixtures/client.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ask, askStream } from '../fixtures/fixture.ts'

/** Endless output of an upstream, after its prefix. */
const FLOODS = {
  'interim answers': ['', 'HTTP/1.1 102 Processing\r\n\r\n'],
  'interim answers without a word': ['', 'HTTP/1.1 100\r\n\r\n'],
  'empty lines': ['', '\r\n'],
  'blanks before the value of a header': ['HTTP/1.1 200 OK\r\nx:', '    '],
  'an extension of a chunk': ['', 'x'],
  'zeros before the size of a chunk': ['', '0'],
  'blanks in a trailer': ['', '    '],
} as const
type Flood = keyof typeof FLOODS
const NAMES = Object.keys(FLOODS) as Flood[]
const AFTER_A_HEAD: Partial<Record<Flood, string>> = {
  'an extension of a chunk': '2;',
  'zeros before the size of a chunk': '',
  'blanks in a trailer': '0\r\nx:',
}
/** The gateway's limits, one read, and the socket buffers of both ends. */
const MAX_TAKEN = 24 << 20

let flood: Flood | undefined
let server: Server
let gateway: RunningGateway
let taken = 0
let closed: Promise<unknown>
beforeAll(async () => {
  server = createServer((socket) => {
    closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      const asked = bytes.toString('latin1')
      if (asked.endsWith('}')) answer(socket, asked.includes('"stream":true'))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  gateway = await startGateway({
    config: {
      options: { retries: 0 },
      models: priced(['m']),
      channels: [channel('m', `http://127.0.0.1:${port}/v1`)],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  server?.close()
})

function answer(socket: Socket, isStream: boolean): void {
  const body = completionText('fine', usageText(10, 5))
  if (flood === undefined) {
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    return
  }
  const type = isStream ? 'text/event-stream' : 'application/json'
  const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"begun"}}]}\n\n'
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n${chunk.length.toString(16)}\r\n${chunk}\r\n`
  const begin = AFTER_A_HEAD[flood]
  const [before, again] = FLOODS[flood]
  socket.write(begin === undefined ? before : head + begin)
  const bytes = Buffer.from(again.repeat(Math.floor(65_536 / again.length)))
  taken = 0
  const pour = (): void => {
    while (!socket.destroyed && taken < MAX_TAKEN) {
      taken += bytes.length
      if (!socket.write(bytes)) return void socket.once('drain', pour)
    }
  }
  pour()
}

describe('endless output of an upstream', () => {
  test.each(NAMES.flatMap((name) => [[name, false] as const, [name, true] as const]))(
    'an upstream that sends endless %s (stream: %s) counts as failed, and its connection is closed',
    async (name, stream) => {
      flood = name
      const { status, text } = await call(gateway.url, stream ? askStream('m') : ask('m'), { key: 'ann' })
      if (stream && name in AFTER_A_HEAD) {
        expect(status).toBe(200)
        expect(text).toContain('"error"')
        expect(text).not.toContain('[DONE]')
      } else {
        expect(status, text).toBe(500)
        expect(text).toContain('"type":"api_error"')
      }
      await closed
      expect(taken).toBeLessThan(MAX_TAKEN)
    },
  )

  test('an upstream that sent endless output is called again, and a usual response is then delivered', async () => {
    flood = undefined
    const { status, text } = await call(gateway.url, ask('m'), { key: 'ann' })
    expect(status, text).toBe(200)
  })
})
