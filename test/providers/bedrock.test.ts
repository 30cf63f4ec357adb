import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ACCOUNT, API_KEY, type BedrockAnswer, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import type { Double, ReceivedByDouble } from '../fixtures/providers/double.ts'

const MODEL_ID = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const ARN = 'arn:aws:bedrock:eu-central-1:123456789012'
const USAGE = { input_tokens: 12, output_tokens: 7 }
const WHOLE = {
  id: 'msg_bdrk_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: USAGE,
}
const EVENTS = [
  {
    type: 'message_start',
    message: { ...WHOLE, content: [], stop_reason: null, usage: { ...USAGE, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 7 },
  },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 12, outputTokenCount: 7 } },
]

let bedrock: Double
let gateway: RunningGateway
let answer: BedrockAnswer

function channelOf(name: string, key: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name,
    provider: 'bedrock',
    protocol: 'messages',
    region: REGION,
    base_url: bedrock.url,
    keys: [key],
    models: [name],
    model_mapping: { [name]: MODEL_ID },
    ...fields,
  }
}

beforeAll(async () => {
  bedrock = await startBedrock(() => answer)
  gateway = await startGateway({
    config: {
      models: priced(['signed', 'session', 'bearer', 'wrong', 'old', 'arn', 'opaque']),
      channels: [
        channelOf('signed', `${ACCOUNT.id}:${ACCOUNT.secret}`),
        channelOf('session', `${ACCOUNT.id}:${ACCOUNT.secret}:${ACCOUNT.session}`),
        channelOf('bearer', API_KEY),
        channelOf('old', API_KEY, { model_mapping: { old: 'anthropic.claude-3-7-sonnet-20250219-v1:0' } }),
        channelOf('arn', API_KEY, { model_mapping: { arn: `${ARN}:inference-profile/${MODEL_ID}` } }),
        channelOf('opaque', API_KEY, {
          model_mapping: { opaque: `${ARN}:application-inference-profile/abc` },
        }),
        channelOf('wrong', `${ACCOUNT.id}:${'x'.repeat(40)}`),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await bedrock?.close()
})
beforeEach(() => {
  answer = { whole: WHOLE, events: EVENTS }
  bedrock.received.length = 0
})

function messages(model: string, fields: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  const body = { model, max_tokens: 20, messages: [{ role: 'user', content: 'hi' }], ...fields }
  return call(gateway.url, body, { key: 'ann', path: '/v1/messages', headers })
}

function onlyRequest(): ReceivedByDouble {
  expect(bedrock.received).toHaveLength(1)
  return bedrock.received[0] as ReceivedByDouble
}

describe('a messages call on a Bedrock channel', () => {
  test.each(['signed', 'session', 'bearer'])(
    'a Bedrock call is authenticated by a key of each form: %s',
    async (model) => {
      const { status, text } = await messages(model)
      expect(status, text).toBe(200)
      expect(text).toBe(JSON.stringify(WHOLE))
      expect(bedrock.received[0]?.path).toBe(`/model/${encodeURIComponent(MODEL_ID)}/invoke`)
    },
  )

  test('a Bedrock call names the model and streaming in the path, and the version in the body; all other bytes are unchanged', async () => {
    const text = `{"model": "signed","max_tokens":20,  "messages":[{"role":"user","content":"h\\u0069"}], "stream":true}`
    const { status } = await call(gateway.url, Buffer.from(text), { key: 'ann', path: '/v1/messages' })
    expect(status).toBe(200)
    const { path, body } = onlyRequest()
    expect(path).toBe(`/model/${encodeURIComponent(MODEL_ID)}/invoke-with-response-stream`)
    expect(body.toString()).toBe(
      `{"max_tokens":20,  "messages":[{"role":"user","content":"h\\u0069"}],"anthropic_version":"bedrock-2023-05-31"}`,
    )
  })

  test('a Bedrock call passes on the beta features that Bedrock knows, in the body', async () => {
    await messages('signed', {}, { 'anthropic-beta': 'context-1m-2025-08-07, unknown-2030-01-01' })
    const { body, headers } = onlyRequest()
    expect(JSON.parse(body.toString()).anthropic_beta).toEqual(['context-1m-2025-08-07'])
    expect(headers).not.toHaveProperty('anthropic-beta')
  })

  const effort = [{ role: 'system', content: [], output_config: { effort: 'high' } }]
  const toolChange = [{ role: 'system', content: [{ type: 'tool_addition', tool_name: 'look' }] }]
  const hi = [{ role: 'user', content: 'hi' }]
  test.each([
    ['dangerous-tool-use-2026-09-03', { safeguards: [{ type: 'dangerous_tool_use' }] }],
    ['mid-conversation-output-config-2026-07-01', { messages: [...hi, ...effort] }],
    ['mid-conversation-tool-changes-2026-07-01', { messages: [...hi, ...toolChange] }],
    ['thinking-display-updates-2026-08-18', { thinking: { type: 'adaptive', display: 'updates' } }],
  ])(
    'a Bedrock call keeps the request fields of a beta feature that the client names: %s',
    async (beta, fields) => {
      const { status, headers, text } = await messages('signed', fields, { 'anthropic-beta': beta })
      expect(status, text).toBe(200)
      expect(headers).not.toHaveProperty('x-gateway-dropped')
      expect(JSON.parse(onlyRequest().body.toString())).toMatchObject({ ...fields, anthropic_beta: [beta] })
    },
  )

  test.each([
    ['dangerous-tool-use-2026-09-03', {}],
    ['mid-conversation-output-config-2026-07-01', { output_config: { effort: 'high' } }],
    ['mid-conversation-tool-changes-2026-07-01', { messages: [...hi, { role: 'system', content: 'look' }] }],
    ['thinking-display-updates-2026-08-18', { thinking: { type: 'adaptive', display: 'omitted' } }],
  ])(
    'a Bedrock call is sent without an unconfirmed beta feature whose fields it does not have: %s',
    async (beta, fields) => {
      const asked = { 'anthropic-beta': `${beta},context-1m-2025-08-07` }
      const { status, headers, text } = await messages('signed', fields, asked)
      expect(status, text).toBe(200)
      expect(headers['x-gateway-dropped']).toBe('anthropic_beta')
      expect(JSON.parse(onlyRequest().body.toString())).toMatchObject({
        ...fields,
        anthropic_beta: ['context-1m-2025-08-07'],
      })
    },
  )

  test('the field safeguards is removed from a Bedrock call without its beta feature, which Bedrock would refuse', async () => {
    const { status, headers } = await messages('signed', { safeguards: [{ type: 'dangerous_tool_use' }] })
    expect(status).toBe(200)
    expect(headers['x-gateway-dropped']).toBe('safeguards')
    expect(JSON.parse(onlyRequest().body.toString())).not.toHaveProperty('safeguards')
  })

  test("a Bedrock stream reaches the client as server-sent events without Bedrock's metrics, and is charged by its usage", async () => {
    const { status, headers, text } = await messages('signed', { stream: true })
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('text/event-stream')
    const events = text.trim().split('\n\n')
    expect(events.map((event) => event.split('\n')[0])).toEqual(EVENTS.map(({ type }) => `event: ${type}`))
    expect(events.at(-1)).toBe('event: message_stop\ndata: {"type":"message_stop"}')
    expect(databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))).toMatchObject({
      input_tokens: 12,
      output_tokens: 7,
    })
  })

  test('a Bedrock stream with an exception ends with an error event of its type and message', async () => {
    answer = {
      events: EVENTS.slice(0, 3),
      exception: { name: 'throttlingException', message: 'Too many tokens' },
    }
    const { text } = await messages('signed', { stream: true })
    expect(text.trim().split('\n\n').at(-1)).toContain(
      '"type":"rate_limit_error","message":"Too many tokens"',
    )
  })

  test('a Bedrock stream in which the quota of the account is used up ends with the error of a limit', async () => {
    const message = 'Your request exceeds the service quota for your account.'
    answer = { events: EVENTS.slice(0, 3), exception: { name: 'ServiceQuotaExceededException', message } }
    const { text } = await messages('signed', { stream: true })
    expect(text.trim().split('\n\n').at(-1)).toContain(`"type":"rate_limit_error","message":"${message}"`)
  })

  test('a Bedrock stream that is cut off inside a frame ends with an error event', async () => {
    answer = { events: EVENTS.slice(0, -1), cutBytes: 9 }
    const { text } = await messages('signed', { stream: true })
    expect(text).toContain('event: error')
    expect(text).not.toContain('message_stop')
  })

  test('a Bedrock stream of bytes that are no message is an error, and its request is cancelled', async () => {
    const cancelled = Promise.withResolvers<void>()
    answer = { onMalformedCancelled: cancelled.resolve }
    expect((await messages('signed', { stream: true })).status).toBe(500)
    await cancelled.promise
  })

  test('a Bedrock stream that is cut off after its stop reason ends without an error', async () => {
    answer = { events: EVENTS, cutBytes: 9 }
    const { text } = await messages('signed', { stream: true })
    expect(text).toContain('"stop_reason"')
    expect(text).not.toContain('event: error')
  })

  test('a Bedrock call with a wrong channel secret fails, and the log names the cause without the secret', async () => {
    const { status } = await messages('wrong')
    expect(status).toBe(500)
    await expect.poll(() => gateway.logs()).toContain('The request signature does not match')
    expect(gateway.logs()).not.toContain('x'.repeat(40))
  })

  test('fields and beta features that Bedrock would refuse are removed from a call, and listed in x-gateway-dropped', async () => {
    const tools = [{ name: 't', input_schema: { type: 'object' }, eager_input_streaming: true }]
    const fields = { metadata: { user_id: 'u' }, container: 'c', tools }
    const { status, headers, text } = await messages('signed', fields, {
      'anthropic-beta': 'context-1m-2025-08-07,unknown-2030-01-01',
    })
    expect(status, text).toBe(200)
    expect(String(headers['x-gateway-dropped']).split(', ').sort()).toEqual([
      'anthropic_beta',
      'container',
      'eager_input_streaming',
      'metadata',
    ])
    expect(JSON.parse(onlyRequest().body.toString()).tools).toEqual([
      { name: 't', input_schema: { type: 'object' } },
    ])
  })

  const MARK = { type: 'ephemeral', ttl: '1h' }
  const marked = {
    system: [{ type: 'text', text: 's', cache_control: MARK }],
    messages: [{ role: 'user', content: [{ type: 'text', text: '"ttl"', cache_control: MARK }] }],
  }
  test('a Bedrock call keeps cache lifetimes for a model that supports them, and not for one that refuses them', async () => {
    const taken = await messages('signed', marked)
    expect(taken.status, taken.text).toBe(200)
    expect(taken.headers).not.toHaveProperty('x-gateway-dropped')
    expect(JSON.parse(onlyRequest().body.toString())).toMatchObject(marked)
    bedrock.received.length = 0
    const { status, headers, text } = await messages('old', marked)
    expect(status, text).toBe(200)
    expect(headers['x-gateway-dropped']).toBe('cache_control.ttl')
    const sent = JSON.parse(onlyRequest().body.toString())
    expect(sent.system[0].cache_control).toEqual({ type: 'ephemeral' })
    expect(sent.messages[0].content[0]).toEqual({
      type: 'text',
      text: '"ttl"',
      cache_control: { type: 'ephemeral' },
    })
  })

  const DEFERRED = { name: 't', input_schema: { type: 'object' }, defer_loading: true }
  const SEARCH = { type: 'tool_search_tool_regex_20251119', name: 'find' }
  test.each([
    ['waits with its beta feature', [DEFERRED], 'advanced-tool-use-2025-11-20', [DEFERRED]],
    ['waits beside a tool that finds it', [SEARCH, DEFERRED], '', [SEARCH, DEFERRED]],
    ['does not wait without', [DEFERRED], '', [{ name: 't', input_schema: { type: 'object' } }]],
  ])(
    'defer_loading of a tool is only sent to Bedrock where Bedrock accepts it: a tool %s',
    async (_, tools, beta, sent) => {
      const { status, headers, text } = await messages(
        'signed',
        { tools },
        beta ? { 'anthropic-beta': beta } : {},
      )
      expect(status, text).toBe(200)
      const body = JSON.parse(onlyRequest().body.toString())
      expect(body.tools).toEqual(sent)
      const waits = sent.some((tool) => 'defer_loading' in tool)
      expect(body.anthropic_beta).toEqual(waits ? ['tool-search-tool-2025-10-19'] : undefined)
      expect(headers['x-gateway-dropped']).toBe(waits ? undefined : 'defer_loading')
    },
  )

  test('tools that only Anthropic runs, and a tool choice without tools, are removed from a Bedrock call', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const { status, headers, text } = await messages('signed', { tools, tool_choice: { type: 'auto' } })
    expect(status, text).toBe(200)
    expect(headers['x-gateway-dropped']).toBe('tools.web_search')
    expect(JSON.parse(onlyRequest().body.toString())).not.toHaveProperty('tools')
  })

  test("a Bedrock call keeps the version and the beta features of the client's own body", async () => {
    const fields = {
      anthropic_version: 'bedrock-2023-05-31',
      anthropic_beta: ['interleaved-thinking-2025-05-14', 'unknown-2030-01-01'],
    }
    const { status } = await messages('signed', fields, { 'anthropic-beta': 'context-1m-2025-08-07' })
    expect(status).toBe(200)
    expect(JSON.parse(onlyRequest().body.toString())).toMatchObject({
      anthropic_version: 'bedrock-2023-05-31',
      anthropic_beta: ['interleaved-thinking-2025-05-14', 'context-1m-2025-08-07'],
    })
  })

  test('an error of Bedrock keeps its status, and gets the error type that belongs to the status', async () => {
    answer = { error: { status: 400, name: 'ValidationException', message: 'Malformed input request' } }
    const { status, text } = await messages('signed')
    expect(status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'Malformed input request' },
    })
  })

  test('a quota of the account at Bedrock is a limit, although its status is that of a wrong request', async () => {
    const message = 'Your request exceeds the service quota for your account.'
    answer = { error: { status: 400, name: 'ServiceQuotaExceededException', message } }
    const { status, headers, text } = await messages('session')
    expect([status, headers['retry-after']]).toEqual([429, '1'])
    expect(JSON.parse(text).error).toMatchObject({ type: 'rate_limit_error', message })
    const row = () => databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))
    await expect.poll(row).toMatchObject({ quota: 0, cause: 'provider_limited' })
  })

  function count(model: string, fields: Record<string, unknown> = {}) {
    const body = { model, messages: [{ role: 'user', content: 'hi' }], ...fields }
    return call(gateway.url, body, { key: 'ann', path: '/v1/messages/count_tokens' })
  }

  test.each([
    ['an inference profile', 'signed', {}],
    ['the ARN of one', 'arn', {}],
    ['a budget of thinking', 'signed', { thinking: { type: 'enabled', budget_tokens: 2048 } }],
  ])(
    'the tokens of a messages request to a Bedrock channel are counted by Bedrock: %s',
    async (_, model, fields) => {
      const { status, text } = await count(model, fields)
      expect(status, text).toBe(200)
      expect(JSON.parse(text)).toEqual({ input_tokens: 14 })
      const base = 'anthropic.claude-sonnet-4-5-20250929-v1:0'
      expect(onlyRequest().path).toBe(`/model/${encodeURIComponent(base)}/count-tokens`)
    },
  )

  test.each([
    ['a profile whose model is unknown', 'opaque', undefined],
    ['a prompt that is too long for it', 'signed', [400, 'ValidationException', 'prompt is too long']],
    [
      'no permission',
      'signed',
      [
        403,
        'AccessDeniedException',
        'User: arn:aws:iam::1:user/u is not authorized to perform: bedrock:CountTokens',
      ],
    ],
  ] as const)(
    'the gateway counts the tokens of a request that Bedrock calls but does not count: %s',
    async (_, model, said) => {
      const [status, name, message] = said ?? []
      if (status !== undefined) answer = { error: { status, name, message } }
      const counted = await count(model)
      expect(counted.status, counted.text).toBe(200)
      expect(JSON.parse(counted.text).input_tokens).toBeLessThan(14)
      onlyRequest()
    },
  )

  test('a Bedrock call with a clock that is ten minutes off fails, and the log names the cause', async () => {
    answer = { whole: WHOLE, clockAheadMs: 600_000 }
    expect((await messages('session')).status).toBe(500)
    await expect.poll(() => gateway.logs()).toContain('Signature expired')
  })

  test('the test of a Bedrock channel makes a Bedrock call', async () => {
    const account = { id: 1, accessToken: ROOT.access_token }
    const listed = await manage<{ items: { id: number; name: string }[] }>(
      gateway.url,
      account,
      'GET /api/channel/',
    )
    const id = listed.data.items.find(({ name }) => name === 'bearer')?.id
    const { body } = await manage(gateway.url, account, `GET /api/channel/test/${id}`)
    expect(body).toMatchObject({ success: true })
    expect(onlyRequest().path).toBe(`/model/${encodeURIComponent(MODEL_ID)}/invoke`)
  })
})
