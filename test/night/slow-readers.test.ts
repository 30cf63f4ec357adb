import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'

/** Enough readers that the fixed memory of the garbage collector hardly counts for each. */
const READERS = 96
/** More than the kernel buffers of both connections of a stream. */
const STREAM_BYTES = 24 * 1024 * 1024
const FRAME_BYTES = 32 * 1024
const BODY = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] })

/** Requests a stream and never reads it. */
function neverReading(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.on('error', () => undefined)
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sk-ann\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  )
  return socket
}

test("a client that does not read its stream takes less than 1 MB of the gateway's memory", {
  timeout: 120_000,
}, async () => {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const gateway = await startGateway({
    config: plainConfiguration(upstream.baseUrl('m')),
  })
  onTestFinished(() => gateway.discard())
  // Padding, as providers send it, because the text itself is kept for the count in any case.
  const frame = contentFrame('x').replace('{', `{"obfuscation":"${'x'.repeat(FRAME_BYTES)}",`)
  const frames = Array.from({ length: STREAM_BYTES / FRAME_BYTES }, () => frame)
  upstream.script('m', { kind: 'stream', frames: [...frames, finishFrame(), DONE_FRAME] })
  // Modules that the first call loads, and the buffers of a stream at full speed, do not count.
  for (let i = 0; i < 8; i++) expect((await call(gateway.url, BODY, { key: 'ann' })).status).toBe(200)
  const before = residentBytes(gateway.pid)
  const readers = Array.from({ length: READERS }, () => neverReading(gateway.port))
  onTestFinished(() => readers.forEach((reader) => reader.destroy()))
  await upstream.receivedAtLeast('m', 8 + READERS)
  await sleep(10_000)
  const each = (residentBytes(gateway.pid) - before) / READERS
  console.log(`${(each / 1024).toFixed(0)} KiB a reader`)
  expect(each).toBeLessThan(1_000_000)
})
