import { crc32, inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { drawPng } from './png.ts'

/** Chunks of a PNG file: type and data. Throws if a checksum is wrong. */
function chunksOf(file: Buffer): { type: string; data: Buffer }[] {
  const chunks: { type: string; data: Buffer }[] = []
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at)
    const typed = file.subarray(at + 4, at + 8 + length)
    if (file.readUInt32BE(at + 8 + length) !== crc32(typed)) throw new Error(`a wrong checksum at ${at}`)
    chunks.push({ type: typed.subarray(0, 4).toString(), data: typed.subarray(4) })
    at += 12 + length
  }
  return chunks
}

test('a simulated image is a small PNG file of the requested size, the same for the same seed', () => {
  const file = drawPng(1024, 1536, 'a lighthouse')
  expect(file.subarray(0, 8).toString('latin1')).toBe('\u0089PNG\r\n\u001a\n')
  const chunks = chunksOf(file)
  expect(chunks.map(({ type }) => type)).toEqual(['IHDR', 'IDAT', 'IEND'])
  const [header, pixels] = chunks.map(({ data }) => data) as [Buffer, Buffer]
  const [width, height, depth, colour] = [
    header.readUInt32BE(0),
    header.readUInt32BE(4),
    header[8],
    header[9],
  ]
  expect(depth).toBe(8)
  const samples = { 0: 1, 2: 3, 6: 4 }[colour ?? -1] ?? 0
  // Each row begins with a byte for its filter.
  expect(inflateSync(pixels)).toHaveLength(height * (1 + width * samples))
  expect(width / height).toBe(1024 / 1536)
  expect(file.length).toBeLessThan(100_000)
  expect(drawPng(1024, 1536, 'a lighthouse').equals(file)).toBe(true)
  expect(drawPng(1024, 1536, 'a tower').equals(file)).toBe(false)
})
