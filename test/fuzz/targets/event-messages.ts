import { crc32 } from 'node:zlib'
import { EventStreamReader, MalformedEventStream } from '../../../src/upstreams/bedrock/event-stream.ts'
import { choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'

/** A header with a text: its name, the type 7, and its value. */
function header(name: string, value: string): Buffer {
  const head = Buffer.from([name.length, ...Buffer.from(name), 7, 0, value.length])
  return Buffer.concat([head, Buffer.from(value)])
}

/** A message with valid lengths and checksums around any headers and payload. */
function message(headers: Buffer, payload: Buffer): Buffer {
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(16 + headers.length + payload.length, 0)
  prelude.writeUInt32BE(headers.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const bytes = Buffer.concat([prelude, headers, payload, Buffer.alloc(4)])
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4)
  return bytes
}

/** Messages that were read, or the reason why they could not be. */
function outcome(chunks: Iterable<Buffer>): string {
  const reader = new EventStreamReader()
  const read: unknown[] = []
  try {
    for (const chunk of chunks)
      for (const { headers, payload } of reader.push(chunk)) read.push([...headers], payload.toString('hex'))
  } catch (error) {
    if (!(error instanceof MalformedEventStream)) throw error
    return error.message
  }
  return JSON.stringify([read, reader.isMidMessage])
}

const CHUNK = Buffer.concat([header(':event-type', 'chunk'), header(':message-type', 'event')])

/** The reader of binary event streams, for the bytes as they are and for the same bytes as headers. */
export const EVENT_MESSAGES: Target = {
  seeds: [
    message(CHUNK, Buffer.from('{"bytes":"e30="}')),
    Buffer.concat([message(CHUNK, Buffer.from('a')), message(Buffer.alloc(0), Buffer.alloc(0))]),
    CHUNK,
  ],
  tokens: ['\x00', '\x07', '\x01a\x00', '\x01b\x06\x00\x01x', ':event-type', ':message-type', 'exception'],
  repeated: [['', message(CHUNK, Buffer.from('a')).toString('latin1'), '']],
  run(input, random) {
    const framed = message(input, Buffer.from('payload'))
    for (const bytes of [input, framed, Buffer.concat([framed, input])]) {
      const whole = outcome([bytes])
      const cut = outcome(choppedAtRandom(bytes, 20, random))
      invariant(whole === cut, 'a cut changes no message')
    }
    return outcome([framed])
      .replaceAll(/[^a-z]+/g, ' ')
      .slice(0, 40)
  },
}
