import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock'
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { generateText, jsonSchema, streamText, tool, type ToolSet } from 'ai'
import { gaxios, JWT } from 'google-auth-library'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ACCOUNT, API_KEY, type BedrockAnswer, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import type { Double } from '../fixtures/providers/double.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'

/**
 * The doubles of the providers are verified here by the clients of the services' makers: a double that
 * accepted a wrong signature, or sent a wrong frame, would prove nothing about the gateway.
 */

const CLAUDE = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const NOVA = 'eu.amazon.nova-lite-v1:0'
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 7 },
}
const EVENTS = [
  { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 7 },
  },
  { type: 'message_stop' },
]
const CALL = { toolUseId: 'tooluse_1', name: 'weather' }
const CONVERSED = {
  output: {
    message: {
      role: 'assistant',
      content: [{ text: 'Hello' }, { toolUse: { ...CALL, input: { city: 'Paris' } } }],
    },
  },
  stopReason: 'tool_use',
  usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19 },
  metrics: { latencyMs: 1 },
}
const CONVERSED_EVENTS = [
  { messageStart: { role: 'assistant' } },
  { contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'Hel' } } },
  { contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'lo' } } },
  { contentBlockStop: { contentBlockIndex: 0 } },
  { contentBlockStart: { contentBlockIndex: 1, start: { toolUse: CALL } } },
  { contentBlockDelta: { contentBlockIndex: 1, delta: { toolUse: { input: '{"city":"Paris"}' } } } },
  { contentBlockStop: { contentBlockIndex: 1 } },
  { messageStop: { stopReason: 'tool_use' } },
  { metadata: { usage: CONVERSED.usage, metrics: { latencyMs: 1 } } },
]
const TOOLS: ToolSet = {
  weather: tool({
    inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
  }),
}
const ASKED = { max_tokens: 20, messages: [{ role: 'user' as const, content: 'hi' }] }

let bedrock: Double
let vertex: VertexDouble
let answer: BedrockAnswer

beforeAll(async () => {
  bedrock = await startBedrock(() => answer)
  vertex = await startVertex(({ path }) =>
    path.includes(':stream')
      ? {
          headers: { 'content-type': 'text/event-stream' },
          body: EVENTS.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
        }
      : { body: JSON.stringify(MESSAGE) },
  )
})
afterAll(async () => {
  await bedrock?.close()
  await vertex?.close()
})
beforeEach(() => {
  answer = { whole: CONVERSED, events: CONVERSED_EVENTS }
})

const signed = { accessKeyId: ACCOUNT.id, secretAccessKey: ACCOUNT.secret }

describe("Vercel's client of Bedrock", () => {
  const modelWith = (credentials: object) =>
    createAmazonBedrock({ region: REGION, baseURL: bedrock.url, ...credentials })(NOVA)

  test.each([
    ['a signature', signed],
    ['a signature and a session', { ...signed, sessionToken: ACCOUNT.session }],
    ['an API key', { apiKey: API_KEY }],
  ])("Vercel's Bedrock client is answered by the test double of Bedrock with %s", async (_, credentials) => {
    const { text, toolCalls, usage } = await generateText({
      model: modelWith(credentials),
      prompt: 'hi',
      tools: TOOLS,
      maxRetries: 0,
    })
    expect(text).toBe('Hello')
    expect(toolCalls[0]).toMatchObject({ toolCallId: 'tooluse_1', input: { city: 'Paris' } })
    expect(usage).toMatchObject({ inputTokens: 12, outputTokens: 7 })
  })

  test("Vercel's Bedrock client reads a stream of the test double of Bedrock", async () => {
    const stream = streamText({ model: modelWith(signed), prompt: 'hi', tools: TOOLS, maxRetries: 0 })
    let text = ''
    for await (const piece of stream.textStream) text += piece
    expect(text).toBe('Hello')
    expect((await stream.toolCalls)[0]).toMatchObject({ toolCallId: 'tooluse_1', input: { city: 'Paris' } })
    expect(await stream.usage).toMatchObject({ inputTokens: 12, outputTokens: 7 })
  })

  test.each([
    ['a wrong secret', { ...signed, secretAccessKey: 'x'.repeat(40) }],
    ['a wrong session', { ...signed, sessionToken: 'another' }],
    ['another region', { ...signed, region: 'us-east-1' }],
    ['an unknown API key', { apiKey: 'ABSKunknown' }],
  ])("Vercel's Bedrock client is refused by the test double of Bedrock with %s", async (_, credentials) => {
    const refused = generateText({ model: modelWith(credentials), prompt: 'hi', maxRetries: 0 })
    await expect(refused).rejects.toMatchObject({ statusCode: 403 })
  })

  test("the test double of Bedrock refuses an invalid tool conversation of Vercel's client, and accepts a valid one", async () => {
    const model = modelWith(signed)
    const toolCall = { type: 'tool-call', toolCallId: 'tooluse_1', toolName: 'weather', input: {} } as const
    const unanswered = generateText({
      model,
      tools: TOOLS,
      maxRetries: 0,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [toolCall] },
      ],
    })
    await expect(unanswered).rejects.toThrow()
  })
})

