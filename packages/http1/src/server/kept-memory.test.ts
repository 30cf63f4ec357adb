import { connect } from 'node:net'
import process from 'node:process'
import { expect, test } from 'vitest'
import { collectAll, collectYoung } from '../../../../test/fixtures/collect-young.ts'
import { startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'
import type { Request } from './request.ts'
import { Response, type ResponseSink } from './response.ts'

const bufferBytes = (): number => process.memoryUsage().arrayBuffers

const SINK: ResponseSink = {
  isOpen: true,
  send: () => true,
  sendParts: () => true,
  responseEnded: () => {},
  needsUpstream: () => {},
  destroy: () => {},
}

test('a closed response keeps no memory of its call, even without a full garbage collection', () => {
  const response = new Response(SINK, { method: 'POST', version: '1.1', keepAlive: true, headers: {} })
  response.onClosed(() => {})
  collectAll()
  collectYoung()
  const before = bufferBytes()
  const begin = (): void => {
    const bytes = Buffer.alloc(8_000_000)
    response.onClosed(() => void bytes.length)
  }
  begin()
  response.onConnectionEnd('finished')
  collectYoung()
  expect(bufferBytes() - before).toBeLessThan(4_000_000)
})

test('a finished response in the old generation keeps nothing in memory that its observer refers to', () => {
  const response = new Response(SINK, { method: 'POST', version: '1.1', keepAlive: true, headers: {} })
  collectAll()
  collectYoung()
  const before = bufferBytes()
  const begin = (): void => {
    const bytes = Buffer.alloc(8_000_000)
    response.observer = { onPiece: () => void bytes.length }
  }
  begin()
  response.onConnectionEnd('finished')
  collectYoung()
  expect(bufferBytes() - before).toBeLessThan(4_000_000)
})

test('connections keep no bytes of the bodies that were read on them', async () => {
  using own = await startOwnServer((request, response) => {
    request.discard()
    response.writeHead(200, {}).end('ok')
  })
  const request = Buffer.from(
    `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 40000\r\n\r\n${'x'.repeat(40_000)}`,
  )
  collectAll()
  const before = bufferBytes()
  const sockets = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const socket = connect({
        port: own.port,
        host: '127.0.0.1',
        onread: { buffer: Buffer.alloc(1_024), callback: () => true },
      })
      await new Promise((resolve) => {
        socket.on('data', resolve)
        socket.write(request, () => setTimeout(resolve, 200))
      })
      return socket
    }),
  )
  collectAll()
  const kept = bufferBytes() - before
  for (const socket of sockets) socket.destroy()
  expect(kept).toBeLessThan(1_000_000)
})

test('what a client sends in small reads behind a request is not kept beyond 64 KiB of memory', async () => {
  const begun = Promise.withResolvers<{ readonly request: Request; readonly response: Response }>()
  using own = await startOwnServer((request, response) => {
    if (request.url === '/2') response.writeHead(200, {}).end('second')
    else {
      response.needsUpstream()
      begun.resolve({ request, response })
    }
  })
  const client = rawConnection(own.port, 'GET /1 HTTP/1.1\r\nhost: x\r\n\r\n')
  client.socket.setNoDelay(true)
  const { request, response } = await begun.promise
  const read = request.bytesRead
  const next = `GET /2 HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: ${'x'.repeat(300)}\r\n\r\n`
  for (let sent = 1; sent <= next.length; sent++) {
    client.socket.write(next.charAt(sent - 1))
    while (request.bytesRead < read + sent) await new Promise(setImmediate)
  }
  response.writeHead(200, {}).end('first')
  expect(await client.closed()).toMatch(/first$/)
})
