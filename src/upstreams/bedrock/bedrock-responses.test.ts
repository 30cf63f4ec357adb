import { crc32 } from 'node:zlib'
import type { TransportError, UpstreamResponseHead } from '@sluice/http1'
import { expect, test } from 'vitest'
import { BedrockResponses } from './bedrock-responses.ts'

/** Encodes an event of a stream of `converse`. */
function message(event: string, payload: string): Buffer {
  const fields = Object.entries({ ':message-type': 'event', ':event-type': event }).map(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(value.length)
    return Buffer.concat([
      Buffer.of(name.length),
      Buffer.from(name),
      Buffer.of(7),
      length,
      Buffer.from(value),
    ])
  })
  const headers = Buffer.concat(fields)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + headers.length + Buffer.byteLength(payload), 0)
  prelude.writeUInt32BE(headers.length, 4)
  const begun = Buffer.concat([prelude, checksum(prelude), headers, Buffer.from(payload)])
  return Buffer.concat([begun, checksum(begun)])
}

function checksum(bytes: Buffer): Buffer {
  const result = Buffer.alloc(4)
  result.writeUInt32BE(crc32(bytes))
  return result
}

/** What of a stream in these chunks is told. */
function told(chunks: readonly Buffer[]): readonly string[] {
  const heard: string[] = []
  const responses = new BedrockResponses(
    {
      onHead: () => {},
      onData: (bytes) => heard.push(String(bytes)),
      onEnd: () => heard.push('the end'),
      onError: (error: TransportError) => heard.push(error.message),
    },
    'converse',
  )
  const head = { status: 200, contentType: 'application/vnd.amazon.eventstream', headers: {} }
  responses.onHead(head as unknown as UpstreamResponseHead)
  for (const chunk of chunks) responses.onData(chunk)
  responses.onEnd()
  return heard
}

const USAGE = '{"usage":{"inputTokens":7,"outputTokens":9,"totalTokens":16}}'
const METADATA = message('metadata', USAGE)
const BROKEN = Buffer.alloc(16, 1)

test('events of Bedrock that arrived before bytes that are no event are told, however the bytes are divided', () => {
  const apart = told([METADATA, BROKEN])
  expect(apart[0]).toBe(`event: metadata\ndata: ${USAGE}\n\n`)
  expect(told([Buffer.concat([METADATA, BROKEN])])).toEqual(apart)
})

test('an event of Bedrock that is written in several lines stays one event', () => {
  const [event] = told([message('metadata', '{\n  "usage": {}\r\n}')])
  expect(event).toBe('event: metadata\ndata: {\ndata:   "usage": {}\ndata: }\n\n')
})
