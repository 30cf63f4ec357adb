import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { expect, onTestFinished, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { streamedMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse } from '../fixtures/responses-behaviour.ts'

const ANSWERS = {
  responses: streamedResponse({ text: 'an answer' }),
  chat: streamedChat({ text: 'an answer' }),
  messages: streamedMessage([{ text: 'an answer' }]),
} as const

test('the official OpenAI client holds a conversation over a WebSocket, on channels of every protocol', async () => {
  const protocols = Object.keys(ANSWERS) as (keyof typeof ANSWERS)[]
  const fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(protocols),
    channels: protocols.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  onTestFinished(() => fixture.close())
  const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1` })
  const socket = new ResponsesWS(client)
  onTestFinished(() => socket.close())
  const completed = (): Promise<OpenAI.Responses.Response> =>
    new Promise((resolve, reject) => {
      socket.once('response.completed', ({ response }) => resolve(response))
      socket.once('error', reject)
    })
  for (const model of protocols) {
    fixture.upstream.script(model, ANSWERS[model])
    let next = completed()
    socket.send({ type: 'response.create', model, input: 'a question', store: false })
    const first = await next
    expect(first.usage?.output_tokens).toBeGreaterThan(0)
    next = completed()
    socket.send({
      type: 'response.create',
      model,
      input: 'go on',
      store: false,
      previous_response_id: first.id,
    })
    await next
    const sent = fixture.upstream.received(model)[1]?.text ?? ''
    for (const text of ['a question', 'an answer', 'go on']) expect(sent).toContain(text)
  }
})
