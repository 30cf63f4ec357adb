import { createOpenAI } from '@ai-sdk/openai'
import { streamText } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse } from '../fixtures/responses-behaviour.ts'

const PROTOCOLS = ['responses', 'chat', 'messages'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(PROTOCOLS),
    channels: PROTOCOLS.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** A stream of each protocol that breaks off after its first text. */
const STREAMS = {
  responses: () => streamedResponse({ text: 'Hello' }),
  chat: () => streamedChat({ text: 'Hello' }),
  messages: () => streamedMessage([{ text: 'Hello' }]),
}

function scriptBroken(protocol: (typeof PROTOCOLS)[number]): void {
  const { frames = [] } = STREAMS[protocol]()
  const begun = frames.slice(0, frames.findIndex((frame) => frame.includes('"Hel')) + 1)
  fixture.upstream.script(protocol, { kind: 'stream', frames: begun, ending: 'close' })
}

describe.each(PROTOCOLS)('a stream that an upstream of %s breaks off', (protocol) => {
  test('a stream that breaks off is a failed response with the text that arrived for the official OpenAI client', async () => {
    scriptBroken(protocol)
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    let text = ''
    const stream = client.responses.stream({ model: protocol, input: 'hi' })
    stream.on('response.output_text.delta', ({ delta }) => void (text += delta))
    const final = await stream.finalResponse()
    expect(text).toMatch(/^Hel/)
    expect(final).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
  })

  test('a stream that breaks off is an error for the AI SDK', async () => {
    scriptBroken(protocol)
    const sdk = createOpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: 'sk-ann' })
    const errors: unknown[] = []
    const onError = ({ error }: { error: unknown }) => void errors.push(error)
    const model = sdk.responses(protocol)
    await streamText({ model, prompt: 'hi', maxRetries: 0, onError }).consumeStream()
    expect(JSON.stringify(errors)).toContain('server_error')
  })
})
