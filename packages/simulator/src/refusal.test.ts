import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from './start-simulator.ts'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
})
afterAll(() => simulator.close())

/** Sends an object as JSON, or a text unchanged. */
function post(url: string, body: unknown, authorization = 'Bearer key'): Promise<Response> {
  const headers = { authorization, 'content-type': 'application/json' }
  return fetch(url, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

const paths = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
  gemini: '/models/unheard-of:generateContent',
  rerank: '/rerank',
}
const shapes = {
  chat: { error: { type: 'invalid_request_error', message: expect.any(String) } },
  messages: { type: 'error', error: { type: expect.any(String), message: expect.any(String) } },
  responses: { error: { type: 'invalid_request_error', message: expect.any(String) } },
  gemini: { error: { code: expect.any(Number), status: expect.any(String), message: expect.any(String) } },
  rerank: { message: expect.any(String) },
}
const bases = () => ({
  chat: simulator.chatUrl,
  messages: simulator.messagesUrl,
  responses: simulator.responsesUrl,
  gemini: simulator.geminiUrl,
  rerank: simulator.rerankUrl,
})

test.each(['chat', 'messages', 'responses', 'gemini', 'rerank'] as const)(
  'the simulated provider returns errors in the envelope of its protocol: %s',
  async (name) => {
    const url = bases()[name] + paths[name]
    const cases = [
      { status: 401, response: await post(url, { model: 'demo-chat' }, '') },
      { status: 404, response: await post(url, { model: 'unheard-of' }) },
      { status: 400, response: await post(url, '{"model":') },
      { status: 404, response: await post(`${bases()[name]}/elsewhere`, {}) },
    ]
    for (const { status, response } of cases) {
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject(shapes[name])
    }
  },
)
