import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type Double, startDouble } from '../fixtures/providers/double.ts'

/** What a provider reports: all input tokens, those that it read from a cache, and those that it wrote. */
interface Counts {
  readonly input: number
  readonly read: number
  readonly written: number
}

const OUTPUT = 5
const TOOL = 'look'
const SCHEMA = { type: 'object', properties: {} }

const chatAnswer = (usage: object): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }],
  usage: { completion_tokens: OUTPUT, ...usage },
})
const chatUsage = ({ input, read }: Counts): object =>
  chatAnswer({ prompt_tokens: input, prompt_tokens_details: { cached_tokens: read } })

const CLIENTS = {
  chat: (model: string, hasTool: boolean) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      messages: [{ role: 'user', content: 'hello' }],
      ...(hasTool && { tools: [{ type: 'function', function: { name: TOOL, parameters: SCHEMA } }] }),
    },
  }),
  responses: (model: string, hasTool: boolean) => ({
    path: '/v1/responses',
    body: {
      model,
      store: false,
      input: 'hello',
      ...(hasTool && { tools: [{ type: 'function', name: TOOL, parameters: SCHEMA, strict: false }] }),
    },
  }),
  messages: (model: string, hasTool: boolean) => ({
    path: '/v1/messages',
    body: {
      model,
      max_tokens: 50,
      messages: [{ role: 'user', content: 'hello' }],
      ...(hasTool && { tools: [{ name: TOOL, input_schema: SCHEMA }] }),
    },
  }),
  gemini: (model: string, hasTool: boolean) => ({
    path: `/v1beta/models/${model}:generateContent`,
    body: {
      contents: [{ role: 'user', parts: [{ text: 'hello' }] }],
      ...(hasTool && { tools: [{ functionDeclarations: [{ name: TOOL, parametersJsonSchema: SCHEMA }] }] }),
    },
  }),
} as const

interface Provider {
  readonly client: keyof typeof CLIENTS
  readonly channel: object
  readonly answer: (counts: Counts) => object
  /** Whether it reports, and charges for, what it writes. */
  readonly writes?: true
}

/** The providers whose prompt caches belong to one account, with their own forms of usage. */
const PROVIDERS: Readonly<Record<string, Provider>> = {
  'openai-chat': { client: 'chat', channel: { protocol: 'chat' }, answer: chatUsage },
  'openai-responses': {
    client: 'responses',
    channel: { protocol: 'responses' },
    writes: true,
    answer: ({ input, read, written }) => ({
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output: [
        {
          type: 'message',
          id: 'msg_1',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
        },
      ],
      usage: {
        input_tokens: input,
        input_tokens_details: { cached_tokens: read, cache_write_tokens: written },
        output_tokens: OUTPUT,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input + OUTPUT,
      },
    }),
  },
  anthropic: {
    client: 'messages',
    channel: { protocol: 'messages' },
    writes: true,
    answer: ({ input, read, written }) => ({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: input - read - written,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        output_tokens: OUTPUT,
      },
    }),
  },
  gemini: {
    client: 'gemini',
    channel: { protocol: 'gemini' },
    answer: ({ input, read }) => ({
      candidates: [
        { content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 },
      ],
      usageMetadata: {
        promptTokenCount: input,
        cachedContentTokenCount: read,
        candidatesTokenCount: OUTPUT,
        totalTokenCount: input + OUTPUT,
      },
    }),
  },
  bedrock: {
    client: 'messages',
    channel: { provider: 'bedrock', protocol: 'converse', region: 'eu-central-1' },
    writes: true,
    answer: ({ input, read, written }) => ({
      output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } },
      stopReason: 'end_turn',
      usage: {
        inputTokens: input - read - written,
        cacheReadInputTokens: read,
        cacheWriteInputTokens: written,
        outputTokens: OUTPUT,
        totalTokens: input + OUTPUT,
      },
      metrics: { latencyMs: 1 },
    }),
  },
  azure: { client: 'chat', channel: { provider: 'azure', protocol: 'chat' }, answer: chatUsage },
  openrouter: {
    client: 'chat',
    channel: { protocol: 'chat' },
    writes: true,
    answer: ({ input, read, written }) =>
      chatAnswer({
        prompt_tokens: input,
        prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
        cost: 0.001,
      }),
  },
  deepseek: {
    client: 'chat',
    channel: { protocol: 'chat' },
    answer: ({ input, read }) =>
      chatAnswer({
        prompt_tokens: input,
        prompt_cache_hit_tokens: read,
        prompt_cache_miss_tokens: input - read,
      }),
  },
}
const NAMES = Object.keys(PROVIDERS)
const READ: Counts = { input: 5_000, read: 4_000, written: 0 }
const WRITTEN: Counts = { input: 5_000, read: 0, written: 4_000 }
const MISSED: Counts = { input: 5_000, read: 0, written: 0 }

