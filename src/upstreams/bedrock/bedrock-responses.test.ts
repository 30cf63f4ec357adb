import type { TransportError, UpstreamResponseHead } from '@sluice/http1'
import { expect, test } from 'vitest'
import { message } from '../../../test/fixtures/providers/bedrock.ts'
import { BedrockResponses } from './bedrock-responses.ts'

/** A `metadata` event of a stream of `converse`. */
const metadata = (payload: string): Buffer =>
  message({ ':message-type': 'event', ':event-type': 'metadata' }, payload)

/** What the listener hears of a stream in these chunks. */
function heardOf(chunks: readonly Buffer[]): readonly string[] {
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
const METADATA = metadata(USAGE)
const BROKEN = Buffer.alloc(16, 1)

test('events of Bedrock that arrived before bytes that are no event are told, however the bytes are divided', () => {
  const apart = heardOf([METADATA, BROKEN])
  expect(apart[0]).toBe(`event: metadata\ndata: ${USAGE}\n\n`)
  expect(heardOf([Buffer.concat([METADATA, BROKEN])])).toEqual(apart)
})

test('an event of Bedrock that is written in several lines stays one event', () => {
  const [event] = heardOf([metadata('{\n  "usage": {}\r\n}')])
  expect(event).toBe('event: metadata\ndata: {\ndata:   "usage": {}\ndata: }\n\n')
})