describe("Anthropic's client of Bedrock", () => {
  const clientWith = (secret: string) =>
    new AnthropicBedrock({
      apiKey: null,
      awsAccessKey: ACCOUNT.id,
      awsSecretKey: secret,
      awsRegion: REGION,
      baseURL: bedrock.url,
      maxRetries: 0,
    })
  beforeEach(() => {
    answer = { whole: MESSAGE, events: EVENTS }
  })

  test("Anthropic's Bedrock client is answered by the test double of Bedrock", async () => {
    const message = await clientWith(ACCOUNT.secret).messages.create({ model: CLAUDE, ...ASKED })
    expect(message.content).toEqual(MESSAGE.content)
  })

  test("Anthropic's Bedrock client reads a stream of the test double of Bedrock", async () => {
    const stream = clientWith(ACCOUNT.secret).messages.stream({ model: CLAUDE, ...ASKED })
    expect((await stream.finalMessage()).content).toEqual(MESSAGE.content)
  })

  test("the test double of Bedrock refuses Anthropic's client with a wrong secret", async () => {
    const refused = clientWith('x'.repeat(40)).messages.create({ model: CLAUDE, ...ASKED })
    await expect(refused).rejects.toMatchObject({ status: 403 })
  })
})

describe("Google's and Anthropic's clients of Vertex", () => {
  const clientOf = (account: string) => {
    const { client_email, private_key, private_key_id } = JSON.parse(account)
    // The library knows only one token endpoint, whose requests are redirected to the double here.
    const transporter = new gaxios.Gaxios({
      fetchImplementation: (url, init) =>
        fetch((url as URL).href.replace('https://oauth2.googleapis.com', vertex.url), init),
    })
    const authClient = new JWT({
      email: client_email,
      key: private_key,
      keyId: private_key_id,
      scopes: ['https://www.googleapis.com/auth/cloud-platform'],
      transporter,
    })
    return new AnthropicVertex({
      region: 'europe-west4',
      projectId: 'my-project',
      baseURL: `${vertex.url}/v1`,
      authClient,
      maxRetries: 0,
    })
  }
  const model = 'claude-sonnet-4-5@20250929'

  test("Google's and Anthropic's clients are answered by the test double of Vertex", async () => {
    const message = await clientOf(vertex.serviceAccount).messages.create({ model, ...ASKED })
    expect(message.content).toEqual(MESSAGE.content)
    expect(vertex.received.at(-1)?.path).toBe(
      `/v1/projects/my-project/locations/europe-west4/publishers/anthropic/models/${model}:rawPredict`,
    )
  })

  test("Google's and Anthropic's clients read a stream of the test double of Vertex", async () => {
    const stream = clientOf(vertex.serviceAccount).messages.stream({ model, ...ASKED })
    expect((await stream.finalMessage()).content).toEqual(MESSAGE.content)
  })

  test("the test double of Vertex refuses Google's and Anthropic's clients with an unknown service account", async () => {
    const refused = clientOf(vertex.unknownAccount).messages.create({ model, ...ASKED })
    await expect(refused).rejects.toMatchObject({
      cause: { message: expect.stringContaining('invalid_grant') },
    })
  })
})
