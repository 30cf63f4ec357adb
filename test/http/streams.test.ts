import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Behaviour,
  contentFrame,
  DONE_FRAME,
  errorBody,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { type FullResponse, events, streamedContent } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const MODELS = ['m', 'through', 'stall', 'ttfb']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(MODELS),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('through', upstream.baseUrl('through'), { pass_through: true }),
      channel('stall', upstream.baseUrl('stall'), { timeouts: { idle: '500ms' } }),
      channel('ttfb', upstream.baseUrl('ttfb'), { timeouts: { first_byte: '500ms' } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** The usage row of a call. */
function charged({ headers }: { readonly headers: FullResponse['headers'] }): UsageRow {
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
  if (!row) throw new Error('there is no row')
  return row
}

const WITH_USAGE = { stream_options: { include_usage: true } }

async function streamed(model: string, behaviour: Behaviour, fields: Record<string, unknown> = {}) {
  fixture.upstream.script(model, behaviour)
  const answer = await (await fixture.live('ann', askStream(model, fields))).end()
  // After a halt, the answer to a time-out may be read before the request.
  await fixture.upstream.receivedAtLeast(model, 1)
  return { ...answer, sent: JSON.parse(fixture.upstream.only(model).text) }
}

describe('the usage of a stream', () => {
  const usage = usageText(11, 5)
  test('the usage of a stream is sent to a client that requested it', async () => {
    const answer = await streamed('m', { kind: 'stream', usage }, WITH_USAGE)
    expect(answer.sent.stream_options).toEqual({ include_usage: true })
    expect(events(answer.text).at(-2)).toContain(`"choices":[],"usage":${usage}`)
    expect(events(answer.text).at(-1)).toBe('[DONE]')
  })

  test.each([
    {},
    { stream_options: null },
    { stream_options: {} },
    { stream_options: { include_usage: false } },
  ])(
    'usage is requested upstream for a stream, and removed for a client that did not request it: %j',
    async (fields) => {
      const answer = await streamed('m', { kind: 'stream', usage, events: 4 }, fields)
      expect(answer.sent.stream_options).toMatchObject({ include_usage: true })
      expect(answer.text).not.toContain('"usage"')
      expect(streamedContent(answer.text)).toBe(' word0 word1 word2 word3')
      expect(answer.text.endsWith(`${finishFrame()}${DONE_FRAME}`)).toBe(true)
    },
  )

  test('usage that the client did not request is still passed on in a stream chunk that also has choices', async () => {
    const answer = await streamed('m', { kind: 'stream', usage, usageIn: 'finish chunk' })
    expect(answer.text).toContain(finishFrame(usage))
  })

  test('the charged usage is sent in a chunk before [DONE] to a client that requested it, if the upstream sends none', async () => {
    const answer = await streamed('m', { kind: 'stream', usage: null, events: 3 }, WITH_USAGE)
    const [last, chunk] = events(answer.text).toReversed()
    expect(last).toBe('[DONE]')
    const { input_tokens, output_tokens } = charged(answer)
    expect(output_tokens).toBeGreaterThanOrEqual(3)
    expect(JSON.parse(chunk ?? '')).toEqual({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: 'upstream-model',
      choices: [],
      usage: {
        prompt_tokens: input_tokens,
        completion_tokens: output_tokens,
        total_tokens: input_tokens + output_tokens,
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    })
  })

  test.each([
    ['sends it beside choices', usage],
    ['sends what cannot be true', usageText(-1, 5)],
  ])('usage is not added by the gateway to a stream whose upstream %s', async (_, told) => {
    const frames = [roleFrame(), contentFrame('a'), finishFrame(told), DONE_FRAME]
    const answer = await streamed('m', { kind: 'stream', frames, ending: 'no done' }, WITH_USAGE)
    expect(answer.text).toBe(frames.join(''))
  })

  const besides = finishFrame(usage)
    .replace('"usage":', '"x_groq":{"usage":')
    .replace(/}\n\n$/, '}}\n\n')
  const inChoice = finishFrame().replace('"finish_reason":"stop"', `$&,"usage":${usage}`)
  test.each([
    ['under a name of its own', besides],
    ['in a choice', inChoice],
  ])(
    'usage that the upstream sends only %s is also sent to the client in the standard usage chunk',
    async (_, finish) => {
      const frames = [roleFrame(), contentFrame('a'), finish]
      const answer = await streamed(
        'm',
        { kind: 'stream', frames: [...frames, DONE_FRAME], ending: 'no done' },
        WITH_USAGE,
      )
      expect(answer.text.startsWith(frames.join(''))).toBe(true)
      const chunks = events(answer.text)
        .slice(0, -1)
        .map((event) => JSON.parse(event))
      expect(chunks).toHaveLength(4)
      expect(chunks[3]).toMatchObject({
        choices: [],
        usage: { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 },
      })
      expect(charged(answer)).toMatchObject({ input_tokens: 11, output_tokens: 5 })
    },
  )

  test('the usage of a stream is not added for a client that did not request it', async () => {
    const answer = await streamed('m', { kind: 'stream', usage: null })
    expect(answer.text).not.toContain('"usage"')
    expect(answer.text.endsWith(DONE_FRAME)).toBe(true)
  })

  test('in pass-through mode usage is not requested from the upstream, and a usage chunk is not removed from the stream', async () => {
    const answer = await streamed('through', { kind: 'stream', usage, usageIn: 'always' })
    expect(answer.sent.stream_options).toBeUndefined()
    expect(answer.text).toContain(usageFrame(usage))
  })

  test('a request without stream is sent upstream without stream_options', async () => {
    fixture.upstream.script('m', { kind: 'whole' })
    await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    expect(fixture.upstream.only('m').text).not.toContain('stream_options')
  })
})

describe('the bytes of a stream', () => {
  const frames = [
    roleFrame(),
    ': a comment\n\n',
    contentFrame('näïve 😀'),
    'data: {"choices":[{"index":0,"delta":{"content":"x","x_big":9007199254740993}}],  "odd":"spacing"}\n\n',
    'event: keep\ndata:{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n',
    contentFrame('a text that says "usage":{"prompt_tokens":1} and choices: []'),
    finishFrame(),
    usageFrame(usageText(10, 4)),
    DONE_FRAME,
  ]
  test.each([
    ['event by event', false],
    ['byte by byte', true],
  ])('the bytes of a stream are passed on unchanged, %s', async (_, drip) => {
    const answer = await streamed('m', { kind: 'stream', frames, drip }, WITH_USAGE)
    expect(answer.text).toBe(frames.join(''))
    expect(answer.headers['content-type']).toMatch(/^text\/event-stream/)
  })

  test('the bytes of a stream with carriage returns are passed on unchanged', async () => {
    const crlf = [contentFrame('a'), finishFrame(), DONE_FRAME].map((each) => each.replaceAll('\n', '\r\n'))
    const answer = await streamed('m', { kind: 'stream', frames: crlf })
    expect(answer.text).toBe(crlf.join(''))
  })

  test.each([
    ['before the first event', [': hm\n\n', ':\n\n', contentFrame('a'), finishFrame(), DONE_FRAME]],
    ['before an answer without text', [': hm\n\n', finishFrame(), DONE_FRAME]],
  ])(
    'the comments of a stream reach the client with all other bytes if the upstream sends them %s',
    async (_, commented) => {
      const answer = await streamed('m', { kind: 'stream', frames: commented, paceMs: 20, ending: 'no done' })
      expect(answer.text).toBe(commented.join(''))
    },
  )

  test('comments that arrive before a late first event are passed on to the client at once', async () => {
    fixture.upstream.script('m', { kind: 'stream', frames: [': hm\n\n'], ending: 'stall' })
    const live = await fixture.live('ann', askStream('m'))
    await live.until(': hm')
    live.abort()
  })

  test('the bytes of a stream are unchanged except for the removed usage chunk, even if they arrive one at a time', async () => {
    const answer = await streamed('m', { kind: 'stream', frames, drip: true })
    expect(answer.text).toBe(frames.filter((each) => !each.includes('"choices":[],"usage"')).join(''))
  })

  test('the bytes of a stream arrive as they are sent, not at the end', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: 3, ending: 'stall' })
    const live = await fixture.live('ann', askStream('m'))
    await live.until(' word2')
    live.abort()
  })
})

