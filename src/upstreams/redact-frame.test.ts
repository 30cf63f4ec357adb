import { expect, test } from 'vitest'
import { cpuMs } from '../../test/fixtures/pace.ts'
import { channelOf } from '../../test/channel.ts'
import { redactFrame } from './redact-frame.ts'

const CHANNEL = channelOf({ keys: ['very"secret\\key'], base_url: 'http://inner.test:8080/v1' })
const redacted = (text: string): string => redactFrame(Buffer.from(text), CHANNEL).toString()

test('the bytes themselves are returned where they contain no secret', () => {
  const bytes = Buffer.from(
    'event: error\ndata: { "error":{"message":"n\\u006f", "x":9007199254740993} }\n\n',
  )
  expect(redactFrame(bytes, CHANNEL)).toBe(bytes)
})

test('only the strings with keys or the address are changed, however they are escaped', () => {
  expect(
    redacted(
      'data: {"a":1.0,"m":"key very\\"secret\\\\key at http:\\/\\/inner.test:8080\\/v1, \\"so\\"","u":"\\u00e9"}\n\n',
    ),
  ).toBe('data: {"a":1.0,"m":"key [redacted] at [upstream], \\"so\\"","u":"\\u00e9"}\n\n')
})

test('text that looks like a key is removed, and the text around it stays JSON', () => {
  const text = redacted('data: {"m":"Bearer abc\\"def","n":"sk-abcdefgh\\n"}\n\n')
  expect(JSON.parse(text.slice(6))).toEqual({ m: '[redacted]"def', n: '[redacted]\n' })
})

test('bytes that are not JSON are redacted as text', () => {
  expect(redacted('data: failed at inner.test, "odd\n\n')).toBe('data: failed at [upstream], "odd\n\n')
})

test('redaction takes time in proportion to the bytes, whatever the quotes', () => {
  for (const piece of ['\\"', '"', '"\\']) {
    const from = cpuMs()
    redacted(piece.repeat(200_000))
    expect(cpuMs() - from).toBeLessThan(5_000)
  }
})
