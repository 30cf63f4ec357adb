import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../usage.ts'
import { usageOfMessage } from './native/tap.ts'
import { mergedUsage, readMessagesUsage } from './usage.ts'

const reported = (later: object, first: object = {}): unknown =>
  readMessagesUsage(mergedUsage({ ...first }, later))

describe('usage of messages', () => {
  test('a messages usage is read as disjoint counts, and cache writes are divided by their lifetime', () => {
    expect(
      readMessagesUsage({
        input_tokens: 1000,
        output_tokens: 200,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 50,
        cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
        output_tokens_details: { thinking_tokens: 7 },
        server_tool_use: { web_search_requests: 2, web_fetch_requests: 9 },
        iterations: [{ input_tokens: 5000, output_tokens: 5000 }],
        service_tier: 'standard',
      }),
    ).toEqual({
      ...NO_USAGE,
      input: 1000,
      cacheRead: 100,
      cacheWrite5m: 30,
      cacheWrite1h: 20,
      output: 200,
      reasoning: 7,
      webSearches: 2,
      tools: [{ kind: 'web_fetch', count: 9 }],
      served: { tier: 'standard' },
    })
  })

  describe('usage of iterations', () => {
    const entry = (type: string, input: number, output: number, more: object = {}): object => ({
      type,
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      ...more,
    })
    const top = { input_tokens: 181, output_tokens: 8, output_tokens_details: { thinking_tokens: 5 } }
    const compaction = entry('compaction', 100, 83, {
      cache_read_input_tokens: 55_096,
      cache_creation_input_tokens: 70,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 60 },
    })

    test('a messages usage of several iterations includes a compaction, which the reported sums omit', () => {
      const all = { ...top, iterations: [compaction, entry('message', 181, 8)] }
      expect(readMessagesUsage(all)).toEqual({
        ...NO_USAGE,
        input: 281,
        cacheRead: 55_096,
        cacheWrite5m: 10,
        cacheWrite1h: 60,
        output: 91,
        reasoning: 5,
        webSearches: 0,
      })
    })

    test('a messages usage of several iterations adds up the compactions and the turns between them', () => {
      const turns = [
        entry('message', 100, 5),
        compaction,
        entry('message', 60, 2),
        compaction,
        entry('message', 21, 1),
      ]
      expect(readMessagesUsage({ ...top, iterations: turns })).toMatchObject({
        input: 381,
        output: 174,
        cacheRead: 110_192,
      })
    })

    test('a messages usage of several iterations includes a compaction after which the response paused', () => {
      const paused = { input_tokens: 0, output_tokens: 0, iterations: [compaction] }
      expect(readMessagesUsage(paused)).toMatchObject({ input: 100, output: 83, cacheRead: 55_096 })
    })

    test('a messages usage of several iterations is not counted twice if the reported sums already include them', () => {
      const summed = {
        input_tokens: 281,
        output_tokens: 91,
        cache_read_input_tokens: 55_096,
        cache_creation_input_tokens: 70,
      }
      const all = { ...summed, iterations: [compaction, entry('message', 181, 8)] }
      expect(readMessagesUsage(all)).toMatchObject({ input: 281, output: 91, cacheRead: 55_096 })
    })

    test.each([
      ['turns with tools', [entry('message', 100, 5), entry('message', 81, 3)]],
      ['none', []],
      ['null', null],
      ['text', 'x'],
      ['what cannot be read', [null, 1, {}, { type: 'compaction', input_tokens: -1, output_tokens: 'x' }]],
    ])(
      'iterations of a messages usage that are no compaction add nothing to the reported sums: %s',
      (_, iterations) => {
        expect(readMessagesUsage({ ...top, iterations })).toEqual(readMessagesUsage(top))
      },
    )

    test('an answer of a model to which the provider fell back adds nothing to the reported sums, and is marked', () => {
      const iterations = [entry('message', 500, 1), entry('fallback_message', 181, 8)]
      expect(readMessagesUsage({ ...top, iterations })).toEqual({
        ...readMessagesUsage(top),
        isFallback: true,
      })
    })

    test('the tokens of an adviser, another model, are reported apart from the sums', () => {
      const advised = { ...entry('advisor_message', 2_543, 18), model: 'dear' }
      const usage = { ...top, iterations: [entry('message', 181, 8), advised] }
      expect(readMessagesUsage(usage)).toEqual({
        ...readMessagesUsage(top),
        advisors: [{ model: 'dear', usage: expect.objectContaining({ input: 2_543, output: 18 }) }],
      })
    })

    test('the output of a messages usage with several iterations is unknown if the report omits the output count', () => {
      const all = { input_tokens: 181, iterations: [compaction] }
      expect(readMessagesUsage(all)).toMatchObject({ input: 281, output: 0, outputIsUnknown: true })
    })
  })

  test('cache writes of a messages usage that are not divided by lifetime have the lifetime of five minutes', () => {
    const bare = { input_tokens: 1, output_tokens: 2, cache_creation_input_tokens: 7 }
    expect(readMessagesUsage(bare)).toEqual({ ...NO_USAGE, input: 1, output: 2, cacheWrite5m: 7 })
    expect(readMessagesUsage({ ...bare, cache_creation: null })).toMatchObject({ cacheWrite5m: 7 })
  })

  test.each([
    [undefined],
    [null],
    ['x'],
    [{}],
    [{ output_tokens: 1 }],
    [{ input_tokens: -1, output_tokens: 1 }],
    [{ input_tokens: 1.5, output_tokens: 1 }],
    [{ input_tokens: '1', output_tokens: 1 }],
    [{ input_tokens: 0 }],
    [{ input_tokens: 0, output_tokens: 1e12 }],
  ])('a value that is not a usage of messages is recognized as such: %j', (value) => {
    expect(readMessagesUsage(value)).toBeUndefined()
  })

  test.each([[{}], [{ output_tokens: null }], [{ output_tokens: 1e12 }], [{ output_tokens: -1 }]])(
    'the prompt tokens of a messages usage count even if its output is %j',
    (output) => {
      expect(readMessagesUsage({ input_tokens: 10, cache_read_input_tokens: 90, ...output })).toEqual({
        ...NO_USAGE,
        input: 10,
        cacheRead: 90,
        outputIsUnknown: true,
      })
    },
  )

  test('an impossible detail of a messages usage, such as a negative count, does not affect the other counts', () => {
    const plain = { input_tokens: 7, output_tokens: 2 }
    for (const detail of [
      { cache_read_input_tokens: -5 },
      { cache_creation_input_tokens: 1.5 },
      { cache_creation: { ephemeral_5m_input_tokens: '3', ephemeral_1h_input_tokens: 1e12 } },
      { server_tool_use: { web_search_requests: -1 } },
      { output_tokens_details: { thinking_tokens: 'x' } },
    ])
      expect(readMessagesUsage({ ...plain, ...detail })).toEqual({ ...NO_USAGE, input: 7, output: 2 })
    expect(readMessagesUsage({ ...plain, output_tokens_details: { thinking_tokens: 3 } })).toEqual({
      ...NO_USAGE,
      input: 7,
      output: 2,
      reasoning: 2,
    })
  })

  test('a messages usage with any details is read as disjoint counts', () => {
    const count = fc.oneof(fc.nat(6), fc.constantFrom<unknown>(null, -1, 0.5, '7', {}, 1_000_000_000, 1e12))
    const counts = (...names: string[]) =>
      fc.record(Object.fromEntries(names.map((name) => [name, count])), { requiredKeys: [] })
    fc.assert(
      fc.property(
        fc.nat(10),
        fc.nat(10),
        counts('cache_read_input_tokens', 'cache_creation_input_tokens'),
        counts('ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'),
        counts('thinking_tokens'),
        (input, output, cached, split, thinking) => {
          const usage = readMessagesUsage({
            input_tokens: input,
            output_tokens: output,
            ...cached,
            cache_creation: split,
            output_tokens_details: thinking,
          })
          if (!usage) throw new Error('it was discarded')
          expect(Object.values(usage).every((tokens) => Number.isSafeInteger(tokens) && tokens >= 0)).toBe(
            true,
          )
          expect(usage).toMatchObject({ input, output })
          expect(usage.reasoning).toBeLessThanOrEqual(output)
          const reported = (name: string, holder: Record<string, unknown>): number =>
            Number.isInteger(holder[name]) && Math.abs(Number(holder[name]) - 5e8) <= 5e8
              ? Number(holder[name])
              : 0
          expect(usage.cacheWrite5m + usage.cacheWrite1h).toBe(
            Math.max(
              reported('cache_creation_input_tokens', cached),
              reported('ephemeral_5m_input_tokens', split) + reported('ephemeral_1h_input_tokens', split),
            ),
          )
        },
      ),
    )
  })

  test('the usage counts of a message_delta replace those of message_start', () => {
    const first = { input_tokens: 2225, output_tokens: 1, cache_read_input_tokens: 0 }
    expect(reported({ output_tokens: 50 }, first)).toEqual({ ...NO_USAGE, input: 2225, output: 50 })
    expect(reported({ input_tokens: 9447, output_tokens: 50 }, first)).toMatchObject({
      input: 9447,
      output: 50,
    })
    expect(
      reported({ input_tokens: 25, cache_read_input_tokens: 2200, output_tokens: 50 }, first),
    ).toMatchObject({
      input: 25,
      cacheRead: 2200,
    })
    expect(reported({ input_tokens: null, output_tokens: 50 }, first)).toMatchObject({ input: 2225 })
  })

  test('a prompt of zero tokens in a message_delta counts as missing, but an output of zero does not', () => {
    const first = { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 3 }
    const zeros = {
      input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      output_tokens: 0,
    }
    expect(reported(zeros, first)).toEqual({ ...NO_USAGE, input: 10, cacheRead: 3 })
    expect(reported({ ...zeros, cache_read_input_tokens: 13 }, first)).toMatchObject({
      input: 0,
      cacheRead: 13,
    })
  })

  test('an impossible prompt count in message_delta, such as a negative one, does not replace that of message_start', () => {
    const first = { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 3 }
    expect(reported({ input_tokens: 12, cache_read_input_tokens: -3, output_tokens: 5 }, first)).toEqual({
      ...NO_USAGE,
      input: 12,
      cacheRead: 3,
      output: 5,
    })
  })

  test('the divided cache writes of message_start count where message_delta repeats only their sum', () => {
    const first = {
      input_tokens: 1,
      output_tokens: 1,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    }
    expect(reported({ cache_creation_input_tokens: 30, output_tokens: 9 }, first)).toMatchObject({
      cacheWrite5m: 10,
      cacheWrite1h: 20,
    })
  })
})

