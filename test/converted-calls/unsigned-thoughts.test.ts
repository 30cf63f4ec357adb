import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { 'gpt-5': { vendor: 'acme', price: PLAIN_PRICE, takes_thoughts: true } },
    channels: [channel('gpt-5', upstream.baseUrl('gpt-5'))],
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
