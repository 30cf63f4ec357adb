import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type OwnServer, startOwnServer } from '../../../../test/fixtures/own-server.ts'
import { rawConnection } from '../../../../test/fixtures/raw-socket.ts'
import type { UpgradedConnection } from './upgraded-connection.ts'

const UPGRADE = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n'
const HEAD = 'HTTP/1.1 101 Switching Protocols\r\n\r\n'

/** A server that sends back what it gets on connections that ask for an upgrade. */
async function echoing(
  onUpgraded: (connection: UpgradedConnection) => void,
  total?: number,
): Promise<OwnServer> {
  const own = await startOwnServer((request, response) => {
    const connection = request.asksUpgrade ? response.upgrade() : undefined
    if (!connection) return response.writeHead(200, {}).end('http')
    connection.write(HEAD)
    connection.pipe(connection)
    onUpgraded(connection)
  }, total)
  onTestFinished(() => own[Symbol.dispose]())
  return own
}

test('after an upgrade the bytes of both sides pass as they are, also those that came with the request', async () => {
  const { port } = await echoing(() => {})
  const client = rawConnection(port, `${UPGRADE}GET / HTTP/1.1\r\n\r\n`)
  onTestFinished(() => void client.socket.destroy())
  expect(await client.until('GET')).toMatch(/^HTTP\/1\.1 101 /)
  client.socket.write('\0\xff more')
  await client.until('more')
  client.socket.end()
  expect(await client.closed()).toBe(`${HEAD}GET / HTTP/1.1\r\n\r\n\0\xc3\xbf more`)
})

test('a request that asks for no upgrade, or has an incomplete body, is not upgraded', async () => {
  const { port } = await echoing(() => {})
  const plain = rawConnection(port, 'GET / HTTP/1.1\r\nhost: x\r\nupgrade: echo\r\nconnection: close\r\n\r\n')
  expect(await plain.closed()).toMatch(/^HTTP\/1\.1 200 [^]*http$/)
  const cut = rawConnection(port, UPGRADE.replace('\r\n\r\n', '\r\ncontent-length: 5\r\n\r\nabc'))
  onTestFinished(() => void cut.socket.destroy())
  expect(await cut.until('http')).toMatch(/^HTTP\/1\.1 200 /)
})

test('an upgraded connection whose bytes are not read stops reading its client', async () => {
  const upgraded = Promise.withResolvers<UpgradedConnection>()
  const own = await startOwnServer((_, response) => {
    const connection = response.upgrade()
    connection?.write(HEAD)
    if (connection) upgraded.resolve(connection)
  })
  onTestFinished(() => own[Symbol.dispose]())
  const client = connect(own.port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  client.write(UPGRADE)
  const connection = await upgraded.promise
  // More than the buffers of the operating system take.
  const sent = 64 * 2 ** 20
  client.write(Buffer.alloc(sent))
  await once(connection, 'readable')
  expect(connection.bytesRead).toBeLessThan(sent)
  let read = 0
  client.end()
  for await (const bytes of connection) read += (bytes as Buffer).length
  expect(read).toBe(sent)
})

test('an idle upgraded connection makes room for another one after it has taken leave, and a busy one does not', async () => {
  const upgraded: UpgradedConnection[] = []
  const { port } = await echoing((connection) => {
    connection.onDisplaced = () => connection.end('bye')
    upgraded.push(connection)
  }, 2)
  const [busy, idle] = [rawConnection(port, UPGRADE), rawConnection(port, UPGRADE)]
  onTestFinished(() => void busy.socket.destroy())
  for (const client of [busy, idle]) await client.until('101')
  const [, second] = upgraded
  if (second) second.isIdle = true
  const fresh = rawConnection(port, UPGRADE)
  onTestFinished(() => void fresh.socket.destroy())
  await fresh.until('101')
  expect((await Promise.race([idle.closed(), busy.closed()])).endsWith('bye')).toBe(true)
  expect(busy.socket.destroyed).toBe(false)
})
