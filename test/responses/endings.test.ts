import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { frames, upstreamNamed } from '../fixtures/responses-behaviour.ts'

const KEY = 'upstream-key-of-m'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** The frames of a stream up to its first text: sequence numbers 0 to 4. */
const all = frames({ text: 'Hello there.' })
const begun = all.slice(0, all.findIndex((frame) => frame.includes('.delta')) + 1)
const errorFrame = (fields: string): string =>
  `event: error\ndata: {"type":"error",  "sequence_number":${begun.length},${fields}}\n\n`

/** The stream's text from an upstream that sends these frames, with the upstream's own id. */
async function stream(sent: readonly string[], ending: 'no done' | 'close' = 'no done'): Promise<string> {
  fixture.upstream.script('m', { kind: 'stream', frames: sent, ending })
  const live = await fixture.live('ann', { model: 'm', input: 'hi', stream: true }, { path: '/v1/responses' })
  const { text, headers } = await live.end()
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
  expect(row?.reason).toBe('cut')
  return upstreamNamed(text)
}

const lastEvent = (text: string): Record<string, unknown> =>
  JSON.parse(text.slice(text.lastIndexOf('data: ') + 'data: '.length))

describe("an upstream's own error in a native stream", () => {
  test.each([
    [
      'nested',
      '"error":{"type":"t","code":"usage_not_included","message":"No","param":null}',
      'usage_not_included',
    ],
    [
      'flat',
      '"code":"server_error","message":"No","param":null,"x_unknown":9007199254740993',
      'server_error',
    ],
  ])(
    "an upstream's error in a native stream is passed on unchanged, %s, and response.failed ends the stream",
    async (_, fields, code) => {
      const error = errorFrame(fields)
      const own =
        'event: response.failed\ndata: {"type":"response.failed","sequence_number":99,"response":{}}\n\n'
      const text = await stream([...begun, error, own])
      const before = begun.join('') + error
      expect(text.slice(0, before.length)).toBe(before)
      expect(text.slice(before.length)).toMatch(/^event: response\.failed\ndata: .*\n\n$/)
      expect(lastEvent(text)).toMatchObject({
        type: 'response.failed',
        sequence_number: begun.length + 1,
        response: { id: 'resp_upstream', status: 'failed', error: { code, message: 'No' } },
      })
    },
  )

  test("secrets are redacted in the upstream's error events and in response.failed", async () => {
    const text = await stream([...begun, errorFrame(`"code":"c","message":"bad key ${KEY}"`)])
    expect(text).not.toContain(KEY)
    expect(text.split('bad key')).toHaveLength(3)
  })

  test("an upstream's error event that lacks its closing blank line is still a separate event for the client", async () => {
    const error = errorFrame('"code":"server_error","message":"No"').trimEnd()
    const text = await stream([...begun, `${error}\n`])
    expect(lastEvent(text)).toMatchObject({ type: 'response.failed' })
    for (const frame of text.trimEnd().split(/\n\n+/)) expect(frame).toMatch(/^event: [^\n]*\ndata: [^\n]*$/)
  })

  test('a responses stream that ends with response.failed of the upstream gets no second response.failed from the gateway', async () => {
    const failed =
      'event: response.failed\ndata: {"type":"response.failed",  "sequence_number":5,"response":{"id":"resp_upstream","status":"failed","error":{"code":"server_error","message":"No"}}}\n\n'
    expect(await stream([...begun, failed])).toBe(begun.join('') + failed)
  })
})

describe('a native stream without its final event', () => {
  test.each([
    ['closed', [], 'close'],
    ['ended', [], 'no done'],
    ['ended by [DONE]', ['data: [DONE]\n\n'], 'no done'],
    ['ended in half an event', ['event: response.output_text.delta\ndata: {"ty'], 'no done'],
  ] as const)(
    'a native stream without its final event, %s, ends in response.failed and nothing after it',
    async (_, more, ending) => {
      const text = await stream([...begun, ...more], ending)
      const sent = begun.join('')
      expect(text.slice(0, sent.length)).toBe(sent)
      expect(text.slice(sent.length)).toMatch(/^event: response\.failed\ndata: .*\n\n$/)
      expect(lastEvent(text)).toMatchObject({
        sequence_number: begun.length,
        response: { status: 'failed', error: { code: 'server_error' } },
      })
    },
  )
})
