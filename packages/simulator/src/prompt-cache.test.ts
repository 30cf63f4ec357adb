import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Fields, asFields, asList, asString } from './fields.ts'
import { PromptCache } from './prompt-cache.ts'
import { type Simulator, startSimulator } from './start-simulator.ts'

const MINUTE = 60_000
const INSTANT = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }
const MODELS = {
  messages: ['claude-opus-5', 'claude-sonnet-4-6', 'claude-haiku-4-5'],
  chat: ['gpt-5.1', 'gpt-5.6'],
  responses: ['gpt-5.1', 'gpt-5.6'],
  gemini: ['gemini-2.5-pro', 'gemini-2.5-flash'],
  bedrock: ['anthropic.claude-sonnet-4-6', 'amazon.nova-pro'],
}

let simulator: Simulator
let time = 1_000_000_000_000
let account = 0

beforeAll(async () => {
  simulator = await startSimulator(INSTANT, { models: MODELS, now: () => time, requestsPerMachine: 15 })
})
afterAll(() => simulator.close())
// Each test uses a new account, whose cache is empty.
beforeEach(() => {
  account++
  time += 60 * MINUTE
})

/** A text of so many tokens. */
const long = (tokens: number, seed = 'a'): string => `${seed}bc `.repeat(tokens)
const EPHEMERAL = { type: 'ephemeral' }

async function post(url: string, body: object, key = `key-${account}`): Promise<Fields> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return asFields(await response.json())
}

interface Counts {
  readonly read: number
  readonly short: number
  readonly long: number
  readonly rest: number
}

function messages(body: object, key?: string): Promise<Fields> {
  const request = {
    model: 'claude-sonnet-4-6',
    max_tokens: 1,
    messages: [{ role: 'user', content: 'hi' }],
    ...body,
  }
  return post(`${simulator.messagesUrl}/messages`, request, key)
}

async function counted(body: object, key?: string): Promise<Counts> {
  const answer = await messages(body, key)
  const usage = asFields(answer.usage)
  const written = asFields(usage.cache_creation)
  return {
    read: Number(usage.cache_read_input_tokens),
    short: Number(written.ephemeral_5m_input_tokens),
    long: Number(written.ephemeral_1h_input_tokens),
    rest: Number(usage.input_tokens),
  }
}

const block = (text: string, cache_control?: object): object => ({
  type: 'text',
  text,
  ...(cache_control && { cache_control }),
})
const turn = (...content: readonly object[]): object => ({ role: 'user', content })
const system = (tokens: number, control: object = EPHEMERAL): object => ({
  system: [block(long(tokens), control)],
})

