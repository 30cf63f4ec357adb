import { expect, test } from 'vitest'
import { startOwnServer } from '../../test/fixtures/own-server.ts'
import { rawConnection } from '../../test/fixtures/raw-socket.ts'
import { sendText } from './send-text.ts'

test.each([
  ['GET', 1000],
  ['HEAD', 1],
])('for %s, %i of 1000 pieces are made, and their source is told to stop', async (method, count) => {
  let made = 0
  let isOver = false
  async function* pieces(): AsyncIterable<string> {
    try {
      while (made < 1000) {
        made += 1
        yield 'x'
      }
    } finally {
      isOver = true
    }
  }
  using own = await startOwnServer((_, response) => {
    void sendText(response, { type: 'text/plain' }, {}, pieces())
  })
  const request = `${method} / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
  const answer = await rawConnection(own.port, request).closed()
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-type: text\/plain\r\n/)
  expect(answer).not.toContain('content-length')
  expect([made, isOver]).toEqual([count, true])
})
