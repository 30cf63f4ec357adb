import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ACCOUNT, type BedrockAnswer, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import type { Double } from '../fixtures/providers/double.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'

const BEDROCK_ID = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const VERTEX_ID = 'claude-sonnet-4-5@20250929'
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
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
]
const STREAM = EVENTS.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const THROTTLED: BedrockAnswer = {
  error: { status: 429, name: 'ThrottlingException', message: 'Too many tokens' },
}

let bedrock: Double
let vertex: VertexDouble
let gateway: RunningGateway
let answer: BedrockAnswer = { whole: MESSAGE, events: EVENTS }
beforeAll(async () => {
  bedrock = await startBedrock(() => answer)
  vertex = await startVertex(({ path }) =>
    path.includes(':streamRawPredict')
      ? { headers: { 'content-type': 'text/event-stream' }, body: STREAM }
      : { body: JSON.stringify(MESSAGE) },
  )
  gateway = await startGateway({
    config: {
      options: { media: { allow_private_networks: true } },
      models: {
        // One and four units a token at Bedrock, twice as many at Vertex.
        claude: { price: { input: 2, output: 8 }, fallback: ['claude-at-vertex'] },
        'claude-at-vertex': { price: { input: 4, output: 16 } },
      },
      channels: [
        {
          name: 'bedrock',
          provider: 'bedrock',
          protocol: 'messages',
          region: REGION,
          base_url: bedrock.url,
          keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`],
          models: ['claude'],
          model_mapping: { claude: BEDROCK_ID },
        },
        {
          name: 'vertex',
          provider: 'vertex',
          protocol: 'messages',
          location: 'europe-west4',
          base_url: vertex.url,
          keys: [vertex.serviceAccount],
          models: ['claude-at-vertex'],
          model_mapping: { 'claude-at-vertex': VERTEX_ID },
        },
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await bedrock?.close()
  await vertex?.close()
})

test.each([
  [false, { whole: MESSAGE, events: EVENTS }, 'bedrock', 'claude', 12 + 7 * 4],
  [true, { whole: MESSAGE, events: EVENTS }, 'bedrock', 'claude', 12 + 7 * 4],
  [false, THROTTLED, 'vertex', 'claude-at-vertex', 24 + 7 * 8],
  [true, THROTTLED, 'vertex', 'claude-at-vertex', 24 + 7 * 8],
  [
    true,
    { events: [], exception: { name: 'throttlingException', message: 'wait' } },
    'vertex',
    'claude-at-vertex',
    80,
  ],
])(
  'of two providers, the one that answers is charged (stream %s, %j)',
  async (stream, given, channel, model, quota) => {
    answer = given
    const body = { model: 'claude', stream, max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }
    const came = await call(gateway.url, body, { key: 'ann', path: '/v1/messages' })
    expect(came.status, came.text).toBe(200)
    expect(came.text).toContain('Hello')
    expect(came.headers['x-gateway-model']).toBe(model)
    const row = databaseOf(gateway.dataDir).usageOf(String(came.headers['x-request-id']))
    expect(row).toMatchObject({ channel, model, quota, input_tokens: 12, output_tokens: 7 })
  },
)
