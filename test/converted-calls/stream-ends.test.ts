import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  type Streamed,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { eventFrame, messageFrames, STOP_FRAME } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { checkChatStream, checkMessagesStream } from '../conversion/grammar.ts'
import { clientsOf, MODEL, MODES, type Mode, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth()
})
afterAll(() => fixture?.close())

type Protocol = 'chat' | 'messages'
const COMBINATIONS = [
  ['chat', 'native'],
  ['chat', 'converted'],
  ['messages', 'native'],
  ['messages', 'converted'],
] as const satisfies readonly (readonly [Protocol, Mode])[]

const stream = (frames: readonly string[]): Streamed => ({ kind: 'stream', frames, ending: 'no done' })

/** The client's response for these frames of an upstream, native or converted. */
async function responseFor(upstream: Protocol, mode: Mode, frames: readonly string[]): Promise<FullResponse> {
  fixture.upstream.script(MODEL[upstream], stream(frames))
  const { chat, message } = clientsOf(fixture)
  const isChat = (upstream === 'chat') === (mode === 'native')
  return (isChat ? chat : message)({ model: MODEL[upstream], stream: true })
}

function charged({ headers }: FullResponse): UsageRow | undefined {
  return databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
}

const MESSAGE = messageFrames([{ text: 'Hello.' }])
const UNFINISHED = MESSAGE.slice(0, -2)
const REASON = MESSAGE.at(-2) ?? ''
/** How a stream can end: its frames so far, and its end. */
const ENDS: Record<
  Protocol,
  { readonly begun: readonly string[]; readonly reason: string; readonly last: string }
> = {
  chat: { begun: [roleFrame(), contentFrame('Hello.')], reason: finishFrame(), last: DONE_FRAME },
  messages: { begun: UNFINISHED, reason: REASON, last: STOP_FRAME },
}

const isEnded = (text: string): boolean => /^data: (?:\[DONE\]|\{"type":"message_stop"\})$/m.test(text)

describe.each(COMBINATIONS)('a stream of a %s upstream, %s', (upstream, mode) => {
  const { begun, reason, last } = ENDS[upstream]

  test('a stream that ends after its finish reason counts as complete, with or without a final frame such as [DONE]', async () => {
    for (const frames of [
      [...begun, reason, last],
      [...begun, reason],
    ]) {
      const answer = await responseFor(upstream, mode, frames)
      expect(answer.text).not.toContain('"error"')
      // Nothing is added to a native stream.
      if (mode === 'native') expect(answer.text).toBe(frames.join(''))
      else expect(isEnded(answer.text)).toBe(true)
      expect(charged(answer)?.reason).toBeOneOf(['complete', 'estimated'])
    }
  })

  test('a stream with nothing but its final frame is no answer, and costs nothing', async () => {
    const answer = await responseFor(upstream, mode, [last])
    expect(answer.status, answer.text).toBe(500)
    await vi.waitFor(() => expect(charged(answer)).toMatchObject({ quota: 0, reason: 'failed' }), 60_000)
  })

  test('a stream with a final frame and no finish reason counts as complete', async () => {
    const answer = await responseFor(upstream, mode, [...begun, last])
    expect(answer.text).not.toContain('"error"')
    expect(isEnded(answer.text)).toBe(true)
  })

  test('a stream with neither finish reason nor final frame counts as cut off, and ends with an error', async () => {
    const answer = await responseFor(upstream, mode, begun)
    expect(answer.text).toContain('"error"')
    expect(isEnded(answer.text)).toBe(false)
    expect(charged(answer)?.reason).toBe('cut')
  })
})

describe.each(MODES)('%s, a message with two starts', (mode) => {
  test('a messages stream with two message_start events is one message, and is charged once', async () => {
    const [start = '', ...rest] = MESSAGE
    const answer = await responseFor('messages', mode, [start, start, ...rest])
    expect(answer.status).toBe(200)
    if (mode === 'native') expect(answer.text).toBe([start, start, ...rest].join(''))
    else checkChatStream(answer.text, true)
    expect(charged(answer)).toMatchObject({ quota: 10 + 5 * 4, reason: 'complete' })
  })
})

