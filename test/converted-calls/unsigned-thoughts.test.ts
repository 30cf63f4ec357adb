import Anthropic from '@anthropic-ai/sdk'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      'gpt-5': { vendor: 'acme', price: PLAIN_PRICE, takes_thoughts: true },
      claude: { vendor: 'acme', price: PLAIN_PRICE, takes_thoughts: true },
    },
    channels: [
      channel('gpt-5', upstream.baseUrl('gpt-5')),
      channel('anthropic', upstream.baseUrl('anthropic'), {
        protocol: 'messages',
        models: ['claude'],
        priority: 5,
      }),
      channel('other', upstream.baseUrl('other'), { models: ['claude'], priority: 1 }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const THOUGHT = 'I had better look.'
const call = { id: 'call_1', name: 'look', input: '{}' }

test.each([false, true])(
  'a thought without a signature is sent back to its provider by a client with store: false (stream: %s)',
  async (stream) => {
    const answer = stream ? streamedChat : wholeChat
    fixture.upstream.script('gpt-5', answer({ thoughts: THOUGHT, calls: [call] }), answer({ text: 'Sunny.' }))
    const asked = {
      model: createOpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: 'sk-ann' }).responses('gpt-5'),
      prompt: 'How is it there?',
      providerOptions: { openai: { store: false } },
      maxRetries: 0,
      stopWhen: isStepCount(2),
      tools: { look: tool({ inputSchema: z.object({}), execute: () => 'sunny' }) },
    }
    expect(await (stream ? streamText(asked).text : generateText(asked).then(({ text }) => text))).toBe(
      'Sunny.',
    )
    const { messages } = JSON.parse(fixture.upstream.received('gpt-5')[1]?.text ?? '{}')
    expect(messages[1]).toMatchObject({ reasoning_content: THOUGHT, tool_calls: [{ id: 'call_1' }] })
  },
)

test.each([false, true])(
  'a thought without a signature is sent back by a messages client to chat channels, and to no messages channel (stream: %s)',
  async (stream) => {
    const answer = stream ? streamedChat : wholeChat
    const down: Behaviour = { kind: 'status', status: 503, body: '{}' }
    const client = new Anthropic({ baseURL: fixture.gateway.url, apiKey: 'sk-ann', maxRetries: 0 })
    const say = (...more: Anthropic.MessageParam[]): Promise<Anthropic.Message> => {
      const asked = {
        model: 'claude',
        max_tokens: 3000,
        messages: [{ role: 'user' as const, content: 'How is it there?' }, ...more],
      }
      return stream ? client.messages.stream(asked).finalMessage() : client.messages.create(asked)
    }
    fixture.upstream.script('anthropic', down)
    fixture.upstream.script('other', answer({ thoughts: THOUGHT, calls: [call] }))
    const { content } = await say()
    expect(content).toMatchObject([{ type: 'thinking', thinking: THOUGHT }, { type: 'tool_use' }])
    const turns: Anthropic.MessageParam[] = [
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'sunny' }] },
    ]
    fixture.upstream.script('anthropic', down)
    fixture.upstream.script('other', answer({ text: 'Sunny.' }))
    await say(...turns)
    const atOther = JSON.parse(fixture.upstream.only('other').text)
    expect(atOther.messages[1]).toMatchObject({ reasoning_content: THOUGHT, tool_calls: [{ id: 'call_1' }] })
    const said = [{ text: 'Sunny.' }]
    fixture.upstream.script('anthropic', stream ? streamedMessage(said) : wholeMessage(said))
    await say(...turns)
    const { messages } = JSON.parse(fixture.upstream.only('anthropic').text)
    expect(messages[1].content).toMatchObject([{ type: 'tool_use', id: 'call_1' }])
  },
)