describe('a stream that does not end properly', () => {
  const cases: [string, Behaviour][] = [
    ['reset', { kind: 'stream', events: 3, ending: 'reset' }],
    ['closed', { kind: 'stream', events: 3, ending: 'close' }],
    ['ended in half a frame', { kind: 'stream', events: 3, ending: 'half frame' }],
    [
      'ended without a finish',
      { kind: 'stream', frames: [roleFrame(), contentFrame(' word2')], ending: 'no done' },
    ],
  ]
  test.each(cases)(
    'a stream that does not end properly (%s) never looks finished: an error event ends it, without [DONE]',
    async (_, behaviour) => {
      const answer = await streamed('m', behaviour)
      expect(answer.text).toContain(' word2')
      expect(answer.text).not.toContain('[DONE]')
      const { error } = JSON.parse(events(answer.text).at(-1) ?? '{}')
      expect(error).toMatchObject({
        message: expect.any(String),
        type: expect.any(String),
        code: expect.any(String),
      })
      expect(error.message).toContain(`(request id: ${String(answer.headers['x-request-id'])})`)
    },
  )

  test('a stream without an answer ends with an error, and its reported prompt is charged, if its usage was sent on', async () => {
    const frames = [usageFrame(usageText(9, 0)), DONE_FRAME]
    const answer = await streamed('m', { kind: 'stream', frames, paceMs: 50, ending: 'no done' }, WITH_USAGE)
    expect(answer.text).not.toContain('[DONE]')
    expect(JSON.parse(events(answer.text).at(-1) ?? '{}').error.message).toContain('without a response')
    await vi.waitFor(
      () => expect(charged(answer)).toMatchObject({ input_tokens: 9, reason: 'failed' }),
      60_000,
    )
  })

  test('an upstream error in a stream is passed on byte for byte, as the last event', async () => {
    const error = `: odd\ndata: {"error": {"message":"no","x":9007199254740993, "code":502},"y":[1e3]}\n\n`
    const frames = [roleFrame(), contentFrame('begun'), error]
    const answer = await streamed('m', {
      kind: 'stream',
      frames: [...frames, contentFrame('late'), DONE_FRAME],
    })
    expect(answer.text).toBe(frames.join(''))
  })

  test.each([
    ['as it is', String],
    ['in base64', (key: string) => Buffer.from(key).toString('base64url')],
    ['in hexadecimal', (key: string) => Buffer.from(key).toString('hex').toUpperCase()],
    ['percent-encoded', (key: string) => key.replaceAll('-', '%2d')],
  ])('an upstream error in a stream shows neither key nor address of the channel: %s', async (_, encode) => {
    const said = (key: string, url: string): string =>
      `data: {"error":{"message":"call to ${url} with ${key} \\"failed\\"","x":9007199254740993,"deep":[{"k":"${key}"}]}, "z" :"é\\u00e9"}\n\n`
    const frames = [roleFrame(), contentFrame('begun')]
    const upstream = said(encode('upstream-key-of-m'), fixture.upstream.baseUrl('m'))
    const answer = await streamed('m', { kind: 'stream', frames: [...frames, upstream], ending: 'no done' })
    expect(answer.text).toBe(frames.join('') + said('[redacted]', '[upstream]'))
  })

  test('a stream whose upstream is silent for longer than the idle timeout ends with an error', async () => {
    const answer = await streamed('stall', { kind: 'stream', events: 2, ending: 'stall' })
    expect(answer.text).toContain('"error"')
    expect(answer.text).not.toContain('[DONE]')
    await fixture.upstream.only('stall').ended
  })
})

