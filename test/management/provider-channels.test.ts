import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ACCOUNT, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import { type Double, startDouble } from '../fixtures/providers/double.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'
import { PROXY_PASSWORD, type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 7 },
}
const COMPLETION = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }],
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
}
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }

let failing = 0
let bedrock: Double
let vertex: VertexDouble
let chat: Double
let proxy: ProxyServer
let gateway: RunningGateway

beforeAll(async () => {
  ;[bedrock, vertex, chat, proxy] = await Promise.all([
    startBedrock(() => ({ whole: MESSAGE })),
    startVertex(() => ({ body: JSON.stringify(MESSAGE) })),
    startDouble(() => ({ body: JSON.stringify(COMPLETION), ...(failing > 0 && { status: failing }) })),
    startHttpProxy(),
  ])
  gateway = await startGateway({
    config: {
      options: { media: { allow_private_networks: true } },
      rate_limits: {},
      models: priced(['bedrock', 'vertex', 'azure', 'edited', 'probed']),
      users: [
        ROOT,
        user(2, 'ann', [token('ann')]),
        user(4, 'ada', [], { access_token: ADMIN.accessToken, role: 10 }),
      ],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await Promise.all([bedrock, vertex, chat, proxy].map((server) => server?.close()))
})

const as = <Data = Record<string, unknown>>(request: Parameters<typeof manage>[2], body?: object) =>
  manage<Data>(gateway.url, ADMIN, request, body)

async function made(name: string, fields: Record<string, unknown>): Promise<number> {
  const { status, message, data } = await as<{ ids: number[] }>('POST /api/channel/', {
    name,
    models: name,
    ...fields,
  })
  expect([status, message]).toEqual([200, ''])
  return data.ids[0] ?? 0
}

const shown = async (id: number) => (await as(`GET /api/channel/${id}`)).data

const messages = (model: string) =>
  call(gateway.url, ask(model, { max_tokens: 9 }), { key: 'ann', path: '/v1/messages' })

/** All bytes of the data directory. */
const stored = (): string =>
  readdirSync(gateway.dataDir)
    .filter((name) => name.includes('.db'))
    .map((name) => readFileSync(join(gateway.dataDir, name), 'latin1'))
    .join('')

describe('a channel of a provider, created over HTTP', () => {
  test('a channel of AWS signs its calls with its key and region, and shows administrators only the id of the key', async () => {
    const id = await made('bedrock', {
      type: 33,
      key: `${ACCOUNT.id}|${ACCOUNT.secret}|${REGION}`,
      base_url: bedrock.url,
      model_mapping: '{"bedrock":"anthropic.claude-v1:0"}',
    })
    const { status, text } = await messages('bedrock')
    expect(status, text).toBe(200)
    expect(await shown(id)).toMatchObject({
      type: 33,
      key: '',
      other: REGION,
      channel_info: { key_ids: [ACCOUNT.id] },
    })
    expect(JSON.stringify(await as('GET /api/channel/'))).not.toContain(ACCOUNT.secret)
    expect(stored() + gateway.logs()).not.toContain(ACCOUNT.secret)
    expect((await as('PUT /api/channel/', { id, priority: 1 })).status).toBe(200)
    expect((await messages('bedrock')).status).toBe(200)
    expect((await as('PUT /api/channel/', { id, other: 'us-east-1' })).status).toBe(403)
  })

  test('a channel of Vertex may have several service accounts as keys, in a JSON list', async () => {
    const account = JSON.parse(vertex.serviceAccount)
    const id = await made('vertex', {
      type: 41,
      key: JSON.stringify([account, { ...account, private_key_id: 'key-1', x: 1 }], null, 2),
      other: '{"default": "europe-west4"}',
      base_url: vertex.url,
      model_mapping: '{"vertex":"claude-sonnet-4-5"}',
    })
    expect((await messages('vertex')).status).toBe(200)
    expect(vertex.received.at(-1)?.path).toContain('/locations/europe-west4/publishers/anthropic/')
    expect((await shown(id))['protocol']).toEqual(['messages', 'gemini', 'chat'])
    expect(await shown(id)).toMatchObject({
      type: 41,
      channel_info: { is_multi_key: true, key_ids: [account.client_email, account.client_email] },
    })
    expect(stored() + gateway.logs()).not.toContain(account.private_key.split('\n')[2])
  })

  test('a channel of Azure that is created over HTTP takes its API version from the field `other`', async () => {
    await made('azure', { type: 3, key: 'azure-key-0123', other: '2024-10-21', base_url: chat.url })
    expect((await call(gateway.url, ask('azure'), { key: 'ann' })).status).toBe(200)
    expect(chat.received.at(-1)).toMatchObject({
      path: '/openai/deployments/azure/chat/completions?api-version=2024-10-21',
      headers: { 'api-key': 'azure-key-0123' },
    })
  })

  test.each([
    [{ type: 33, key: 'nonsense|x|eu-central-1' }, 'keys[0]: expected ACCESS_KEY_ID:SECRET_ACCESS_KEY'],
    [{ type: 33, key: `${ACCOUNT.id}|${ACCOUNT.secret}|nowhere` }, 'key: expected ID|SECRET|REGION'],
    [{ type: 33, key: `${ACCOUNT.id}|${ACCOUNT.secret}` }, 'key: expected ID|SECRET|REGION'],
    [{ type: 33, key: 'API-KEY-0123456789-0123' }, 'region: expected the name of a region'],
    [{ type: 41, key: 'no JSON' }, "key: expected the JSON of a service account's key"],
    [{ type: 41, key: '{}', other: '{"a":"us"}' }, 'other: expected one location'],
    [{ type: 3, key: 'k', other: 'newest' }, 'base_url: expected'],
  ])(
    'a channel of a cloud provider with invalid fields is refused with what is expected: %j',
    async (fields, message) => {
      const refused = await as('POST /api/channel/', { name: 'bad', models: 'm', ...fields })
      expect(refused.status).toBe(400)
      expect(refused.message).toContain(message)
      expect(refused.message).not.toContain(ACCOUNT.secret)
    },
  )
})

describe('a channel created over HTTP', () => {
  test('a channel created over HTTP is probed during its cooldown if its setting has a probe interval', async () => {
    const fields = { type: 8, key: 'k', base_url: chat.url }
    const refused = await as('POST /api/channel/', {
      ...fields,
      name: 'bad',
      models: 'm',
      setting: '{"probe":"often"}',
    })
    expect([refused.status, refused.message]).toEqual([400, expect.stringContaining('probe: expected')])
    const id = await made('probed', { ...fields, setting: '{"probe":"1s"}' })
    expect(JSON.parse(String((await shown(id))['setting']))).toMatchObject({ probe: '1s' })
    failing = 503
    for (let i = 0; i < 5; i++)
      expect((await call(gateway.url, ask('probed'), { key: 'ann' })).status).toBe(503)
    const last = (): unknown => JSON.parse(chat.received.at(-1)?.body.toString() ?? '')
    await expect.poll(last).toMatchObject({ model: 'probed', max_tokens: 1 })
    failing = 0
  })

  test('a channel created over HTTP uses the system prompt, the parameters and the proxy from its settings', async () => {
    const url = `http://ann:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`
    const setting = { proxy: url, system_prompt: 'Answer briefly.' }
    const id = await made('edited', {
      type: 8,
      key: 'k',
      base_url: chat.url,
      setting: JSON.stringify(setting),
      param_override: '{"temperature": 0}',
      status_code_mapping: '{"400": "503", "429": "200", "x": 1}',
    })
    expect((await call(gateway.url, ask('edited'), { key: 'ann' })).status).toBe(200)
    expect(proxy.tunnels).toEqual([chat.url.slice('http://'.length)])
    // The channel of the test before may be probed once more.
    const sent = chat.received.map(({ body }) => body.toString()).find((text) => text.includes('"edited"'))
    expect(JSON.parse(sent ?? '')).toMatchObject({
      temperature: 0,
      messages: [{ role: 'system', content: 'Answer briefly.' }, { role: 'user' }],
    })

    for (const password of [PROXY_PASSWORD, encodeURIComponent(PROXY_PASSWORD)])
      expect(stored()).not.toContain(password)
    expect(gateway.logs()).not.toContain(encodeURIComponent(PROXY_PASSWORD))

    failing = 400
    expect((await call(gateway.url, ask('edited'), { key: 'ann' })).status).toBe(503)
    failing = 0

    const seen = await shown(id)
    expect(seen['status_code_mapping']).toBe('{"400": "503", "429": "200", "x": 1}')
    expect(JSON.parse(String(seen['setting']))).toMatchObject({ proxy: `http://ann:***@${proxy.address}` })
    expect((await as('PUT /api/channel/', { ...seen, priority: 1 })).status).toBe(200)
    expect((await call(gateway.url, ask('edited'), { key: 'ann' })).status).toBe(200)
    const elsewhere = JSON.stringify({ ...setting, proxy: 'http://127.0.0.1:9' })
    expect((await as('PUT /api/channel/', { id, setting: elsewhere })).status).toBe(403)
    const metadata = JSON.stringify({ proxy: 'http://169.254.169.254' })
    expect((await as('PUT /api/channel/', { id, key: 'k', setting: metadata })).message).toContain(
      "proxy: expected another address than that of a cloud's metadata service",
    )
  })
})
