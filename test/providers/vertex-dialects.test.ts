import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'

/** Models by what determines their dialect: the upstream's name, not the client's. */
const MAPPING = {
  'my-claude': 'claude-sonnet-4-5@20250929',
  'my-gemini': 'gemini-2.5-pro',
  'claude-named': 'meta/llama-4-maverick-17b-128e-instruct-maas',
  'my-embedder': 'text-embedding-005',
}
const ANSWERS = {
  anthropic: JSON.stringify({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [{ type: 'text', text: 'said' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 12, output_tokens: 7 },
  }),
  google: JSON.stringify({
    candidates: [{ content: { role: 'model', parts: [{ text: 'said' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
  }),
  chat: JSON.stringify({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'llama',
    choices: [{ index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
  }),
  predict: '{"predictions":[{"embeddings":{"values":[0.5,0.25],"statistics":{"token_count":3}}}]}',
}

let vertex: VertexDouble
let gateway: RunningGateway
beforeAll(async () => {
  vertex = await startVertex(({ path }) => {
    if (path.endsWith(':predict')) return { body: ANSWERS.predict }
    if (path.includes('/publishers/anthropic/')) return { body: ANSWERS.anthropic }
    return { body: path.includes('/publishers/google/') ? ANSWERS.google : ANSWERS.chat }
  })
  gateway = await startGateway({
    config: {
      options: { media: { allow_private_networks: true } },
      models: priced(Object.keys(MAPPING)),
      channels: [
        {
          name: 'vertex',
          provider: 'vertex',
          location: 'europe-west4',
          base_url: vertex.url,
          protocol: ['gemini', 'messages', 'chat'],
          keys: [vertex.serviceAccount],
          models: Object.keys(MAPPING),
          model_mapping: MAPPING,
        },
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await vertex?.close()
})
beforeEach(() => {
  vertex.received.length = 0
})

const hi = [{ role: 'user', content: 'hi' }]
const CLIENTS: Readonly<Record<string, (model: string) => readonly [path: string, body: object]>> = {
  chat: (model) => ['/v1/chat/completions', { model, messages: hi }],
  messages: (model) => ['/v1/messages', { model, messages: hi, max_tokens: 20 }],
  responses: (model) => ['/v1/responses', { model, input: 'hi' }],
  gemini: (model) => [`/v1beta/models/${model}:generateContent`, { contents: [{ parts: [{ text: 'hi' }] }] }],
}
const PATHS = {
  'my-claude': '/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict',
  'my-gemini': '/publishers/google/models/gemini-2.5-pro:generateContent',
  'claude-named': '/endpoints/openapi/chat/completions',
} as const

describe.each(Object.keys(CLIENTS))(
  'a client of %s on a channel of Vertex with several dialects',
  (client) => {
    test.each(Object.entries(PATHS))(
      "a call of the Vertex model %s is sent in the dialect that belongs to the upstream's model name",
      async (model, path) => {
        const [to, body] = CLIENTS[client]?.(model) ?? ['', {}]
        const answer = await call(gateway.url, body, { key: 'ann', path: to })
        expect(answer.status, answer.text).toBe(200)
        expect(answer.text).toContain('said')
        const asked = vertex.received.filter((request) => request.path !== '/token')
        expect(asked.map((request) => request.path.replace(/^.*europe-west4/, ''))).toEqual([path])
      },
    )
  },
)

test.each([
  ['/v1/embeddings', { model: 'my-embedder', input: 'hi' }],
  ['/v1beta/models/my-embedder:embedContent', { content: { parts: [{ text: 'hi' }] } }],
])('embeddings are requested from Vertex at the path of publisher google: %s', async (path, body) => {
  const answer = await call(gateway.url, body, { key: 'ann', path })
  expect(answer.status, answer.text).toBe(200)
  expect(vertex.received.at(-1)?.path).toContain('/publishers/google/models/text-embedding-005:predict')
})

test("the gateway counts tokens itself for a Vertex model without an endpoint for counting in the client's dialect", async () => {
  const counted = await call(
    gateway.url,
    { model: 'my-gemini', messages: hi },
    { key: 'ann', path: '/v1/messages/count_tokens' },
  )
  expect(counted.status, counted.text).toBe(200)
  expect(vertex.received).toHaveLength(0)
})

test('the model list names the dialect in which a Vertex channel is called', async () => {
  const listed = await call(gateway.url, undefined, { key: 'ann', path: '/v1/models', method: 'GET' })
  const { data } = JSON.parse(listed.text) as { data: { id: string; supported_endpoint_types: string[] }[] }
  const types = Object.fromEntries(data.map((model) => [model.id, model.supported_endpoint_types]))
  expect(types).toMatchObject({ 'my-claude': ['vendor'], 'claude-named': ['compat'] })
})