describe('the cache of messages', () => {
  test('the simulated messages cache writes a prefix once, and then reads it for calls of the same account only', async () => {
    const first = await counted(system(2000))
    expect(first).toMatchObject({ read: 0, short: 2001, long: 0 })
    expect(await counted(system(2000))).toEqual({ read: 2001, short: 0, long: 0, rest: first.rest })
    expect(await counted(system(2000), 'another')).toMatchObject({ read: 0, short: 2001 })
  })

  test('the simulated messages cache is separate for each model, and for the fast speed of a model', async () => {
    await counted(system(2000))
    expect(await counted({ ...system(2000), model: 'claude-opus-5' })).toMatchObject({ read: 0, short: 2001 })
    expect(await counted({ ...system(2000), speed: 'fast' })).toMatchObject({ read: 0, short: 2001 })
  })

  test('the simulated cache keeps a prefix for five minutes or an hour from its last use', async () => {
    for (const [ttl, minutes] of [
      ['5m', 5],
      ['1h', 60],
    ] as const) {
      account++
      const body = system(2000, { ...EPHEMERAL, ttl })
      await counted(body)
      time += (minutes - 1) * MINUTE
      expect(await counted(body)).toMatchObject({ read: 2001 })
      time += (minutes - 1) * MINUTE
      expect(await counted(body)).toMatchObject({ read: 2001 })
      time += minutes * MINUTE
      expect(await counted(body)).toMatchObject({ read: 0 })
    }
  })

  test('simulated cache writes are counted separately by lifetime, and a mark for an hour after one for five minutes is refused', async () => {
    const hour = { ...EPHEMERAL, ttl: '1h' }
    const body = { ...system(2000, hour), messages: [turn(block(long(500), EPHEMERAL))] }
    expect(await counted(body)).toMatchObject({ read: 0, long: 2001, short: 501 })
    const wrong = { ...system(2000), messages: [turn(block(long(500), hour))] }
    expect(await messages(wrong)).toMatchObject({ error: { type: 'invalid_request_error' } })
  })

  test.each([
    ['claude-opus-5', 512],
    ['claude-sonnet-4-6', 1024],
    ['claude-haiku-4-5', 4096],
  ])('a shorter prefix than the minimum of %s, %i tokens, is not cached', async (model, minimum) => {
    expect(await counted({ ...system(minimum - 2), model })).toMatchObject({ short: 0 })
    expect(await counted({ ...system(minimum), model })).toMatchObject({ short: minimum + 1 })
  })

  test('the simulated provider refuses more than four cache marks, the automatic one included', async () => {
    const marked = [1, 2, 3, 4].map((at) => block(`text ${at}`, EPHEMERAL))
    expect(await messages({ messages: [turn(...marked)] })).toMatchObject({ type: 'message' })
    const five = { messages: [turn(...marked, block('more', EPHEMERAL))] }
    expect(asString(asFields((await messages(five)).error).message)).toContain('Found 5')
    const automatic = { messages: [turn(...marked, block('more'))], cache_control: EPHEMERAL }
    expect(asString(asFields((await messages(automatic)).error).message)).toContain('Found 5')
  })

  test('the automatic cache mark of a simulated messages request is at its last block', async () => {
    const said = [turn(block(long(1500)))]
    const first = await counted({ messages: said, cache_control: EPHEMERAL })
    expect(first).toMatchObject({ read: 0 })
    const more = [...said, { role: 'assistant', content: 'yes' }, turn(block('and then'))]
    expect(await counted({ messages: more, cache_control: EPHEMERAL })).toMatchObject({ read: first.short })
  })

  test('the simulated cache finds an earlier prefix up to 20 blocks before a mark', async () => {
    const first = block(long(1500))
    const { short } = await counted({ messages: [turn({ ...first, cache_control: EPHEMERAL })] })
    const later = (count: number): object => ({
      messages: [
        turn(
          first,
          ...Array.from({ length: count - 1 }, (_, at) => block(`block ${at}`)),
          block('x', EPHEMERAL),
        ),
      ],
    })
    // The mark is the first of the twenty.
    expect(await counted(later(20))).toMatchObject({ read: 0 })
    account++
    await counted({ messages: [turn({ ...first, cache_control: EPHEMERAL })] })
    expect(await counted(later(19))).toMatchObject({ read: short })
  })

  test('another tool choice makes the simulated cache miss the messages, but neither the tools nor the system prompt', async () => {
    const tools = [{ name: 'a', input_schema: { type: 'object' } }]
    const body = { tools, ...system(2000), messages: [turn(block(long(1500), EPHEMERAL))] }
    const first = await counted(body)
    const second = await counted({ ...body, tool_choice: { type: 'any' } })
    expect(second.read).toBeGreaterThan(2000)
    expect(second.read).toBeLessThan(first.short)
    expect(second.short).toBe(first.short - second.read)
  })
})

describe('the cache of Converse', () => {
  const converse = async (body: object, model = 'anthropic.claude-sonnet-4-6'): Promise<Fields> => {
    const url = `${simulator.bedrockUrl}/model/${model}/converse`
    const request = { messages: [{ role: 'user', content: [{ text: 'hi' }] }], ...body }
    return asFields((await post(url, request)).usage)
  }

  test('a cache point in a simulated Converse call writes the prefix before it with its lifetime, and later calls read it', async () => {
    const cachePoint = { type: 'default', ttl: '1h' }
    const body = { system: [{ text: long(2000) }, { cachePoint }] }
    expect(await converse(body)).toMatchObject({
      cacheReadInputTokens: 0,
      cacheWriteInputTokens: 2001,
      cacheDetails: [{ ttl: '1h', inputTokens: 2001 }],
    })
    expect(await converse(body)).toMatchObject({ cacheReadInputTokens: 2001, cacheWriteInputTokens: 0 })
  })

  test('simulated Nova models cache prefixes of a thousand tokens or more, and no shorter ones', async () => {
    const body = (tokens: number): object => ({
      system: [{ text: long(tokens) }, { cachePoint: { type: 'default' } }],
    })
    expect(await converse(body(998), 'amazon.nova-pro')).toMatchObject({ cacheWriteInputTokens: 0 })
    expect(await converse(body(1000), 'amazon.nova-pro')).toMatchObject({ cacheWriteInputTokens: 1001 })
  })
})

