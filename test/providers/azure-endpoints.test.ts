import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import {
  type Double,
  type DoubleAnswer,
  type ReceivedByDouble,
  startDouble,
} from '../fixtures/providers/double.ts'

const KEY = 'azure-key-0123456789'
const VERSION = '2025-03-01-preview'
const DEPLOYMENT = 'my-deployment'
const SPEECH = Buffer.from('ID3 sound')
const RESPONSE = {
  id: 'resp_azure',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: DEPLOYMENT,
  content_filters: [{ blocked: false, source_type: 'prompt' }],
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
}
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 9, output_tokens: 3 },
}
const ANSWERS: Readonly<Record<string, DoubleAnswer>> = {
  responses: { body: JSON.stringify(RESPONSE) },
  embeddings: {
    body: JSON.stringify({
      object: 'list',
      model: DEPLOYMENT,
      data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }],
      usage: { prompt_tokens: 2, total_tokens: 2 },
    }),
  },
  'images/generations': {
    body: JSON.stringify({
      created: 1,
      data: [{ b64_json: 'aGk=', content_filter_results: { hate: { filtered: false } } }],
      usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
    }),
  },
  'images/edits': { body: JSON.stringify({ created: 1, data: [{ b64_json: 'aGk=' }] }) },
  'audio/speech': { headers: { 'content-type': 'audio/mpeg' }, body: SPEECH },
  'audio/transcriptions': {
    body: JSON.stringify({ text: 'hello', usage: { type: 'duration', seconds: 2 } }),
  },
  'audio/translations': { body: JSON.stringify({ text: 'hello' }) },
  '/anthropic/v1/messages': { body: JSON.stringify(MESSAGE) },
}

/**
 * Verifies what Azure verifies. Responses and the v1 API have the deployment in the body, others in the path.
 */
function answer({ path, headers, body }: ReceivedByDouble): DoubleAnswer {
  const refused = (status: number, code: string): DoubleAnswer => ({
    status,
    body: JSON.stringify({ error: { code, message: code } }),
  })
  if ((headers['api-key'] ?? headers['x-api-key']) !== KEY || headers.authorization !== undefined)
    return refused(401, '401')
  const url = new URL(path, 'http://azure')
  const [, dated] = /^\/openai\/deployments\/my-deployment\/(.+)$/.exec(url.pathname) ?? []
  const [, named] = /^\/openai\/(?:v1\/)?(.+)$/.exec(url.pathname) ?? []
  const isV1 = url.pathname.startsWith('/openai/v1/')
  const isClaude = url.pathname.startsWith('/anthropic/')
  if (!isClaude && !isV1 && url.searchParams.get('api-version') !== VERSION) return refused(404, '404')
  const isNamed = isClaude || isV1 || url.pathname === '/openai/responses'
  if (isNamed && !body.includes(DEPLOYMENT)) return refused(404, 'DeploymentNotFound')
  const endpoint = isClaude ? url.pathname : isNamed ? named : dated
  return ANSWERS[endpoint ?? ''] ?? refused(404, '404')
}