describe('an upstream error', () => {
  const OVERLOADED = eventFrame('error', {
    error: { type: 'overloaded_error', message: 'Overloaded', details: { x: 1 } },
    request_id: 'req_1',
  })
  const both = (frames: readonly string[]): string[] => [frames.join('')]

  test.each(MODES)(
    'an upstream error in message_start is passed on with its status and message: %s',
    async (mode) => {
      const answer = await responseFor('messages', mode, both([MESSAGE[0] ?? '', OVERLOADED]))
      expect(answer.status).toBe(529)
      expect(answer.json().error.message).toBe('Overloaded')
      if (mode === 'native')
        expect(answer.json()).toEqual({
          type: 'error',
          error: { type: 'overloaded_error', message: 'Overloaded', details: { x: 1 } },
          request_id: 'req_1',
        })
    },
  )

  test('an upstream error in the first chunk of a chat stream is passed on to a messages client with its status and message', async () => {
    const error = `data: ${JSON.stringify({ error: { message: 'too many', code: 429 } })}\n\n`
    const answer = await responseFor('chat', 'converted', both([roleFrame(), error]))
    expect(answer.status).toBe(429)
    expect(answer.json()).toMatchObject({ type: 'error', error: { message: 'too many' } })
  })

  test('an upstream error in the middle of a native messages stream is forwarded byte for byte, as the last event', async () => {
    const frames = [...UNFINISHED, OVERLOADED]
    const { text } = await responseFor('messages', 'native', [...frames, STOP_FRAME])
    expect(text).toBe(frames.join(''))
  })

  const SECRET = 'sk-secret1234567'
  const OWN_WORDS: [string, string, string][] = [
    [
      'named by its event alone',
      `event: error\ndata: {"type":"overloaded_error","message":"bad ${SECRET}"}\n\n`,
      'overloaded_error',
    ],
    [
      'of another type than its event',
      `event: error\ndata: {"type":"ping","error":{"type":"overloaded_error","message":"bad ${SECRET}"}}\n\n`,
      'overloaded_error',
    ],
    ['without a type and a name', `data: {"error":{"message":"bad ${SECRET}"}}\n\n`, 'api_error'],
    ['in a text', `data: {"error":"bad ${SECRET}"}\n\n`, 'api_error'],
  ]
  test.each(OWN_WORDS.flatMap((one) => MODES.map((mode) => [...one, mode] as const)))(
    'an upstream error in the middle of a messages stream, %s, is the last event, with keys redacted',
    async (_, error, type, mode) => {
      const answer = await responseFor('messages', mode, [...UNFINISHED, error, STOP_FRAME])
      if (mode === 'native')
        expect(answer.text).toBe(UNFINISHED.join('') + error.replace(SECRET, '[redacted]'))
      else {
        const last = answer.text.trimEnd().split('\n\n').at(-1) ?? ''
        expect(JSON.parse(last.slice('data: '.length))).toMatchObject({
          error: { type, message: 'bad [redacted]' },
        })
      }
      expect(charged(answer)?.reason).toBe('cut')
    },
  )
})

// One unit for a prompt token, four for an output token.
describe('usage before an error, or with it', () => {
  const usage = usageText(300, 50)
  const begun = [roleFrame(), contentFrame('Hello.')]
  const chatError = (beside: string): string => `data: {"error":{"message":"no"},"choices":[]${beside}}\n\n`
  const counts = { input_tokens: 300, output_tokens: 50 }
  const messagesBegun = messageFrames([{ text: 'Hello.' }], {
    counts: { input_tokens: 300, output_tokens: 1 },
  }).slice(0, -2)
  const messagesError = (fields: object = {}): string =>
    eventFrame('error', { error: { type: 'api_error', message: 'no' }, ...fields })

  const CASES: [string, Protocol, readonly string[]][] = [
    ['a chunk before', 'chat', [...begun, usageFrame(usage), chatError('')]],
    ['beside the error', 'chat', [...begun, chatError(`,"usage":${usage}`)]],
    ['in the error', 'chat', [...begun, `data: {"error":{"message":"no","usage":${usage}}}\n\n`]],
    ['a chunk before a cut', 'chat', [...begun, usageFrame(usage)]],
    [
      'a message_delta before',
      'messages',
      [...messagesBegun, eventFrame('message_delta', { delta: {}, usage: counts }), messagesError()],
    ],
    ['beside the error', 'messages', [...messagesBegun, messagesError({ usage: counts })]],
    [
      'in an error without a type',
      'messages',
      [...messagesBegun, `data: ${JSON.stringify({ error: { message: 'no', usage: counts } })}\n\n`],
    ],
  ]
  test.each(CASES.flatMap((one) => MODES.map((mode) => [...one, mode] as const)))(
    'usage that a stream reports before its error, or with it, is charged: %s, of a %s upstream',
    async (_, upstream, frames, mode) => {
      const answer = await responseFor(upstream, mode, frames)
      expect(answer.text).toContain('"error"')
      expect(charged(answer)).toMatchObject({
        input_tokens: 300,
        output_tokens: 50,
        quota: 300 + 50 * 4,
        reason: 'cut',
      })
    },
  )

  test.each(MODES)(
    'reported prompt tokens are charged together with counted output tokens where an error ends the stream: %s',
    async (mode) => {
      const row = charged(await responseFor('messages', mode, [...messagesBegun, messagesError()]))
      expect(row).toMatchObject({ input_tokens: 300, reason: 'cut' })
      expect(row?.output_tokens).toBeLessThan(10)
    },
  )
})

