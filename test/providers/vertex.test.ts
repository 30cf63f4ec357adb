import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import {
  type Double,
  type DoubleAnswer,
  type ReceivedByDouble,
  startDouble,
} from '../fixtures/providers/double.ts'
import { PROXY_PASSWORD, PROXY_USER, type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'

const CLAUDE = 'claude-sonnet-4-5@20250929'
const MESSAGE = JSON.stringify({
  id: 'msg_vrtx_1',
  type: 'message',
  role: 'assistant',
  model: CLAUDE,
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 7 },
})
const COUNT = '{"input_tokens":14}'
const EXHAUSTED = JSON.stringify([
  { error: { code: 429, message: 'Resource has been exhausted', status: 'RESOURCE_EXHAUSTED' } },
])
const GENERATED = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
  modelVersion: 'gemini-2.5-pro',
})
const PREFIX = '/v1/projects/my-project/locations/europe-west4'

function servedBy(path: string): DoubleAnswer {
  if (path.includes('/count-tokens:')) return { body: COUNT }
  return { body: MESSAGE }
}

let answers: (path: string) => DoubleAnswer
let vertex: VertexDouble
let elsewhere: Double
let gateway: RunningGateway
let folder: string
let proxy: ProxyServer

beforeAll(async () => {
  proxy = await startHttpProxy()
  vertex = await startVertex(({ path }) => answers(path))
  elsewhere = await startDouble(() => ({ body: MESSAGE }))
  folder = mkdtempSync(join(tmpdir(), 'sluice-key-'))
  const file = join(folder, 'vertex.json')
  writeFileSync(file, vertex.serviceAccount, { mode: 0o600 })
  const fields = { provider: 'vertex', location: 'europe-west4', base_url: vertex.url }
  gateway = await startGateway({
    config: {
      options: { media: { allow_private_networks: true } },
      models: priced(['claude', 'gemini-2.5-pro', 'other', 'proxied', 'spare', 'two-accounts']),
      channels: [
        {
          ...fields,
          name: 'claude',
          protocol: 'messages',
          keys: [`file:${file}`],
          models: ['claude', 'spare'],
          model_mapping: { claude: CLAUDE, spare: CLAUDE },
        },
        {
          ...fields,
          name: 'other',
          protocol: 'chat',
          project: 'another',
          keys: [vertex.serviceAccount],
          models: ['other'],
        },
        {
          ...fields,
          name: 'proxied',
          protocol: 'messages',
          keys: [vertex.serviceAccount],
          proxy: `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`,
          models: ['proxied'],
          model_mapping: { proxied: CLAUDE },
        },
        {
          ...fields,
          name: 'gemini',
          protocol: 'gemini',
          keys: [vertex.serviceAccount],
          models: ['gemini-2.5-pro'],
          system_prompt: 'Answer briefly.',
        },
        {
          ...fields,
          name: 'two-accounts',
          protocol: 'messages',
          keys: [vertex.unknownAccount, vertex.serviceAccount],
          models: ['two-accounts'],
          model_mapping: { 'two-accounts': CLAUDE },
        },
        {
          name: 'elsewhere',
          protocol: 'messages',
          base_url: elsewhere.url,
          keys: ['k'],
          models: ['spare'],
          priority: -1,
        },
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await vertex?.close()
  await elsewhere?.close()
  await proxy?.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  answers = servedBy
  vertex.failTokens(0)
  vertex.received.length = 0
})

function claude(
  fields: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<FullResponse> {
  const body = { model: 'claude', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }], ...fields }
  return call(gateway.url, body, { key: 'ann', path: '/v1/messages', headers })
}

const modelRequests = (): ReceivedByDouble[] => vertex.received.filter(({ path }) => path !== '/token')

test('a Vertex channel with a proxy also requests its access tokens through the proxy', async () => {
  const { status, text } = await claude({ model: 'proxied' })
  expect(status, text).toBe(200)
  const host = vertex.url.slice('http://'.length)
  expect(proxy.tunnels).toEqual([host, host])
})

describe('a call on a Vertex channel', () => {
  test('a Vertex call of Claude has the model in the path and the version in the body, and is otherwise unchanged', async () => {
    const { status, text } = await claude({}, { 'anthropic-beta': 'context-1m-2025-08-07' })
    expect(status, text).toBe(200)
    expect(text).toBe(MESSAGE)
    const [{ path, headers, body }] = modelRequests() as [ReceivedByDouble]
    expect(path).toBe(`${PREFIX}/publishers/anthropic/models/${CLAUDE}:rawPredict`)
    expect(headers['anthropic-beta']).toBe('context-1m-2025-08-07')
    expect(headers).not.toHaveProperty('anthropic-version')
    expect(body.toString()).toBe(
      '{"max_tokens":20,"messages":[{"role":"user","content":"hi"}],"anthropic_version":"vertex-2023-10-16"}',
    )
  })

  test("a Vertex call of another vendor's model goes to the chat endpoint of its project", async () => {
    await call(gateway.url, { model: 'other', messages: [{ role: 'user', content: 'hi' }] }, { key: 'ann' })
    expect(modelRequests()[0]?.path).toBe(
      '/v1/projects/another/locations/europe-west4/endpoints/openapi/chat/completions',
    )
  })

  test('a Vertex call of Gemini goes to the path of publisher google, with the system prompt of its channel', async () => {
    answers = () => ({ body: GENERATED })
    const { status, text } = await call(
      gateway.url,
      '{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[ {"text":"be nice"}]}}',
      { key: 'ann', path: '/v1beta/models/gemini-2.5-pro:generateContent' },
    )
    expect([status, text]).toEqual([200, GENERATED])
    const [{ path, body }] = modelRequests() as [ReceivedByDouble]
    expect(path).toBe(`${PREFIX}/publishers/google/models/gemini-2.5-pro:generateContent`)
    expect(body.toString()).toBe(
      '{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"Answer briefly."}, {"text":"be nice"}]}}',
    )
  })

  test('Vertex calls share one access token as long as it is valid', async () => {
    vertex.revoke()
    const before = vertex.issued.length
    const answers = await Promise.all(Array.from({ length: 10 }, () => claude()))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
    expect(vertex.issued.length - before).toBe(1)
  })

  test('a Vertex call whose access token is refused is repeated once with a new token', async () => {
    await claude()
    vertex.revoke()
    vertex.received.length = 0
    expect((await claude()).status).toBe(200)
    expect(modelRequests()).toHaveLength(2)
  })

  test('a Vertex call fails while the token endpoint refuses, whose message is logged, and later calls succeed', async () => {
    vertex.revoke()
    vertex.failTokens(400)
    expect((await claude()).status).toBe(500)
    await expect.poll(() => gateway.logs()).toContain('status 400, invalid_grant, Invalid JWT Signature.')
    vertex.failTokens(0)
    expect((await claude()).status).toBe(200)
  })

  test("the log of Vertex calls never contains the service account's private key", () => {
    const { private_key: key } = JSON.parse(vertex.serviceAccount)
    expect(gateway.logs()).not.toContain(key.split('\n')[1])
  })

  test('a Vertex call is made with the second service account if the token endpoint refuses the first', async () => {
    const body = { model: 'two-accounts', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }
    const asked = () => call(gateway.url, body, { key: 'ann', path: '/v1/messages' })
    expect([(await asked()).status, (await asked()).status]).toEqual([200, 200])
    await expect.poll(() => gateway.logs()).toContain('wrong claims')
  })

  test('a Vertex call goes to another channel while the token endpoint is down', async () => {
    vertex.revoke()
    vertex.failTokens(503)
    const body = { model: 'spare', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }
    const { status, text } = await call(gateway.url, body, { key: 'ann', path: '/v1/messages' })
    expect(status, text).toBe(200)
  })

  test('the tokens of a messages request for Claude on Vertex are counted by Vertex, with the model in the body', async () => {
    const body = { model: 'claude', messages: [{ role: 'user', content: 'hi' }] }
    const { status, text } = await call(gateway.url, body, {
      key: 'ann',
      path: '/v1/messages/count_tokens',
    })
    expect([status, text]).toEqual([200, COUNT])
    const [{ path, body: sent }] = modelRequests() as [ReceivedByDouble]
    expect(path).toBe(`${PREFIX}/publishers/anthropic/models/count-tokens:rawPredict`)
    expect(JSON.parse(sent.toString())).toMatchObject({
      model: CLAUDE,
      anthropic_version: 'vertex-2023-10-16',
    })
  })

  test('a Vertex call keeps an anthropic_version that the client sent, and adds no second one', async () => {
    await claude({ anthropic_version: 'vertex-2023-10-16' })
    const [{ body }] = modelRequests() as [ReceivedByDouble]
    expect(body.toString().match(/anthropic_version/g)).toHaveLength(1)
  })

  test("a Vertex call that Google refuses is answered with the message of Google's error", async () => {
    answers = () => ({ status: 429, body: EXHAUSTED })
    const { status, text } = await claude()
    expect(status).toBe(429)
    expect(JSON.parse(text).error).toMatchObject({
      type: 'rate_limit_error',
      message: 'Resource has been exhausted',
    })
  })

  test('an error of Vertex that quotes the access token or the key is passed on without them', async () => {
    const { private_key: key } = JSON.parse(vertex.serviceAccount) as { private_key: string }
    const line = key.split('\n')[3] ?? ''
    answers = () => ({
      status: 400,
      body: JSON.stringify({ error: { message: `bad token ${vertex.issued.at(-1)} of ${line}` } }),
    })
    const { text } = await claude()
    expect(JSON.parse(text).error.message).toBe('bad token [redacted] of [redacted]')
  })
})
