import { zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { ZstdFrames } from './zstd-frames.ts'

const FIRST = zstdCompressSync(Buffer.from('{"model":"m",'))
const SECOND = zstdCompressSync(Buffer.from('"messages":[]}'))
const TEXT = '{"model":"m","messages":[]}'

/** Decodes pieces to their text, or to 'refused'. */
function decoded(pieces: readonly Buffer[]): Promise<string> {
  const decoder = new ZstdFrames()
  let text = ''
  return new Promise((resolve) => {
    decoder.on('data', (bytes: Buffer) => (text += bytes.toString()))
    decoder.on('end', () => resolve(text))
    decoder.on('error', () => resolve('refused'))
    for (const piece of pieces) decoder.write(piece)
    decoder.end()
  })
}

/** All ways to split the bytes into two pieces. */
function everyCut(bytes: Buffer): Buffer[][] {
  return Array.from({ length: bytes.length - 1 }, (_, i) => [bytes.subarray(0, i + 1), bytes.subarray(i + 1)])
}

test('the zstd frames of a request body are decoded one after the other, wherever the body is divided', async () => {
  const body = Buffer.concat([FIRST, SECOND])
  expect(await decoded([body])).toBe(TEXT)
  for (const pieces of everyCut(body)) expect(await decoded(pieces)).toBe(TEXT)
})

test('bytes after the zstd frames that are not a zstd frame are refused, wherever the body is divided', async () => {
  const body = Buffer.concat([FIRST, Buffer.from('garbage')])
  expect(await decoded([body])).toBe('refused')
  for (const pieces of everyCut(body)) expect(await decoded(pieces)).toBe('refused')
})

test('bytes after the last zstd frame are refused, even if that frame is shorter than the one before', async () => {
  const short = zstdCompressSync(Buffer.from('1234'))
  const body = Buffer.concat([zstdCompressSync(Buffer.from('12345')), short, Buffer.from('}')])
  expect(body.length).toBe(2 * short.length + 2)
  expect(await decoded([body])).toBe('refused')
})

test('a request body with an incomplete zstd frame is refused', async () => {
  for (let end = 1; end < FIRST.length; end++) expect(await decoded([FIRST.subarray(0, end)])).toBe('refused')
})

test('zstd decoding waits for its reader, so that a small body that expands greatly does not fill the memory', async () => {
  const decoder = new ZstdFrames()
  decoder.write(zstdCompressSync(Buffer.alloc(64 * 2 ** 20)))
  await new Promise((resolve) => decoder.once('readable', resolve))
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(decoder.readableLength).toBeLessThan(2 ** 20)
  decoder.destroy()
})

test('a request body with too many zstd frames is refused', async () => {
  const empty = zstdCompressSync(Buffer.alloc(0))
  expect(await decoded([Buffer.concat(Array.from({ length: 90 }, () => empty))])).toBe('')
  expect(await decoded([Buffer.concat(Array.from({ length: 110 }, () => empty))])).toBe('refused')
})
