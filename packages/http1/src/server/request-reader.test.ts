import { expect, test } from 'vitest'
import { HeaderNames } from './header-names.ts'
import { RequestReader } from './request-reader.ts'

/** Reads a body of which `first` bytes arrive at once; returns its pieces. */
function piecesOf(body: Buffer, first: number): Buffer[] {
  const reader = new RequestReader(new HeaderNames(['content-length']))
  const read = (bytes: Buffer): Buffer[] => {
    // The bytes of the connection are overwritten by the next read.
    const shared = Buffer.from(bytes)
    expect(reader.read(shared)).toBe(bytes.length)
    shared.fill(0)
    return [...reader.body]
  }
  const head = Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`)
  const pieces = read(Buffer.concat([head, body.subarray(0, first)]))
  if (first < body.length) pieces.push(...read(body.subarray(first)))
  expect(reader.isComplete).toBe(true)
  reader.free()
  return pieces
}

/** Larger than what Node takes from its pool of small buffers. */
const BODY = Buffer.from(Array.from({ length: 80_000 }, (_, i) => i % 251))

test('the pieces of a body of which half arrives at once lie one after the other in memory', () => {
  const [one, other] = piecesOf(BODY, 40_000) as [Buffer, Buffer]
  expect(other.buffer).toBe(one.buffer)
  expect(other.byteOffset).toBe(one.byteOffset + one.length)
  expect(Buffer.concat([one, other])).toEqual(BODY)
})

test('a client that sends less than half of a body occupies no more memory than it has sent', () => {
  const [one, other] = piecesOf(BODY, 39_999) as [Buffer, Buffer]
  expect(one.buffer.byteLength).toBe(39_999)
  expect(Buffer.concat([one, other])).toEqual(BODY)
})
