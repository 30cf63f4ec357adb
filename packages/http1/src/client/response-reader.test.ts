import { describe, expect, test } from 'vitest'
import { ResponseReader } from './response-reader.ts'

/** Reads a response in pieces of `size` bytes; returns its status, or the error. */
function read(response: Buffer, size: number): number | string | undefined {
  const reader = new ResponseReader(new Set())
  reader.expect()
  try {
    let status: number | undefined
    for (let at = 0; at < response.length; at += size) {
      const piece = response.subarray(at, at + size)
      const result = reader.read(piece, piece.length)
      if (result.error) return result.error
      status = result.head?.status ?? status
    }
    return status
  } finally {
    reader.free()
  }
}

test.each([20, 1_000, 4_096, 65_536])(
  'empty lines before a response head are skipped up to the size limit of headers, in reads of %i bytes',
  (size) => {
    expect(read(Buffer.from(`${'\r\n'.repeat(10_000)}HTTP/1.1 400\r\n\r\n`), size)).toBe(400)
    expect(read(Buffer.from(`${'\r\n'.repeat(20_000)}HTTP/1.1 400\r\n\r\n`), size)).toBe('headers too large')
  },
)

describe.each<[string, (blanks: number) => string]>([
  ['spaces in a header', (blanks) => `HTTP/1.1 200 OK\r\nx:${' '.repeat(blanks)}\r\n`],
  [
    'empty lines before it and no text',
    (blanks) => `${'\r\n'.repeat(blanks / 2)}HTTP/1.1 200 ${' '.repeat(blanks % 2)}\r\n`,
  ],
])('a head with %s', (_, beginning) => {
  test.each([
    ['a body until the end', '', 'hello'],
    ['a body of stated length', 'content-length: 5\r\n', 'hello'],
    ['a body in chunks', 'transfer-encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
  ])('may have 32,768 bytes and not one more, in any pieces, with %s', (_body, header, body) => {
    const rest = `${header}\r\n`
    for (const size of [32_768, 32_769]) {
      const head = beginning(size - beginning(0).length - rest.length) + rest
      expect(head).toHaveLength(size)
      for (const piece of [size + body.length, size, size - 1, size - 2, size - 3, 4_096, 1_000, 7])
        expect(read(Buffer.from(head + body), piece), `in pieces of ${piece}`).toBe(
          size === 32_768 ? 200 : 'headers too large',
        )
    }
  })
})

// Node's own client takes the lines between the chunks for a part of the body.
test.each(['chunked\t', 'gzip, chunked \t', 'chunked\t\r\ntransfer-encoding:'])(
  'chunks whose coding ends in a tab are refused, in any pieces: %j',
  (coding) => {
    const head = `HTTP/1.1 200 OK\r\ntransfer-encoding: ${coding}\r\n\r\n`
    const response = Buffer.from(`${head}5\r\nhello\r\n0\r\n\r\n`)
    for (const size of [1, 7, 1_000]) expect(read(response, size)).toBe('malformed answer')
  },
)
