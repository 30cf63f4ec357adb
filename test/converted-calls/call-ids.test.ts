import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Client, clientsOf, fixtureOfBoth, MODEL, sentTo } from '../conversion/fixture.ts'

let fixture: Fixture
let chat: Client
let client: Anthropic
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  ;({ chat } = clientsOf(fixture))
  client = new Anthropic({ apiKey: 'sk-ann', baseURL: fixture.gateway.url, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const HI = { role: 'user', content: 'hi' }
const called = (a: number): { id: string; name: string; input: string } => ({
  id: 'call_0',
  name: 'f',
  input: `{"a":${a}}`,
})

interface ToolUse {
  readonly type: string
  readonly id: string
  readonly input: unknown
}

describe('an id of a tool call that a provider uses again', () => {
  test('a messages upstream gets a different id for each tool call of a chat client, with its result', async () => {
    const round = (a: number): object[] => {
      const { id, name, input } = called(a)
      return [
        { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name, arguments: input } }] },
        { role: 'tool', tool_call_id: id, content: `result ${a}` },
      ]
    }
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    expect((await chat({ messages: [HI, ...round(1), ...round(2)] })).status).toBe(200)
    const blocks = sentTo(fixture, MODEL.messages).messages.flatMap(({ content }) => content as ToolUse[])
    const [one, other] = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id)
    expect(one).toBe('call_0')
    expect(other).not.toBe(one)
    expect(blocks.filter(({ type }) => type === 'tool_result')).toMatchObject([
      { tool_use_id: one, content: 'result 1' },
      { tool_use_id: other, content: 'result 2' },
    ])
  })

  test.each([false, true])(
    'a messages client gets a different id for each tool call of a conversation (stream: %s)',
    async (stream) => {
      const answer = stream ? streamedChat : wholeChat
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'hi' }]
      const say = (): Promise<Anthropic.Message> => {
        const asked = { model: MODEL.chat, max_tokens: 100, messages }
        return stream ? client.messages.stream(asked).finalMessage() : client.messages.create(asked)
      }
      const ids: string[] = []
      for (const calls of [[called(1)], [called(2), called(3)]]) {
        fixture.upstream.script(MODEL.chat, answer({ calls }))
        const { content } = await say()
        const uses = content.filter((block) => block.type === 'tool_use')
        expect(uses.map(({ input }) => JSON.stringify(input))).toEqual(calls.map(({ input }) => input))
        ids.push(...uses.map(({ id }) => id))
        const results = uses.map(({ id }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: 'done',
        }))
        messages.push({ role: 'assistant', content }, { role: 'user', content: results })
      }
      expect(ids[0]).toBe('call_0')
      expect(new Set(ids).size).toBe(3)
      fixture.upstream.script(MODEL.chat, answer({ text: 'Hello.' }))
      await say()
      const sent = sentTo(fixture, MODEL.chat).messages
      expect(sent.flatMap(({ tool_call_id: id }) => id ?? [])).toEqual(ids)
    },
  )
})
