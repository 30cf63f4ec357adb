import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Fixture } from '../fixtures/fixture.ts'
import { askedOf, startRoads } from './roads.ts'
import type { Json } from './facts.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

const CHAT = JSON.stringify({
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: null, refusal: 'I will not.' },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
})
const RESPONSE = JSON.stringify({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'refusal', refusal: 'I will not.' }],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
})

describe('a model that declines in words', () => {
  test('a refusal by the model is a refusal part of a completed response for responses clients', async () => {
    const answer = await asked('responses', 'chat', CHAT)
    expect(answer['status']).toBe('completed')
    expect(answer['output'][0].content).toEqual([{ type: 'refusal', refusal: 'I will not.' }])
  })

  test.each([
    ['chat', CHAT],
    ['responses', RESPONSE],
  ] as const)(
    "a model's refusal is a text with stop_reason refusal for messages clients (%s provider)",
    async (dialect, text) => {
      const answer = await asked('messages', dialect, text)
      expect(answer['content']).toMatchObject([{ type: 'text', text: 'I will not.' }])
      expect(answer['stop_reason']).toBe('refusal')
    },
  )

  test.each([
    ['chat', CHAT],
    ['responses', RESPONSE],
  ] as const)(
    "a model's refusal is a text with finishReason STOP for Gemini clients (%s provider)",
    async (dialect, text) => {
      const answer = await asked('gemini', dialect, text)
      expect(answer['candidates'][0].content.parts).toEqual([{ text: 'I will not.' }])
      expect(answer['candidates'][0].finishReason).toBe('STOP')
    },
  )

  test('a refusal part of a responses upstream becomes message.refusal for chat clients', async () => {
    const [choice] = (await asked('chat', 'responses', RESPONSE))['choices']
    expect(choice.message).toMatchObject({ content: null, refusal: 'I will not.' })
    expect(choice.finish_reason).toBe('stop')
  })
})

async function asked(
  client: 'chat' | 'messages' | 'responses' | 'gemini',
  dialect: 'chat' | 'responses',
  text: string,
): Promise<Json> {
  const answer = await askedOf(fixture, { client, dialect, streamed: false }, text)
  return JSON.parse(answer.text) as Json
}
