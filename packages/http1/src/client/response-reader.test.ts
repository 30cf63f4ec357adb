import { expect, test } from 'vitest'
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
