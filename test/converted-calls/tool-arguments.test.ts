import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { type Client, clientsOf, MODEL, sentTo, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
let chat: Client
let message: Client
let client: Anthropic
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  ;({ chat, message } = clientsOf(fixture))
  client = new Anthropic({ apiKey: 'sk-ann', baseURL: fixture.gateway.url, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const HI = { role: 'user', content: 'hi' }
const called = (input: string): { id: string; name: string; input: string } => ({
  id: 'c1',
  name: 'f',
  input,
})

/** A history in which a chat client's model called a tool with these arguments. */
const chatHistory = (args: unknown): object => ({
  messages: [
    HI,
    {
      role: 'assistant',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: args } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ],
})

/** The same history for a messages client. */
const messagesHistory = (input: unknown): object => ({
  messages: [
    HI,
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'done' }] },
  ],
})

describe('empty arguments', () => {
  test.each(['', 'null', ' null ', '""', null])(
    "empty arguments of a tool call in a chat client's history become {} for a messages upstream: %j",
    async (args) => {
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
      expect((await chat(chatHistory(args))).status).toBe(200)
      expect(sentTo(fixture, MODEL.messages).messages[1]?.['content']).toEqual([
        { type: 'tool_use', id: 'c1', name: 'f', input: {} },
      ])
    },
  )

  test.each([null, ''])(
    "empty input of a tool call in a messages client's history becomes an empty object for the upstream: %j",
    async (input) => {
      fixture.upstream.script(MODEL.chat, wholeChat({ text: 'Hello.' }))
      expect((await message(messagesHistory(input))).status).toBe(200)
      expect(sentTo(fixture, MODEL.chat).messages[1]?.['tool_calls']).toEqual([
        { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } },
      ])
    },
  )

  test.each(['', 'null', '""'])(
    'empty arguments of a tool call in a whole response become {} for a messages client: %j',
    async (input) => {
      fixture.upstream.script(MODEL.chat, wholeChat({ calls: [called(input)] }))
      const answer = JSON.parse((await message()).text)
      expect(answer.content).toMatchObject([{ type: 'tool_use', id: 'c1', name: 'f', input: {} }])
      expect(answer.stop_reason).toBe('tool_use')
    },
  )

  test.each(['null', '""'])(
    'empty arguments of a tool call in a whole response become {} for a chat client: %s',
    async (input) => {
      fixture.upstream.script(MODEL.messages, wholeMessage([called(input)]))
      expect((await chat()).json().choices[0]?.message).toMatchObject({
        tool_calls: [{ id: 'c1', function: { name: 'f', arguments: '{}' } }],
      })
    },
  )

  // The first piece is four characters long.
  test.each(['', 'null', '  null', 'null  ', '   ', '""', '  ""'])(
    'empty arguments of a tool call that are streamed in pieces become {} for a messages client: %j',
    async (input) => {
      fixture.upstream.script(MODEL.chat, streamedChat({ calls: [called(input)] }))
      const { text } = await message({ stream: true })
      expect(text).not.toContain('input_json_delta')
      const answer = await client.messages
        .stream({ model: MODEL.chat, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] })
        .finalMessage()
      expect(answer.content).toMatchObject([{ type: 'tool_use', id: 'c1', name: 'f', input: {} }])
    },
  )

  test.each(['null', '""'])(
    'empty arguments of a tool call that are streamed in pieces become {} for a chat client: %s',
    async (input) => {
      fixture.upstream.script(MODEL.messages, streamedMessage([called(input)]))
      const { text } = await chat({ stream: true })
      expect(argumentsIn(text)).toEqual(['{}'])
    },
  )
})

describe('arguments that are text other than an object', () => {
  test.each(['nul', 'not json', '[]', '7', '{"a":'])(
    'arguments in a chat history that are no JSON object arrive at a messages channel as raw_arguments: %s',
    async (args) => {
      fixture.upstream.forget(MODEL.messages)
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Again.' }]))
      const answer = await chat(chatHistory(args))
      expect(answer.status).toBe(200)
      const [call] = sentTo(fixture, MODEL.messages).messages.flatMap(({ content }) =>
        (content as { type: string }[]).filter(({ type }) => type === 'tool_use'),
      )
      expect(call).toMatchObject({ input: { raw_arguments: args } })
    },
  )

  test.each([[], 7, 'x', '{}', true])(
    'a messages history whose tool call has an input other than an object is a 400: %j',
    async (input) => {
      const answer = await message(messagesHistory(input))
      expect(answer.status).toBe(400)
      expect(answer.json().error.message).toContain('input')
    },
  )

  test.each(['nul', 'nulls', 'not json', 'n', ' "x"', '[]'])(
    'streamed tool arguments that are not a JSON object are passed on unchanged to a messages client: %j',
    async (input) => {
      fixture.upstream.script(MODEL.chat, streamedChat({ calls: [called(input)] }))
      const { text } = await message({ stream: true })
      const pieces = [...text.matchAll(/"partial_json":("(?:[^"\\]|\\.)*")/g)].map(([, piece]) => piece ?? '')
      expect(pieces.map((piece) => JSON.parse(piece)).join('')).toBe(input)
      expect(text).toContain('"stop_reason":"max_tokens"')
      expect(text).toContain('message_stop')
    },
  )
})

/** The arguments of calls in a chat stream, concatenated. */
function argumentsIn(stream: string): string[] {
  const calls: string[] = []
  for (const line of stream.split('\n').filter((one) => one.startsWith('data: {'))) {
    const { choices } = JSON.parse(line.slice('data: '.length)) as Chunk
    for (const { index, function: piece } of choices[0]?.delta.tool_calls ?? [])
      calls[index] = (calls[index] ?? '') + piece.arguments
  }
  return calls
}

interface Chunk {
  readonly choices: readonly {
    readonly delta: {
      readonly tool_calls?: readonly {
        readonly index: number
        readonly function: { readonly arguments: string }
      }[]
    }
  }[]
}
