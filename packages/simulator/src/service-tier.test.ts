import { afterAll, beforeAll, expect, test } from 'vitest'
import { asFields, type Fields } from './fields.ts'
import { type Simulator, startSimulator } from './start-simulator.ts'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
})
afterAll(() => simulator.close())

async function answer(url: string, body: object): Promise<Fields> {
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return asFields(await response.json())
}

const messages = [{ role: 'user', content: 'Tell me about lighthouses' }]

test.each([
  ['flex', 'flex'],
  ['priority', 'priority'],
  ['fast', 'priority'],
  ['ultrafast', 'ultrafast'],
  ['auto', 'default'],
  [undefined, 'default'],
])(
  'simulated chat and responses calls that request the service tier %s report the tier %s',
  async (asked, served) => {
    const tier = { service_tier: asked }
    const chat = await answer(`${simulator.chatUrl}/chat/completions`, {
      model: 'demo-chat',
      messages,
      ...tier,
    })
    expect(chat.service_tier).toBe(served)
    const response = await answer(`${simulator.responsesUrl}/responses`, {
      model: 'demo-responses',
      input: 'hi',
      ...tier,
    })
    expect(response.service_tier).toBe(served)
  },
)

test('the usage of a simulated message states the requested speed and region', async () => {
  const body = { model: 'demo-claude', max_tokens: 20, messages, speed: 'fast', inference_geo: 'us' }
  const { usage } = await answer(`${simulator.messagesUrl}/messages`, body)
  expect(usage).toMatchObject({ service_tier: 'standard', speed: 'fast', inference_geo: 'us' })
})

test('the usage of a simulated Gemini response states the requested service tier', async () => {
  const body = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], serviceTier: 'FLEX' }
  const { usageMetadata } = await answer(`${simulator.geminiUrl}/models/demo-gemini:generateContent`, body)
  expect(usageMetadata).toMatchObject({ serviceTier: 'flex' })
})