let azure: Double
let gateway: RunningGateway
beforeAll(async () => {
  azure = await startDouble(answer)
  const made = (name: string, fields: object): Record<string, unknown> => ({
    name,
    provider: 'azure',
    base_url: azure.url,
    keys: [KEY],
    models: [name],
    model_mapping: { [name]: DEPLOYMENT },
    ...fields,
  })
  gateway = await startGateway({
    config: {
      models: {
        ...priced(['dated', 'undated', 'claude', 'dated-responses', 'undated-responses']),
      },
      channels: [
        made('dated', { protocol: 'chat', api_version: VERSION }),
        made('undated', { protocol: 'chat' }),
        made('dated-responses', { protocol: 'responses', api_version: VERSION }),
        made('undated-responses', { protocol: 'responses' }),
        made('claude', { protocol: 'messages' }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await azure?.close()
})
beforeEach(() => {
  azure.received.length = 0
})

const post = (path: string, body: object): Promise<FullResponse> =>
  call(gateway.url, body, { key: 'ann', path })

function expectCharged({ headers }: FullResponse, quota: number): void {
  const row = databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))
  expect(row).toMatchObject({ quota, reason: 'complete' })
}

const below = (model: string, path: string): string =>
  model === 'dated'
    ? `/openai/deployments/${DEPLOYMENT}/${path}?api-version=${VERSION}`
    : `/openai/v1/${path}`

describe.each(['dated', 'undated'])('an Azure channel serves: %s', (model) => {
  test('an Azure channel sends embeddings to the path for its API version, and charges the reported usage', async () => {
    const came = await post('/v1/embeddings', { model, input: 'hello there' })
    expect(came.status, came.text).toBe(200)
    expect(JSON.parse(came.text).data[0].embedding).toEqual([0.5, -0.25])
    expect(azure.received[0]?.path).toBe(below(model, 'embeddings'))
    expectCharged(came, 2)
  })

  test("an Azure channel sends image generations to the path for its API version, and returns Azure's answer unchanged", async () => {
    const came = await post('/v1/images/generations', { model, prompt: 'a dog' })
    expect(came.status, came.text).toBe(200)
    expect(came.text).toBe(ANSWERS['images/generations']?.body)
    expect(azure.received[0]?.path).toBe(below(model, 'images/generations'))
    expectCharged(came, 9 + 3 * 4)
  })

  test("an Azure channel sends image edits as a form with the deployment's name to the path for its API version", async () => {
    const image = { name: 'image', content: Buffer.from('png'), filename: 'a.png', type: 'image/png' }
    const body = formBytes([image, { name: 'prompt', content: 'a cat' }, { name: 'model', content: model }])
    const came = await call(gateway.url, body, formCall('/v1/images/edits', 'ann', body))
    expect(came.status, came.text).toBe(200)
    expect(azure.received[0]?.path).toBe(below(model, 'images/edits'))
    expect(azure.received[0]?.body.toString()).toContain(DEPLOYMENT)
  })

  test('an Azure channel sends speech requests to the path for its API version', async () => {
    const came = await post('/v1/audio/speech', { model, input: 'hello', voice: 'alloy' })
    expect(came.status, came.text).toBe(200)
    expect(came.bytes).toEqual(SPEECH)
    expect(azure.received[0]?.path).toBe(below(model, 'audio/speech'))
  })

  test.each(['transcriptions', 'translations'])(
    "an Azure channel sends a call to the path for its API version, and returns Azure's answer: %s",
    async (kind) => {
      const body = formBytes(recordingParts(model, waveFile(2)))
      const came = await call(gateway.url, body, formCall(`/v1/audio/${kind}`, 'ann', body))
      expect(came.status, came.text).toBe(200)
      expect(came.text).toContain('hello')
      expect(azure.received[0]?.path).toBe(below(model, `audio/${kind}`))
    },
  )

  test('an Azure channel sends calls of the responses API to a path without a deployment, with or without API version', async () => {
    const came = await post('/v1/responses', { model: `${model}-responses`, input: 'hi' })
    expect(came.status, came.text).toBe(200)
    const { id, ...rest } = JSON.parse(came.text)
    expect(id).toMatch(/^resp_/)
    expect(rest).toMatchObject({ output: RESPONSE.output, content_filters: RESPONSE.content_filters })
    expect(azure.received[0]?.path).toBe(
      model === 'dated' ? `/openai/responses?api-version=${VERSION}` : '/openai/v1/responses',
    )
    expectCharged(came, 9 + 3 * 4)
  })
})

test("Claude in Azure's Foundry is called at the path of the messages API, with key and version headers", async () => {
  const body = { model: 'claude', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
  const came = await call(gateway.url, body, {
    key: 'ann',
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
  })
  expect(came.status, came.text).toBe(200)
  expect(came.text).toBe(JSON.stringify(MESSAGE))
  const [{ path, headers }] = azure.received as [ReceivedByDouble]
  expect(path).toBe('/anthropic/v1/messages')
  expect(headers).toMatchObject({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' })
  expectCharged(came, 9 + 3 * 4)
})
