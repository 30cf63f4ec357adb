import { createServer, Socket } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { serialize } from 'node:v8'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Link } from './link.ts'

/** Both ends of a local socket, and the first end's socket. */
async function pair(): Promise<readonly [Link, Link, Socket]> {
  const folder = mkdtempSync(join(tmpdir(), 'link-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(join(folder, 'socket'), resolve))
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const other = new Socket().connect(join(folder, 'socket'))
  const own = await accepted
  server.close()
  onTestFinished(() => void own.destroy())
  return [new Link(own), new Link(other), own]
}

test('messages between two processes arrive in order, whatever their sizes', async () => {
  const [a, b] = await pair()
  const received: unknown[] = []
  const done = new Promise<void>((resolve) =>
    b.on('number', (value) => {
      received.push(value)
      if (received.length === 200) resolve()
    }),
  )
  const sent = Array.from({ length: 200 }, (_, index) =>
    index % 50 === 7 ? 'x'.repeat(300_000) : [index, undefined, null, { at: index }],
  )
  for (const value of sent) a.send('number', value)
  await done
  expect(received).toEqual(sent)
})

test('a request to another process is answered, or fails with the error message of that process', async () => {
  const [a, b] = await pair()
  b.answer('double', (value: number) => 2 * value)
  b.answer('later', (value: number) => new Promise((resolve) => setImmediate(() => resolve(value))))
  b.answer('fail', () => {
    throw new Error('that is impossible')
  })
  b.answer('reject', () => Promise.reject(new Error('not now')))
  expect(await Promise.all([a.request('double', 21), a.request('later', 7)])).toEqual([42, 7])
  await expect(a.request('fail')).rejects.toThrow('that is impossible')
  await expect(a.request('reject')).rejects.toThrow('not now')
})

test('when the other process is gone, requests to it fail, and its incomplete message is not delivered', async () => {
  const [a, b, socket] = await pair()
  const received: unknown[] = []
  b.on('value', (value) => received.push(value))
  a.send('value', 1)
  const waiting = b.request('nobody answers')
  a.answer('nobody answers', () => new Promise(() => {}))
  // Messages of this turn are sent at its end.
  await new Promise((resolve) => setImmediate(resolve))
  // A message of a thousand bytes, cut off.
  socket.write(Buffer.from([0xe8, 3, 0, 0, 255, 15]))
  socket.destroySoon()
  await b.closed
  await expect(waiting).rejects.toThrow('the other process is gone')
  await expect(b.request('more')).rejects.toThrow('the other process is gone')
  b.send('value', 2)
  expect(received).toEqual([1])
})

/** A frame with these bytes. */
function frame(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(content.length)
  return Buffer.concat([length, content])
}

test.each<[string, Uint8Array]>([
  ['bytes that are not a frame', frame(Buffer.from('not a value at all'))],
  ['a value that is not a message', frame(serialize({ kind: 'message' }))],
  ['a kind of message that is not known', frame(serialize(['order', 'value', 0, 1]))],
  ['a value that its listener cannot read', frame(serialize(['message', 'list', 0, 7]))],
  ['a length of 300 MB', Buffer.from([0, 0xa3, 0xe1, 0x11])],
])('invalid data between two processes ends their link, and not the process: %s', async (_, bytes) => {
  const [a, b, socket] = await pair()
  const received: unknown[] = []
  b.on('value', (value) => received.push(value))
  b.on('list', (value: readonly unknown[]) => received.push(...value.map(String)))
  a.send('value', 1)
  await new Promise((resolve) => setImmediate(resolve))
  socket.write(bytes)
  socket.write(frame(serialize(['message', 'value', 0, 2])))
  await b.closed
  await expect(b.request('more')).rejects.toThrow('the other process is gone')
  expect(received).toEqual([1])
})
