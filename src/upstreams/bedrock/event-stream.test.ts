import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { EventStreamReader, type StreamMessage } from './event-stream.ts'

/** Encodes a message whose headers are all strings. */
function written(headers: Readonly<Record<string, string>>, payload: Buffer): Buffer {
  const fields = Object.entries(headers).map(([name, value]) => {
    const field = Buffer.alloc(4 + Buffer.byteLength(name) + Buffer.byteLength(value))
    field.writeUInt8(Buffer.byteLength(name), 0)
    field.write(name, 1)
    const at = 1 + Buffer.byteLength(name)
    field.writeUInt8(7, at)
    field.writeUInt16BE(Buffer.byteLength(value), at + 1)
    field.write(value, at + 3)
    return field
  })
  const fieldBytes = Buffer.concat(fields)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + fieldBytes.length + payload.length, 0)
  prelude.writeUInt32BE(fieldBytes.length, 4)
  const message = Buffer.concat([prelude, checksum(prelude), fieldBytes, payload])
  return Buffer.concat([message, checksum(message)])
}

function checksum(bytes: Buffer): Buffer {
  const result = Buffer.alloc(4)
  result.writeUInt32BE(crc32(bytes))
  return result
}

function readCut(bytes: Buffer, cuts: readonly number[]): StreamMessage[] {
  const reader = new EventStreamReader()
  const points = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...points, bytes.length].flatMap((to, index) => [
    ...reader.push(bytes.subarray(points[index - 1] ?? 0, to)),
  ])
}

describe('messages of an event stream', () => {
  const text = fc.string({ maxLength: 20 })
  const message = fc.tuple(fc.dictionary(fc.string({ minLength: 1, maxLength: 9 }), text), fc.uint8Array())

  test('messages of a Bedrock event stream are read as they were written, wherever the bytes are divided', () => {
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 5 }),
        fc.array(fc.nat(), { maxLength: 9 }),
        (given, cuts) => {
          const bytes = Buffer.concat(
            given.map(([headers, payload]) => written(headers, Buffer.from(payload))),
          )
          const read = readCut(bytes, cuts)
          expect(read.map(({ headers }) => Object.fromEntries(headers))).toEqual(
            given.map(([headers]) => ({ ...headers })),
          )
          expect(read.map(({ payload }) => [...payload])).toEqual(given.map(([, payload]) => [...payload]))
        },
      ),
      { numRuns: lawRuns(1_000) },
    )
  })

  test('messages of a Bedrock event stream with any changed bit are refused, or wait for more bytes', () => {
    const bytes = written(
      { ':message-type': 'event', ':event-type': 'chunk' },
      Buffer.from('{"bytes":"e30="}'),
    )
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const broken = Buffer.from(bytes)
      broken.writeUInt8(broken.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(() => [...new EventStreamReader().push(broken)], `bit ${bit}`).toThrow('checksum')
    }
  })

  test('messages of a Bedrock event stream of more than 16 MB are refused before they are read', () => {
    const prelude = Buffer.alloc(8)
    prelude.writeUInt32BE(16 * 1024 * 1024 + 1, 0)
    const bytes = Buffer.concat([prelude, checksum(prelude)])
    expect(() => [...new EventStreamReader().push(bytes)]).toThrow('impossible length')
  })

  test('a message of a Bedrock event stream counts as incomplete until its last byte', () => {
    const bytes = written({}, Buffer.from('x'))
    const reader = new EventStreamReader()
    expect(reader.isMidMessage).toBe(false)
    expect([...reader.push(bytes.subarray(0, -1))]).toEqual([])
    expect(reader.isMidMessage).toBe(true)
    expect([...reader.push(bytes.subarray(-1))]).toHaveLength(1)
    expect(reader.isMidMessage).toBe(false)
  })
})

const folder = process.env['RECORDINGS']
describe.skipIf(folder === undefined)('recorded streams', () => {
  const embeddings = join(folder ?? '', 'embeddings')
  const names =
    folder === undefined ? [] : readdirSync(embeddings).filter((name) => name.endsWith('.eventstream'))

  test.each(names)('the recorded Bedrock event stream %s is read completely, piece by piece', (name) => {
    const bytes = readFileSync(join(embeddings, name))
    const whole = [...new EventStreamReader().push(bytes)]
    expect(whole.at(-1)?.headers.get(':event-type')).toBe('metadata')
    for (const { payload } of whole) expect(() => JSON.parse(payload.toString())).not.toThrow()
    const reader = new EventStreamReader()
    const pieces = [...bytes].flatMap((byte) => [...reader.push(Buffer.of(byte))])
    expect(pieces).toEqual(whole)
    expect(reader.isMidMessage).toBe(false)
  })
})
