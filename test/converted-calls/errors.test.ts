import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame, errorBody, roleFrame } from '../fixtures/behaviour.ts'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { eventFrame, messageFrames, messagesErrorText } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { checkChatStream, checkMessagesStream } from '../conversion/grammar.ts'
import { type Client, clientsOf, MODEL, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
let chat: Client
let message: Client
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  ;({ chat, message } = clientsOf(fixture))
})
afterAll(() => fixture?.close())

/** Types of errors by status; `docs/api.md: Errors`. */
const TYPES = [
  [400, 'invalid_request_error'],
  [404, 'invalid_request_error'],
  [409, 'invalid_request_error'],
  [413, 'request_too_large'],
  [422, 'invalid_request_error'],
  [429, 'rate_limit_error'],
  [500, 'api_error'],
  [503, 'api_error'],
  [529, 'overloaded_error'],
] as const

describe("an upstream error in the envelope of the client's dialect", () => {
  test.each(TYPES)(
    'an error %i of a Messages upstream reaches a chat client with its status, and its type as the code of an error of type %s',
    async (status, type) => {
      fixture.upstream.script(MODEL.messages, {
        kind: 'status',
        status,
        body: messagesErrorText('some_error', 'not like this'),
        headers: { 'retry-after': '3' },
      })
      const answer = await chat()
      expect(answer.status).toBe(status)
      expect(answer.json()).toEqual({
        error: { message: 'not like this', type, code: 'some_error' },
      })
      // Waiting does not help a request that is refused for itself.
      expect(answer.headers['retry-after']).toBe([400, 404, 413, 422].includes(status) ? undefined : '3')
    },
  )

  test.each(TYPES)(
    'an error %i of a chat upstream reaches a Messages client with its status, and its type as the code of an error of type %s',
    async (status, type) => {
      fixture.upstream.script(MODEL.chat, {
        kind: 'status',
        status,
        body: errorBody('not like this', 'SomeError'),
      })
      const answer = await message()
      expect(answer.status).toBe(status)
      expect(answer.json()).toEqual({
        type: 'error',
        error: { type, message: 'not like this', code: 'SomeError' },
        request_id: expect.any(String),
      })
    },
  )

  test('a Messages client gets the error envelope of a Messages upstream byte for byte', async () => {
    const body = `{ "type":"error", "error": {"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1", "x": 9007199254740993}`
    fixture.upstream.script(MODEL.messages, { kind: 'status', status: 529, body })
    const answer = await message({ model: MODEL.messages })
    expect(answer.status).toBe(529)
    expect(answer.text).toBe(body)
  })

  test("an upstream's 401 for its key becomes a 500 in the client's error envelope, which does not contain the key", async () => {
    fixture.upstream.script(MODEL.messages, {
      kind: 'status',
      status: 401,
      body: messagesErrorText('authentication_error', 'bad upstream-key-of-x'),
    })
    expect(await chat()).toMatchObject({ status: 500 })
    const answer = await message({ model: MODEL.messages })
    expect(answer.status).toBe(500)
    expect(answer.json()).toEqual({
      type: 'error',
      error: {
        type: 'gateway_error',
        code: 'upstream_error',
        message: expect.stringMatching(/\(request id: \S+\)$/),
      },
      request_id: answer.headers['request-id'],
    })
    expect(answer.text).not.toContain('upstream-key')
  })

  test("an upstream's whole response that does not have the form of its protocol is a 500 for the client", async () => {
    fixture.upstream.script(MODEL.messages, { kind: 'whole', body: '{"hello":"world"}' })
    expect((await chat()).status).toBe(500)
    fixture.upstream.script(MODEL.chat, { kind: 'whole', body: '{"type":"message","content":[]}' })
    expect((await message()).status).toBe(500)
  })
})

describe('an error in the middle of a stream', () => {
  test("an error in the middle of a Messages upstream's stream ends the converted chat stream without [DONE]", async () => {
    const frames = [
      ...messageFrames([{ text: 'Hello.' }]).slice(0, 4),
      eventFrame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
    ]
    fixture.upstream.script(MODEL.messages, { kind: 'stream', frames, ending: 'no done' })
    const { text } = await chat({ stream: true })
    checkChatStream(text, false)
    expect(JSON.parse(text.trim().split('data: ').at(-1) ?? '')).toMatchObject({
      error: { type: 'overloaded_error', message: 'Overloaded' },
    })
  })

  test("an error in the middle of a chat upstream's stream ends the converted Messages stream with an error event", async () => {
    fixture.upstream.script(MODEL.chat, {
      kind: 'stream',
      frames: [roleFrame(), contentFrame('Hel')],
      ending: 'error',
    })
    const { text } = await message({ stream: true })
    checkMessagesStream(text, false)
    expect(text).toContain('the upstream stumbled')
  })

  test("a Messages client gets an error in the middle of a Messages upstream's stream in the upstream's words", async () => {
    const error = eventFrame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })
    const frames = [...messageFrames([{ text: 'Hello.' }]).slice(0, 4), error]
    fixture.upstream.script(MODEL.messages, { kind: 'stream', frames, ending: 'no done' })
    const { text } = await message({ model: MODEL.messages, stream: true })
    expect(text.startsWith(frames.slice(0, 4).join(''))).toBe(true)
    checkMessagesStream(text, false)
    expect(text).toContain('"overloaded_error"')
    expect(text).not.toContain('message_stop')
  })
})

describe('an upstream stream that is cut anywhere', () => {
  const messagesText = messageFrames([
    { text: 'Hello there.' },
    { id: 'toolu_1', name: 'f', input: '{"a":1}' },
  ]).join('')
  const chatText = (
    streamedChat({ text: 'Hello there.', calls: [{ id: 'c', name: 'f', input: '{"a":1}' }] }).frames ?? []
  ).join('')
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n'
  const offsets = (text: string, finish: string): number[] =>
    Array.from({ length: 12 }, (_, i) => Math.floor((text.indexOf(finish) * (i + 0.5)) / 12))

  test.each(offsets(messagesText, '"message_stop"'))(
    "a Messages upstream's stream that is cut at %i bytes never reaches the client as a complete stream",
    async (size) => {
      const bytes = head + messagesText.slice(0, size)
      for (const stream of [chat, (fields: object) => message({ model: MODEL.messages, ...fields })]) {
        fixture.upstream.script(MODEL.messages, { kind: 'raw', bytes, ending: 'close' })
        const { text, status } = await stream({ stream: true })
        expect(text).not.toContain('[DONE]')
        expect(text).not.toContain('message_stop')
        if (status === 200) expect(text).toMatch(/"error":\{/)
      }
    },
  )

  test.each(offsets(chatText, '"finish_reason":"tool_calls"'))(
    "a chat upstream's stream that is cut at %i bytes never reaches the client as a complete stream",
    async (size) => {
      const bytes = head + chatText.slice(0, size)
      for (const stream of [message, (fields: object) => chat({ model: MODEL.chat, ...fields })]) {
        fixture.upstream.script(MODEL.chat, { kind: 'raw', bytes, ending: 'close' })
        const { text, status } = await stream({ stream: true })
        expect(text).not.toContain('[DONE]')
        expect(text).not.toContain('message_stop')
        if (status === 200) expect(text).toMatch(/"error":\{/)
      }
    },
  )
})