describe('converted responses without reported usage', () => {
  const withoutUsage = (frames: readonly string[]): string[] =>
    frames.map((frame) => frame.replace(/,"usage":\{[^}]*\}/, ''))

  test('a stream converted to messages ends with the charged usage, and states prompt tokens in its first event', async () => {
    const { message } = clientsOf(fixture)
    const words = 'apple banana cherry '.repeat(50)
    fixture.upstream.script(
      MODEL.chat,
      stream([roleFrame(), contentFrame('Hello there.'), finishFrame(), DONE_FRAME]),
    )
    const answer = await message({ stream: true, messages: [{ role: 'user', content: words }] })
    checkMessagesStream(answer.text, true)
    const row = charged(answer)
    expect(row?.reason).toBe('estimated')
    const [start, ...others] = [...answer.text.matchAll(/"usage":(\{.*?\})/g)]
    expect(start?.[1]).toMatch(/"input_tokens":[1-9]/)
    expect(others).toHaveLength(1)
    expect(answer.text).toContain(`"usage":{"input_tokens":${row?.input_tokens},`)
    expect(answer.text).toContain(`"output_tokens":${row?.output_tokens},`)
  })

  test('a stream converted to chat reports the charged usage if the client requested usage', async () => {
    const { chat } = clientsOf(fixture)
    fixture.upstream.script(MODEL.messages, stream(withoutUsage(MESSAGE)))
    const answer = await chat({ stream: true, stream_options: { include_usage: true } })
    checkChatStream(answer.text, true)
    const row = charged(answer)
    expect(row?.reason).toBe('estimated')
    expect(answer.text).toContain(
      `"choices":[],"usage":{"prompt_tokens":${row?.input_tokens},"completion_tokens":${row?.output_tokens},`,
    )
  })

  test('a converted whole response of either protocol reports the charged usage', async () => {
    const { chat, message } = clientsOf(fixture)
    fixture.upstream.script(MODEL.chat, { kind: 'whole', content: 'Hello there.', usage: null })
    const toMessages = await message()
    expect(toMessages.json()).toMatchObject({
      usage: {
        input_tokens: charged(toMessages)?.input_tokens,
        output_tokens: charged(toMessages)?.output_tokens,
      },
    })
    fixture.upstream.script(MODEL.messages, {
      kind: 'whole',
      body: '{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn"}',
    })
    const toChat = await chat()
    expect(toChat.json()).toMatchObject({
      usage: {
        prompt_tokens: charged(toChat)?.input_tokens,
        completion_tokens: charged(toChat)?.output_tokens,
      },
    })
    for (const answer of [toMessages, toChat]) {
      expect(charged(answer)?.input_tokens).toBeGreaterThan(0)
      expect(charged(answer)?.output_tokens).toBeGreaterThan(0)
    }
  })
})

describe('streams that are only an error', () => {
  const busy = JSON.stringify({ error: { message: 'odd words', type: 'overloaded_error' } })

  test.each(MODES)(
    'a stream that is only an error is reported with its message and status: %s',
    async (mode) => {
      const answer = await responseFor('chat', mode, [`data: ${busy}\n\n`])
      expect(answer.status).toBe(529)
      expect(answer.json().error.message).toContain('odd words')
    },
  )
})
