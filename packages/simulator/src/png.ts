import { crc32, deflateSync } from 'node:zlib'
import { seededRandom } from './random.ts'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const BYTES_PER_PIXEL = 3

/** Draws a PNG file: a gradient between two colours, which depend on the seed. */
export function drawPng(width: number, height: number, seed: string): Buffer {
  const random = seededRandom(seed)
  const colour = (): number[] => Array.from({ length: BYTES_PER_PIXEL }, () => Math.floor(random() * 256))
  const top = colour()
  const bottom = colour()
  const rows = Buffer.alloc((1 + width * BYTES_PER_PIXEL) * height)
  for (let y = 0; y < height; y++) {
    const start = y * (1 + width * BYTES_PER_PIXEL) + 1
    const share = y / height
    const row = top.map((value, i) => Math.round(value + ((bottom[i] ?? 0) - value) * share))
    for (let x = 0; x < width; x++) rows.set(row, start + x * BYTES_PER_PIXEL)
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits per colour, and colour type 2 (red, green, blue).
  header.set([8, 2, 0, 0, 0], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(data.length, 0)
  framed.set(body, 4)
  framed.writeUInt32BE(crc32(body), body.length + 4)
  return framed
}