describe('a whole reply', () => {
  const facts = (value: unknown) => usageOfMessage(Buffer.from(JSON.stringify(value)))

  test('the text of a whole messages reply for counting has what the model wrote, and no results of searches', () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'x' },
      { type: 'text', text: 'hi' },
      { type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [{ title: 'not the model' }] },
    ]
    const found = facts({ type: 'message', content })
    expect(found).toMatchObject({ valid: true, error: undefined })
    expect(found.text()).toBe('hm\nhi\nf\n{"a":1}\nweb_search')
  })

  test.each([
    [
      { type: 'error', error: { type: 'overloaded_error', message: 'm' } },
      { valid: false, error: { data: expect.any(String) } },
    ],
    [
      { error: 'x', content: [] },
      { valid: false, error: { data: expect.any(String) } },
    ],
    [{ type: 'message' }, { valid: false, error: undefined }],
    [[], { valid: false, error: undefined }],
  ])('a whole messages reply without readable content has no text to count: %j', (value, expected) => {
    expect(facts(value)).toMatchObject(expected)
  })

  test('a whole messages reply that is not JSON is not valid, and has no usage', () => {
    expect(usageOfMessage(Buffer.from('<html>'))).toMatchObject({
      valid: false,
      error: undefined,
      usage: undefined,
    })
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const names = folder
    ? readdirSync(join(folder, 'messages')).filter(
        (name) => name.endsWith('.json') && !name.startsWith('error-'),
      )
    : []

  test(`${names.length} recorded messages replies have the usage that they report`, () => {
    for (const name of names) {
      const bytes = readFileSync(join(folder ?? '', 'messages', name))
      const { usage } = JSON.parse(bytes.toString()) as { usage: Record<string, number | undefined> }
      const found = usageOfMessage(bytes)
      expect(found, name).toMatchObject({ valid: true, error: undefined })
      expect(found.usage, name).toMatchObject({
        input: usage['input_tokens'],
        output: usage['output_tokens'],
        cacheRead: usage['cache_read_input_tokens'] ?? 0,
      })
      const { cacheWrite5m = 0, cacheWrite1h = 0 } = found.usage ?? {}
      expect(cacheWrite5m + cacheWrite1h, name).toBe(usage['cache_creation_input_tokens'] ?? 0)
    }
    expect(names.length).toBeGreaterThanOrEqual(0)
  })
})