describe('the caches of chat and responses', () => {
  const chat = async (
    said: readonly unknown[],
    fields: object = {},
  ): Promise<{ read: number; write: number }> => {
    const body = {
      model: 'gpt-5.1',
      max_tokens: 1,
      messages: said.map((content) => ({ role: 'user', content })),
      ...fields,
    }
    const answer = await post(`${simulator.chatUrl}/chat/completions`, body)
    const details = asFields(asFields(answer.usage).prompt_tokens_details)
    return { read: Number(details.cached_tokens), write: Number(details.cache_write_tokens ?? 0) }
  }

  test('the simulated cache of OpenAI reads prefixes from 1,024 tokens on, in steps of 128, and counts no writes', async () => {
    await chat([long(1000)])
    expect(await chat([long(1000)])).toEqual({ read: 0, write: 0 })
    await chat([long(1200)])
    expect(await chat([long(1200), 'more'])).toEqual({ read: 9 * 128, write: 0 })
  })

  test('the simulated cache of OpenAI forgets an unused prefix after five minutes, or a day with prompt_cache_retention', async () => {
    await chat([long(1200)])
    time += 4 * MINUTE
    expect(await chat([long(1200)])).toMatchObject({ read: 1152 })
    time += 5 * MINUTE
    expect(await chat([long(1200)])).toMatchObject({ read: 0 })
    account++
    await chat([long(1200)], { prompt_cache_retention: '24h' })
    time += 23 * 60 * MINUTE
    expect(await chat([long(1200)])).toMatchObject({ read: 1152 })
  })

  test('the simulated cache of OpenAI does not find a prefix that was sent with another prompt_cache_key', async () => {
    await chat([long(1200)], { prompt_cache_key: 'one' })
    expect(await chat([long(1200)], { prompt_cache_key: 'two' })).toMatchObject({ read: 0 })
    expect(await chat([long(1200)], { prompt_cache_key: 'one' })).toMatchObject({ read: 1152 })
  })

  test('the simulated cache of OpenAI misses a prefix that is requested more than fifteen times a minute', async () => {
    for (let at = 0; at < 15; at++) await chat([long(1200)])
    expect(await chat([long(1200)])).toMatchObject({ read: 0 })
    time += MINUTE
    expect(await chat([long(1200)])).toMatchObject({ read: 1152 })
  })

  test('from GPT-5.6 on, the simulated cache writes the prompt up to its last message, and the next turn reads it', async () => {
    const model = { model: 'gpt-5.6' }
    const first = await chat([long(1200)], model)
    expect(first).toEqual({ read: 0, write: 1201 })
    const second = await chat([long(1200), long(100)], model)
    expect(second).toEqual({ read: 1201, write: 100 })
    // A prefix is matched at a breakpoint alone, never at a shorter one that nothing marked.
    expect(await chat([`${long(1200)}x`], model)).toMatchObject({ read: 0 })
    time += 29 * MINUTE
    expect(await chat([long(1200)], model)).toMatchObject({ read: 1201 })
    time += 30 * MINUTE
    expect(await chat([long(1200)], model)).toMatchObject({ read: 0 })
  })

  test('the simulated cache of OpenAI writes only prefixes up to marked blocks in the explicit mode', async () => {
    const part = (text: string, isMarked: boolean): object => ({
      type: 'text',
      text,
      ...(isMarked && { prompt_cache_breakpoint: { mode: 'explicit' } }),
    })
    const fields = { model: 'gpt-5.6', prompt_cache_options: { mode: 'explicit' } }
    expect(await chat([[part(long(1200), false)]], fields)).toEqual({ read: 0, write: 0 })
    const marked = [[part(long(1200), true), part(long(300), false)]]
    expect(await chat(marked, fields)).toEqual({ read: 0, write: 1201 })
    expect(await chat(marked, fields)).toEqual({ read: 1201, write: 0 })
  })

  test('the simulated cache of OpenAI writes the last four breakpoints of a request, including the implicit one at its end', async () => {
    const parts = [1, 2, 3, 4, 5].map((at) => ({
      type: 'text',
      text: long(1200, String(at)),
      prompt_cache_breakpoint: { mode: 'explicit' },
    }))
    const model = { model: 'gpt-5.6' }
    await chat([parts], model)
    // Of five marks the implicit one is the fifth, so the third is the earliest that was written.
    expect(await chat([parts.slice(0, 2)], model)).toMatchObject({ read: 0 })
    expect(await chat([parts.slice(0, 3)], model)).toMatchObject({ read: 3 * 1200 + 1 })
  })

  test('a simulated response states the tokens that it read from and wrote to the cache, by lifetime', async () => {
    const ask = async (): Promise<unknown> => {
      const body = {
        model: 'gpt-5.6',
        input: long(1200),
        max_output_tokens: 16,
        prompt_cache_options: { ttl: '12h' },
      }
      return asFields((await post(`${simulator.responsesUrl}/responses`, body)).usage).input_tokens_details
    }
    expect(await ask()).toEqual({
      cached_tokens: 0,
      cache_write_tokens: 1201,
      cache_write_tokens_details: { ttl_30m_tokens: 0, ttl_12h_tokens: 1201 },
    })
    time += 11 * 60 * MINUTE
    expect(await ask()).toMatchObject({ cached_tokens: 1201, cache_write_tokens: 0 })
  })
})

