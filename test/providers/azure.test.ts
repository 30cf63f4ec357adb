import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call } from '../equipment/client.ts'
import { priced, ROOT, token, user } from '../equipment/configuration.ts'
import { type RunningGateway, startGateway } from '../equipment/gateway.ts'
import { type Double, type ReceivedByDouble, startDouble } from '../equipment/providers/double.ts'

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

/** Verifies what Azure does: the key's header, the version, and a deployment that exists. */
function answer({ path, headers, body }: ReceivedByDouble): { status?: number; body: string } {
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

describe('a chat completion on an Azure channel', () => {
  test.each([
    ['dated', '/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21'],
    ['undated', '/openai/v1/chat/completions'],
  ])('is asked of its deployment: %s', async (model, path) => {
    const { status, text } = await ask(model)
    expect(status, text).toBe(200)
    expect(text).toBe(COMPLETION)
    expect(azure.received[0]?.path).toBe(path)
  })

  test('that the content filter refuses keeps the code of Azure', async () => {
    const { status, text } = await ask('dated', 'forbidden')
    expect(status).toBe(400)
    expect(JSON.parse(text).error).toMatchObject({
      code: 'content_filter',
      message: 'The response was filtered',
    })
  })
})
