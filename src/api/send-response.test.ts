import { exactNumber } from '@sluice/wire/json/exact-json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startOwnServer } from '../../test/fixtures/own-server.ts'
import { rawConnection } from '../../test/fixtures/raw-socket.ts'
import { jsonPieces, sendText } from './send-response.ts'

test('a JSON response that is written in pieces has the same text as one written at once', () => {
  const leaf = fc.oneof(
    fc.constant(undefined),
    fc.constant(Symbol('x')),
    fc.date(),
    fc.constant(exactNumber('9007199254740993.50')),
    fc.constant(() => 1),
  )
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 7 },
      fc.jsonValue(),
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 4 }),
    ),
  })).value
  fc.assert(
    fc.property(value, (data) => {
      expect([...jsonPieces({ data })].join('')).toBe(JSON.stringify({ data }))
    }),
  )
})

test('a JSON response with a list is written in pieces that contain at most one element of the list each', () => {
  const items = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(1_000) }))
  const longest = Math.max(...[...jsonPieces({ data: { items } })].map(({ length }) => length))
  expect(longest).toBeLessThan(1_100)
})

test.each([
  ['GET', 1000],
  ['HEAD', 1],
])(
  'the response to a %s request takes %i of the 1000 pieces that its source can make, and then ends the source',
  async (method, count) => {
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
  },
)