/** Three accounts; those of Bedrock are an id and a secret. */
const keysOf = (name: string): string[] =>
  ['one', 'two', 'three'].map((number) => {
    const account = `${number}-account-of-${name}`
    return name === 'bedrock' ? `${account.replaceAll('-', '').toUpperCase()}:${'s'.repeat(40)}` : account
  })

let counts: Counts
let gateway: RunningGateway
const doubles = new Map<string, Double>()

beforeAll(async () => {
  for (const [name, { answer }] of Object.entries(PROVIDERS))
    doubles.set(name, await startDouble(() => ({ body: JSON.stringify(answer(counts)) })))
  // A unit for a token of input, a quarter to read one, one and a quarter to write one.
  const price = { input: 2, output: 8, cache_read: 0.5, cache_write_5m: 2.5, cache_write_30m: 2.5 }
  gateway = await startGateway({
    config: {
      models: priced(NAMES, price),
      channels: Object.entries(PROVIDERS).map(([name, { channel }]) => ({
        name,
        base_url: doubles.get(name)?.url,
        keys: keysOf(name),
        models: [name],
        ...channel,
      })),
      users: [ROOT, user(2, 'ann', [token('ann')]), ADMIN_USER],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  for (const double of doubles.values()) await double.close()
})
beforeEach(() => {
  counts = READ
  for (const { received } of doubles.values()) received.length = 0
})

interface Row {
  readonly cached_tokens: number
  readonly cache_write_5m_tokens: number
  readonly cache_write_30m_tokens: number
  readonly cache_saved: number
  readonly cache_surcharge: number
  readonly cache_break: string
  readonly quota: number
}

let sessions = 0

/** Makes a call, and returns its row. */
async function ask(name: string, session: string, hasTool = false): Promise<Row> {
  const { client } = PROVIDERS[name] as Provider
  const { path, body } = CLIENTS[client](name, hasTool)
  const answer = await call(gateway.url, body, { key: 'ann', path, headers: { 'x-session-id': session } })
  expect(answer.status, answer.text).toBe(200)
  const id = String(answer.headers['x-request-id'])
  const { data } = await manage<{ items: Row[] }>(gateway.url, ADMIN, `GET /api/log/?request_id=${id}`)
  if (!data.items[0]) throw new Error('the call has no row')
  return data.items[0]
}

/** The accounts that received the requests. */
const accountsSeen = (name: string): string[] =>
  (doubles.get(name) as Double).received.map(({ headers, path }) => {
    const told = JSON.stringify([headers, path])
    return /(one|two|three)-?account/i.exec(told)?.[1]?.toLowerCase() ?? `none in ${told}`
  })

describe.each(NAMES)('the prompt cache of %s', (name) => {
  test('all calls of a session use one account of a provider, because the prompt cache belongs to the account', async () => {
    const own = ['first', 'second', 'third'].map((one) => `${one} of ${name}`)
    for (let turn = 0; turn < 3; turn++) for (const session of own) await ask(name, session)
    const seen = accountsSeen(name)
    expect(new Set(seen)).toEqual(new Set(['one', 'two', 'three']))
    expect(seen.slice(3, 6)).toEqual(seen.slice(0, 3))
    expect(seen.slice(6)).toEqual(seen.slice(0, 3))
    const cacheKeys = (doubles.get(name) as Double).received.map(
      ({ body }) => JSON.parse(body.toString()).prompt_cache_key,
    )
    const each = name === 'azure' ? expect.stringMatching(/^[0-9a-f]{32}$/) : undefined
    expect(cacheKeys).toEqual(cacheKeys.map(() => each))
  })

  test('the usage row of a call that read a prompt cache states what was saved compared with uncached input', async () => {
    // 1,000 tokens of input, 4,000 at a quarter, and the output at four units.
    expect(await ask(name, `session ${++sessions}`)).toMatchObject({
      cached_tokens: 4_000,
      cache_saved: 3_000,
      cache_surcharge: 0,
      quota: 1_000 + 1_000 + 4 * OUTPUT,
    })
  })

  test('the usage row of a call that wrote a prompt cache has the surcharge if the provider reports cache writes', async () => {
    counts = WRITTEN
    const row = await ask(name, `session ${++sessions}`)
    const written = PROVIDERS[name]?.writes ? 4_000 : 0
    expect(row.cache_write_5m_tokens + row.cache_write_30m_tokens).toBe(written)
    expect(row).toMatchObject({ cache_saved: 0, cache_surcharge: written / 4 })
  })

  test('the usage row of a call that missed the prompt cache names the reason', async () => {
    const session = `session ${++sessions}`
    expect((await ask(name, session)).cache_break).toBe('')
    expect((await ask(name, session)).cache_break).toBe('')
    counts = MISSED
    expect((await ask(name, session, true)).cache_break).toBe('tools_changed')
    counts = READ
    expect((await ask(name, session, true)).cache_break).toBe('')
    counts = MISSED
    expect((await ask(name, session, true)).cache_break).toBe('provider')
  })
})
