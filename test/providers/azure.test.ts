import { AuthenticationError, AzureOpenAI, NotFoundError } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import {
  type Double,
  type DoubleAnswer,
  type ReceivedByDouble,
  startDouble,
} from '../fixtures/providers/double.ts'

const KEY = 'azure-key-0123456789'
const COMPLETION = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o-2024-11-20',
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: { hate: { filtered: false } } }],
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }],
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
})
const RESULTS = { content_filter_results: { hate: { filtered: false, severity: 'safe' } } }
const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o' }
const STREAM = [
  { ...HEAD, id: '', model: '', choices: [], prompt_filter_results: [{ prompt_index: 0, ...RESULTS }] },
  { ...HEAD, choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] },
  { ...HEAD, choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null, ...RESULTS }] },
  { ...HEAD, choices: [{ index: 0, delta: {}, finish_reason: null, ...RESULTS }] },
  { ...HEAD, choices: [{ index: 0, finish_reason: null, content_filter_offsets: {}, ...RESULTS }] },
  { ...HEAD, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { ...HEAD, choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } },
]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .concat('data: [DONE]\n\n')
  .join('')
const FILTERED = JSON.stringify({
  error: {
    message: 'The response was filtered',
    param: 'prompt',
    code: 'content_filter',
    status: 400,
    innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
  },
})

let azure: Double
let gateway: RunningGateway

/** Verifies what Azure verifies: the key's header, the version, and a deployment that exists. */
function answer({ path, headers, body }: ReceivedByDouble): DoubleAnswer {
  const error = (status: number, code: string, message: string) => ({
    status,
    body: JSON.stringify({ error: { code, message } }),
  })
  const sent = headers['api-key'] ?? headers['x-api-key']
  if (sent !== KEY || headers.authorization !== undefined)
    return error(401, '401', 'Access denied due to invalid subscription key')
  const url = new URL(path, 'http://azure')
  const isDated = url.pathname.startsWith('/openai/deployments/')
  if (isDated && url.searchParams.get('api-version') !== '2024-10-21')
    return error(404, '404', 'Resource not found')
  const deployment = isDated ? url.pathname.split('/')[3] : JSON.parse(body.toString()).model
  if (deployment !== 'my-deployment')
    return error(404, 'DeploymentNotFound', 'The API deployment for this resource does not exist.')
  if (body.toString().includes('"stream":true'))
    return { headers: { 'content-type': 'text/event-stream' }, body: STREAM }
  if (body.toString().includes('forbidden')) return { status: 400, body: FILTERED }
  return { body: COMPLETION }
}

beforeAll(async () => {
  azure = await startDouble(answer)
  const fields = { provider: 'azure', base_url: azure.url, keys: [KEY], model_mapping: {} }
  gateway = await startGateway({
    config: {
      models: priced(['dated', 'undated']),
      channels: [
        {
          ...fields,
          name: 'dated',
          protocol: 'chat',
          api_version: '2024-10-21',
          models: ['dated'],
          model_mapping: { dated: 'my-deployment' },
        },
        {
          ...fields,
          name: 'undated',
          protocol: 'chat',
          models: ['undated'],
          model_mapping: { undated: 'my-deployment' },
        },
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

const ask = (model: string, content = 'hi') =>
  call(gateway.url, { model, messages: [{ role: 'user', content }] }, { key: 'ann' })

describe("the test double of Azure, called by the maker's own client", () => {
  const asked = (apiKey: string, apiVersion: string, deployment: string) =>
    new AzureOpenAI({
      endpoint: azure.url,
      apiKey,
      apiVersion,
      deployment,
      maxRetries: 0,
    }).chat.completions.create({
      model: 'any',
      messages: [{ role: 'user', content: 'hi' }],
    })

  test('the test double of Azure answers a valid request of the official client', async () => {
    expect((await asked(KEY, '2024-10-21', 'my-deployment')).choices[0]?.message.content).toBe('Hello')
  })

  test('the test double of Azure refuses another key, version or deployment', async () => {
    await expect(asked('other', '2024-10-21', 'my-deployment')).rejects.toThrow(AuthenticationError)
    await expect(asked(KEY, '2020-01-01', 'my-deployment')).rejects.toThrow(NotFoundError)
    await expect(asked(KEY, '2024-10-21', 'other')).rejects.toThrow(NotFoundError)
  })
})

describe('a chat completion on an Azure channel', () => {
  test.each([
    ['dated', '/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21'],
    ['undated', '/openai/v1/chat/completions'],
  ])('a chat completion on Azure is sent to its deployment: %s', async (model, path) => {
    const { status, text } = await ask(model)
    expect(status, text).toBe(200)
    expect(text).toBe(COMPLETION)
    expect(azure.received[0]?.path).toBe(path)
  })

  test("a chat completion that Azure's content filter refuses is a 400 with Azure's error code", async () => {
    const { status, text } = await ask('dated', 'forbidden')
    expect(status).toBe(400)
    expect(JSON.parse(text).error).toMatchObject({
      code: 'content_filter',
      message: 'The response was filtered',
    })
  })

  test('a streamed chat completion of Azure keeps the events of the content filter unchanged for a chat client', async () => {
    const body = {
      model: 'dated',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'hi' }],
    }
    expect((await call(gateway.url, body, { key: 'ann' })).text).toBe(STREAM)
  })

  test('a streamed chat completion of Azure is converted for a messages client without the events of the content filter', async () => {
    const body = { model: 'dated', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
    const { status, text } = await call(gateway.url, body, { key: 'ann', path: '/v1/messages' })
    expect(status).toBe(200)
    expect(text).toContain('"text":"Hello"')
    expect(text).toContain('"stop_reason":"end_turn"')
    expect(text.match(/content_block_start/g)).toHaveLength(2)
  })
})