describe('a stream that has not begun', () => {
  test.each([
    [errorBody('canary: no model'), 400],
    [errorBody('canary: too much', 'server_error'), 500],
    [JSON.stringify({ error: { message: 'canary: too many', code: 429 } }), 429],
    [JSON.stringify({ error: { message: 'canary: busy', type: 'overloaded_error' } }), 529],
  ])(
    'a stream that has not begun fails with the message and the status of its error: %s',
    async (error, status) => {
      const answer = await streamed('m', {
        kind: 'stream',
        frames: [`data: ${error}\n\n`],
        ending: 'no done',
      })
      expect(answer.status).toBe(status)
      expect(answer.json().error.message).toBe(JSON.parse(error).error.message)
    },
  )

  test("a call fails with 500 and without details if the stream's first event is an error that refuses the upstream key", async () => {
    const error = errorBody('canary: bad key', 'authentication_error')
    const answer = await streamed('m', { kind: 'stream', frames: [`data: ${error}\n\n`], ending: 'no done' })
    expect(answer.status).toBe(500)
    expect(answer.text).not.toContain('canary')
  })

  test('a stream fails with 500 if its first byte is late, and the upstream request is aborted', async () => {
    const answer = await streamed('ttfb', { kind: 'silence' })
    expect(answer.status).toBe(500)
    expect(answer.json().error.type).toBe('api_error')
    await fixture.upstream.only('ttfb').ended
  })
})
