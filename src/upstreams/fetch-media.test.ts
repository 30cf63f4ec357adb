import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import process from 'node:process'
import { Agent } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { collectAll } from '../../test/fixtures/collect-young.ts'
import { fetchMedia } from './fetch-media.ts'

test('a fetch ends when its signal is aborted, also before there is a connection', async () => {
  const connecting = Promise.withResolvers<void>()
  const agent = new Agent({ connect: () => connecting.resolve() })
  onTestFinished(() => agent.destroy())
  const leaving = new AbortController()
  const bounds = { maxBytes: 1, signal: leaving.signal, take: () => {} }
  const fetching = fetchMedia('http://media.example/', agent, bounds)
  await connecting.promise
  leaving.abort(new DOMException('late', 'TimeoutError'))
  await expect(fetching).rejects.toThrow('its server took too long')
})

test('a file that arrives in single bytes takes little more memory than its bytes', async () => {
  const size = 20_000
  const sending = Promise.withResolvers<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`)
    socket.write('x')
    sending.resolve(socket)
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const agent = new Agent()
  onTestFinished(() => agent.destroy())
  const used = (): number => {
    collectAll()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  let [taken, before, held] = [0, 0, 0]
  const take = (bytes: number): void => {
    taken += bytes
    if (taken === 1) before = used()
    if (taken === size) held = used() - before
    else void sending.promise.then((socket) => socket.write('x'))
  }
  const bounds = { maxBytes: size, signal: new AbortController().signal, take }
  const { port } = server.address() as AddressInfo
  const { bytes } = await fetchMedia(`http://127.0.0.1:${port}/`, agent, bounds)
  expect(bytes.equals(Buffer.alloc(size, 'x'))).toBe(true)
  expect(held).toBeLessThan(2_000_000)
})