describe('the cache of Gemini', () => {
  test.each([
    ['gemini-2.5-flash', 1024],
    ['gemini-2.5-pro', 4096],
  ])('the simulated cache of Gemini stores prefixes: %s from %i tokens on', async (model, minimum) => {
    const ask = async (tokens: number): Promise<unknown> => {
      const url = `${simulator.geminiUrl}/models/${model}:generateContent`
      const body = { contents: [{ role: 'user', parts: [{ text: long(tokens, String(tokens)[0]) }] }] }
      return asFields((await post(url, body)).usageMetadata).cachedContentTokenCount
    }
    await ask(minimum - 128)
    expect(await ask(minimum - 128)).toBeUndefined()
    await ask(minimum + 10)
    expect(await ask(minimum + 10)).toBe(minimum)
  })
})

describe('diagnostics of a missed cache', () => {
  const body = {
    ...system(2000),
    tools: [{ name: 'a', input_schema: { type: 'object' } }],
    messages: [turn(block('hello', EPHEMERAL))],
  }
  const asked = async (id: unknown, changed: object, key?: string): Promise<unknown> =>
    (await messages({ ...body, ...changed, diagnostics: { previous_message_id: id } }, key)).diagnostics

  test.each([
    ['model_changed', { model: 'claude-opus-5' }],
    ['model_changed', { speed: 'fast' }],
    ['tools_changed', { tools: [] }],
    ['system_changed', system(1999)],
    ['messages_changed', { messages: [turn(block('good day'))] }],
    ['unavailable', { tool_choice: { type: 'any' } }],
  ])('simulated messages diagnostics report %s', async (type, changed) => {
    const { id } = await messages(body)
    expect(await asked(id, changed)).toMatchObject({ cache_miss_reason: { type } })
  })

  test('the simulated cache diagnostics of a message are null if the prompt only grew, and find no message of another account', async () => {
    const { id } = await messages(body)
    expect(await asked(id, {})).toBeNull()
    const more = [turn(block('hello')), { role: 'assistant', content: 'yes' }, turn(block('go', EPHEMERAL))]
    expect(await asked(id, { messages: more })).toBeNull()
    expect(await asked(id, {}, 'another')).toEqual({
      cache_miss_reason: { type: 'previous_message_not_found' },
    })
    expect(await messages(body)).not.toHaveProperty('diagnostics')
  })

  const input = [{ role: 'user', content: long(1200) }]
  const respond = async (fields: object, key?: string): Promise<Fields> => {
    const request = { model: 'gpt-5.6', max_output_tokens: 16, input, ...fields }
    return post(`${simulator.responsesUrl}/responses`, request, key)
  }
  const compared = async (id: unknown, fields: object, key?: string): Promise<unknown> =>
    (await respond({ ...fields, prompt_cache_options: { comparison_response_id: id } }, key))
      .prompt_cache_diagnostics

  test.each([
    ['model_changed', { model: 'gpt-5.1' }],
    ['prompt_cache_key_changed', { prompt_cache_key: 'k' }],
    ['service_tier_changed', { service_tier: 'flex' }],
    ['tools_changed', { tools: [{ type: 'function', name: 'a', parameters: {} }] }],
    ['text_format_changed', { text: { format: { type: 'json_object' } } }],
    ['verbosity_changed', { text: { verbosity: 'low' } }],
    ['reasoning_effort_changed', { reasoning: { effort: 'high' } }],
    ['input_changed', { input: 'another' }],
    [
      'context_compacted',
      {
        input: [
          { type: 'compaction', encrypted_content: 'x' },
          { role: 'user', content: 'a' },
        ],
      },
    ],
  ])('simulated responses diagnostics report %s', async (reason, changed) => {
    const { id } = await respond({})
    expect(await compared(id, changed)).toMatchObject({ type: 'cache_miss', reason })
  })

  test("a simulated response's cache diagnostics report a hit, an expired prefix, or another account's response", async () => {
    const { id } = await respond({})
    expect(await compared(id, {})).toEqual({ type: 'cache_hit' })
    time += 31 * MINUTE
    expect(await compared(id, {})).toEqual({ type: 'unavailable' })
    expect(await compared(id, {}, 'another')).toEqual({ type: 'comparison_response_not_found' })
    expect(asList((await respond({})).output)).not.toHaveLength(0)
  })
})

test('a full simulated cache forgets the prefix that was unused for the longest time', () => {
  const cache = new PromptCache({ now: () => time, maxPrefixes: 2 })
  cache.write('a', MINUTE)
  cache.write('b', MINUTE)
  expect(cache.use('a')).toBe(true)
  cache.write('c', MINUTE)
  expect([cache.use('a'), cache.use('b'), cache.use('c')]).toEqual([true, false, true])
})
