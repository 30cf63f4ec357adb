import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NO_USAGE, promptTokens, type Usage } from '../usage.ts'
import { usageOfReply } from './native/tap.ts'
import { numbersOfReport, readInclusiveUsage, withCredibleTotal } from '../reported-usage.ts'
import { usageInChatReply, type UsageOfChoices } from './usage.ts'

const usage = (parts: Partial<Usage>): Usage => ({ ...NO_USAGE, ...parts })
/** The counts of a report whose total is trusted. */
const believed = (value: unknown): Usage | undefined => {
  const reported = readInclusiveUsage(value)
  return reported && numbersOfReport(reported)
}
const plain = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }

describe('disjoint usage', () => {
  test('cached tokens in a chat usage are subtracted from the prompt, whatever name they have', () => {
    const expected = usage({ input: 60, cacheRead: 40, output: 20 })
    for (const cached of [
      { prompt_tokens_details: { cached_tokens: 40 } },
      { prompt_cache_hit_tokens: 40, prompt_cache_miss_tokens: 60 },
      { prompt_cache_hit_tokens: 40, prompt_tokens_details: { cached_tokens: 40 } },
      { cache_read_input_tokens: 40 },
      { num_cached_tokens: 40 },
    ]) {
      expect(readInclusiveUsage({ ...plain, ...cached })).toEqual(expected)
    }
  })

  test('cache writes in a chat usage are subtracted from the prompt, and divided by lifetime', () => {
    expect(
      readInclusiveUsage({
        ...plain,
        prompt_tokens_details: { cached_tokens: 10, cached_creation_tokens: 30 },
      }),
    ).toEqual({
      ...usage({ input: 60, cacheRead: 10, cacheWrite5m: 30, output: 20 }),
      lifetimeIsUnknown: true,
    })
    expect(
      readInclusiveUsage({
        ...plain,
        prompt_tokens_details: { cached_tokens: 10, cached_creation_tokens: 30 },
        claude_cache_creation_5m_tokens: 10,
        claude_cache_creation_1h_tokens: 15,
      }),
    ).toEqual(usage({ input: 60, cacheRead: 10, cacheWrite5m: 15, cacheWrite1h: 15, output: 20 }))
    expect(
      readInclusiveUsage({
        ...plain,
        claude_cache_creation_5m_tokens: 10,
        claude_cache_creation_1h_tokens: 15,
      }),
    ).toEqual(usage({ input: 75, cacheWrite5m: 10, cacheWrite1h: 15, output: 20 }))
    expect(readInclusiveUsage({ ...plain, prompt_tokens_details: { cache_write_tokens: 30 } })).toEqual({
      ...usage({ input: 70, cacheWrite5m: 30, output: 20 }),
      lifetimeIsUnknown: true,
    })
  })

  test('reasoning tokens in a chat usage count as a part of the output', () => {
    expect(readInclusiveUsage({ ...plain, completion_tokens_details: { reasoning_tokens: 15 } })).toEqual(
      usage({ input: 100, output: 20, reasoning: 15 }),
    )
  })

  test('tokens of a chat usage that only total_tokens includes are added: reasoning, and audio in the prompt', () => {
    expect(
      readInclusiveUsage({
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 241,
        completion_tokens_details: { reasoning_tokens: 228 },
      }),
    ).toEqual(usage({ input: 12, output: 229, reasoning: 228 }))
    expect(
      readInclusiveUsage({
        prompt_tokens: 9,
        completion_tokens: 201,
        total_tokens: 585,
        prompt_tokens_details: { audio_tokens: 375 },
      }),
    ).toEqual(usage({ input: 384, audioInput: 375, output: 201 }))
    expect(
      readInclusiveUsage({
        prompt_tokens: 9,
        completion_tokens: 1,
        total_tokens: 40,
        prompt_tokens_details: { audio_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 20 },
      }),
    ).toEqual(usage({ input: 19, audioInput: 10, output: 21, reasoning: 20 }))
    // An excess that no detail explains is hidden output.
    expect(
      believed({
        ...plain,
        total_tokens: 127,
        prompt_tokens_details: { audio_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 5 },
      }),
    ).toEqual(usage({ input: 100, audioInput: 10, output: 27, reasoning: 12 }))
  })

  test('tokens that only the total_tokens of a chat usage includes, and no detail explains, count as thoughts (Gemini)', () => {
    expect(believed({ prompt_tokens: 20, completion_tokens: 198, total_tokens: 623 })).toEqual(
      usage({ input: 20, output: 603, reasoning: 405 }),
    )
    expect(believed({ prompt_tokens: 0, completion_tokens: 50, total_tokens: 150 })).toEqual(
      usage({ input: 0, output: 150, reasoning: 100 }),
    )
    // A detail larger than its count was not included in it, even if it does not explain the whole excess.
    expect(
      believed({
        prompt_tokens: 10,
        completion_tokens: 20,
        total_tokens: 137,
        prompt_tokens_details: { cached_tokens: 100 },
      }),
    ).toEqual(usage({ input: 10, cacheRead: 100, output: 27, reasoning: 7 }))
    for (const total of [1_000_000_001, 623.5, '623', -1, null])
      expect(believed({ prompt_tokens: 20, completion_tokens: 198, total_tokens: total })).toEqual(
        usage({ input: 20, output: 198 }),
      )
  })

  test('a chat usage is read under the names of the responses dialect where the usual names are missing', () => {
    expect(
      readInclusiveUsage({
        input_tokens: 100,
        output_tokens: 20,
        input_tokens_details: { cached_tokens: 40 },
      }),
    ).toEqual(usage({ input: 60, cacheRead: 40, output: 20 }))
    expect(readInclusiveUsage({ ...plain, input_tokens: 0, output_tokens: 0 })).toEqual(
      usage({ input: 100, output: 20 }),
    )
  })

  test('web searches in a chat usage are counted', () => {
    expect(
      readInclusiveUsage({ ...plain, server_tool_use_details: { web_search_requests: 2 } })?.webSearches,
    ).toBe(2)
  })

  test('null in a chat usage is the same as a missing member', () => {
    expect(
      readInclusiveUsage({
        ...plain,
        prompt_tokens_details: null,
        completion_tokens_details: { reasoning_tokens: null },
        prompt_cache_hit_tokens: null,
      }),
    ).toEqual(usage({ input: 100, output: 20 }))
  })
})

describe('incomplete usage', () => {
  test.each([
    [undefined],
    [null],
    ['x'],
    [[]],
    [{}],
    [{ completion_tokens: 1 }],
    [{ prompt_tokens: null, completion_tokens: 1 }],
    [{ prompt_tokens: -1, completion_tokens: 1 }],
    [{ prompt_tokens: 1.5, completion_tokens: 1 }],
    [{ prompt_tokens: '100', completion_tokens: 1 }],
    [{ prompt_tokens: 0, completion_tokens: null }],
  ])(
    'a chat usage without a valid count of prompt tokens or of output tokens counts as not reported: %j',
    (value) => {
      expect(readInclusiveUsage(value)).toBeUndefined()
    },
  )

  test.each([
    [{ prompt_tokens: 1000 }],
    [{ prompt_tokens: 1000, completion_tokens: null }],
    [{ prompt_tokens: 1000, completion_tokens: -5 }],
    [{ prompt_tokens: 1000, completion_tokens: 1_000_000_001 }],
    [{ prompt_tokens: 1000, completion_tokens: Number.POSITIVE_INFINITY }],
    [{ prompt_tokens: 1000, completion_tokens: null, total_tokens: 120 }],
  ])('the prompt tokens of a usage count even if the output is missing: %j', (value) => {
    const cached = { ...value, prompt_tokens_details: { cached_tokens: 400 } }
    expect(readInclusiveUsage(cached)).toEqual({
      ...usage({ input: 600, cacheRead: 400 }),
      outputIsUnknown: true,
    })
  })

  test('a missing count of prompt or output tokens is computed from total_tokens', () => {
    expect(believed({ ...plain, prompt_tokens: -1 })).toEqual(usage({ input: 100, output: 20 }))
    expect(believed({ ...plain, completion_tokens: null })).toEqual(usage({ input: 100, output: 20 }))
  })

  test('a chat usage of zeros counts as reported usage', () => {
    expect(readInclusiveUsage({ prompt_tokens: 0, completion_tokens: 0 })).toEqual(NO_USAGE)
    expect(readInclusiveUsage({ prompt_tokens: 1_000_000_000, completion_tokens: 0 })?.input).toBe(
      1_000_000_000,
    )
  })
})

describe('a total that cannot be true', () => {
  const without = (value: unknown, maximum: number): Usage | undefined => {
    const kept = withCredibleTotal(readInclusiveUsage(value) ?? usage({}), maximum)
    return kept && numbersOfReport(kept)
  }

  test('tokens that only an implausible total_tokens implies are not charged, and no detail exceeds its count', () => {
    const said = {
      ...plain,
      total_tokens: 100 + 20 + 400 + 31,
      prompt_tokens_details: { cached_tokens: 400 },
    }
    expect(without(said, 51)).toEqual(usage({ input: 100, cacheRead: 400, output: 51, reasoning: 31 }))
    expect(without(said, 50)).toEqual(usage({ cacheRead: 100, output: 20 }))
  })

  test('the output count of a usage without one is unknown if computing it would need an implausible total_tokens', () => {
    const said = { prompt_tokens: 100, total_tokens: 151 }
    expect(without(said, 51)).toEqual(usage({ input: 100, output: 51 }))
    expect(withCredibleTotal(readInclusiveUsage(said) ?? usage({}), 50)).toEqual({
      ...usage({ input: 100 }),
      outputIsUnknown: true,
    })
  })

  test('a total_tokens that includes tokens stated only in the details is believed, whatever the maximum of output tokens', () => {
    const details = {
      prompt_tokens_details: { cached_tokens: 15, audio_tokens: 15 },
      completion_tokens_details: { reasoning_tokens: 15 },
    }
    expect(without({ ...plain, total_tokens: 135, ...details }, 1)).toMatchObject({
      output: 35,
      reasoning: 15,
    })
    expect(
      without({ ...plain, total_tokens: 135, prompt_tokens_details: details.prompt_tokens_details }, 1),
    ).toMatchObject({ input: 100, cacheRead: 15, output: 20 })
  })
})

describe('a detail that cannot be true', () => {
  test.each([
    [{ prompt_tokens_details: { cached_tokens: -5 } }],
    [{ claude_cache_creation_1h_tokens: 'x' }],
    [{ server_tool_use: { web_search_requests: -1 } }],
    [{ completion_tokens_details: { reasoning_tokens: 1.5 } }],
    [{ prompt_tokens_details: { audio_tokens: 2e9 } }],
  ])('an impossible detail of a chat usage does not affect the other counts: %j', (detail) => {
    expect(readInclusiveUsage({ ...plain, ...detail })).toEqual(usage({ input: 100, output: 20 }))
  })

  test('a detail of usage that is larger than its count is limited to this count (Azure, doubleword)', () => {
    expect(
      readInclusiveUsage({
        prompt_tokens: 293,
        completion_tokens: 58,
        total_tokens: 351,
        prompt_tokens_details: { cached_tokens: 387, audio_tokens: 0, text_tokens: 293 },
      }),
    ).toEqual(usage({ cacheRead: 293, output: 58 }))
    expect(
      readInclusiveUsage({
        prompt_tokens: 100,
        completion_tokens: 16,
        total_tokens: 116,
        completion_tokens_details: { reasoning_tokens: 19 },
      }),
    ).toEqual(usage({ input: 100, output: 16, reasoning: 16 }))
    expect(readInclusiveUsage({ ...plain, cache_creation_input_tokens: 500 })).toEqual({
      ...usage({ cacheWrite5m: 100, output: 20 }),
      lifetimeIsUnknown: true,
    })
  })

  test('without a total_tokens, cached tokens that exceed the prompt are beside it', () => {
    const prompt = { prompt_tokens: 100, completion_tokens: 20 }
    expect(readInclusiveUsage({ ...prompt, prompt_tokens_details: { cached_tokens: 400 } })).toEqual(
      usage({ input: 100, cacheRead: 400, output: 20 }),
    )
    expect(readInclusiveUsage({ ...prompt, cache_creation_input_tokens: 500, total_tokens: null })).toEqual({
      ...usage({ input: 100, cacheWrite5m: 500, output: 20 }),
      lifetimeIsUnknown: true,
    })
    expect(readInclusiveUsage({ ...prompt, prompt_tokens_details: { cached_tokens: 100 } })).toEqual(
      usage({ cacheRead: 100, output: 20 }),
    )
  })

  test('a detail of usage is added to its count if total_tokens shows that the count lacks it', () => {
    expect(
      readInclusiveUsage({
        prompt_tokens: 10,
        completion_tokens: 20,
        total_tokens: 130,
        prompt_tokens_details: { cached_tokens: 100 },
      }),
    ).toEqual(usage({ input: 10, cacheRead: 100, output: 20 }))
    expect(
      readInclusiveUsage({
        prompt_tokens: 10,
        completion_tokens: 20,
        total_tokens: 190,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 60,
        claude_cache_creation_1h_tokens: 25,
      }),
    ).toEqual(usage({ input: 10, cacheRead: 100, cacheWrite5m: 35, cacheWrite1h: 25, output: 20 }))
    // Both details equal the excess; the one that exceeds its own count explains it.
    expect(
      readInclusiveUsage({
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 150,
        prompt_tokens_details: { audio_tokens: 30 },
        completion_tokens_details: { reasoning_tokens: 30 },
      }),
    ).toEqual(usage({ input: 100, audioInput: 30, output: 50, reasoning: 30 }))
  })

  test('tokens that a usage reports as both read from and written to a cache are counted as written only (OpenRouter)', () => {
    const reported = (prompt: number, cached: number, written: number) => ({
      prompt_tokens: prompt,
      completion_tokens: 20,
      total_tokens: prompt + 20,
      prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    })
    expect(readInclusiveUsage(reported(2168, 2161, 2161))).toEqual({
      ...usage({ cacheRead: 7, cacheWrite5m: 2161, output: 20 }),
      lifetimeIsUnknown: true,
    })
    expect(readInclusiveUsage(reported(100, 60, 41))).toEqual({
      ...usage({ cacheRead: 60, cacheWrite5m: 40, output: 20 }),
      lifetimeIsUnknown: true,
    })
    expect(readInclusiveUsage(reported(100, 300, 41))).toEqual(usage({ cacheRead: 100, output: 20 }))
  })

  test('cache writes are divided by cache_write_tokens_details, and the undivided rest counts as written for 30 minutes', () => {
    const details = {
      cached_tokens: 10,
      cache_write_tokens: 50,
      cache_write_tokens_details: { ttl_12h_tokens: 20 },
    }
    expect(readInclusiveUsage({ ...plain, prompt_tokens_details: details })).toEqual(
      usage({ input: 40, cacheRead: 10, cacheWrite30m: 30, cacheWrite12h: 20, output: 20 }),
    )
  })

  test('the divided counts of cache writes replace their reported sum if they add up to more', () => {
    expect(
      readInclusiveUsage({
        ...plain,
        prompt_tokens_details: { cached_creation_tokens: 20 },
        claude_cache_creation_5m_tokens: 10,
        claude_cache_creation_1h_tokens: 15,
      }),
    ).toEqual(usage({ input: 75, cacheWrite5m: 10, cacheWrite1h: 15, output: 20 }))
  })
})

test('a chat usage is read from its documented place, and otherwise from the other places that upstreams use', () => {
  const other = { prompt_tokens: 1, completion_tokens: 1 }
  expect(usageInChatReply({ usage: null, x_groq: { usage: plain } })?.input).toBe(100)
  expect(usageInChatReply({ choices: [{ usage: plain }] })?.input).toBe(100)
  expect(usageInChatReply({ usage: { prompt_tokens: 7 }, x_groq: { usage: plain } })).toMatchObject({
    input: 100,
    output: 20,
  })
  expect(usageInChatReply({ usage: { prompt_tokens: 7 }, x_groq: {} })).toMatchObject({
    input: 7,
    outputIsUnknown: true,
  })
  expect(
    usageInChatReply({ usage: plain, x_groq: { usage: other }, choices: [{ usage: other }] })?.input,
  ).toBe(100)
})

test('a chat usage that only the choices state has the prompt once and the output of all choices', () => {
  const details = { completion_tokens_details: { reasoning_tokens: 5 } }
  const second = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, ...details }
  const choices = [{ index: 0, usage: plain }, { index: 1, usage: second }, { index: 2 }]
  expect(usageInChatReply({ choices })).toEqual(usage({ input: 100, output: 70, reasoning: 5 }))
  expect(usageInChatReply({ choices, usage: plain })).toMatchObject({ input: 100, output: 20 })
  const unknown = { index: 1, usage: { prompt_tokens: 100 } }
  expect(usageInChatReply({ choices: [choices[0], unknown] })).toMatchObject({ outputIsUnknown: true })
})

test('a choice without an index has that of its place, and its output stays when a later report has none', () => {
  const prompt = { prompt_tokens: 100 }
  const of = (output: number, total = 100 + output): object => ({
    usage: { prompt_tokens: 100, completion_tokens: output, total_tokens: total },
  })
  expect(usageInChatReply({ choices: [of(30), of(20)] })).toMatchObject({ input: 100, output: 50 })
  const chunks = [
    [{ index: 0, ...of(30) }],
    [
      { index: 0, usage: prompt },
      { index: 1, ...of(20) },
    ],
  ]
  const known: UsageOfChoices = new Map()
  const sums = chunks.map((choices) => usageInChatReply({ choices }, known))
  expect(sums.at(-1)).toMatchObject({ input: 100, output: 50 })
  // A total that nothing explains is no output of the sum.
  expect(usageInChatReply({ choices: [of(10, 900_000), of(20)] })).toMatchObject({ input: 100, output: 30 })
})

describe('a whole reply', () => {
  const reply = (parts: object): Buffer =>
    Buffer.from(JSON.stringify({ id: 'x', object: 'chat.completion', choices: [], usage: plain, ...parts }))
  const choice = (message: object): object => ({ index: 0, message, finish_reason: 'stop' })

  test('usage and text of a whole chat reply are read', () => {
    const facts = usageOfReply(
      reply({ choices: [choice({ content: 'one' }), choice({ content: null, reasoning_content: 'two' })] }),
    )
    expect(facts).toMatchObject({ valid: true, error: undefined, usage: usage({ input: 100, output: 20 }) })
    expect(facts.text()).toBe('one\ntwo')
  })

  test('a whole chat reply without usage is read as a valid reply', () => {
    expect(usageOfReply(reply({ usage: undefined }))).toMatchObject({ valid: true, usage: undefined })
    expect(usageOfReply(reply({ usage: undefined, choices: [{ usage: plain }] })).usage?.input).toBe(100)
  })

  test('a whole chat reply that is an error, invalid JSON or cut off is not read as a valid reply', () => {
    expect(usageOfReply(reply({ error: { message: 'no' } }))).toMatchObject({
      valid: false,
      error: { data: expect.any(String) },
    })
    expect(usageOfReply(Buffer.from('{"error":"no"}'))).toMatchObject({
      valid: false,
      error: { data: expect.any(String) },
    })
    expect(usageOfReply(reply({ error: null }))).toMatchObject({ valid: true, error: undefined })
    for (const rubbish of ['', '[]', 'null', '<html>', '{"choices":[', '{"choices":{}}', '{}']) {
      const facts = usageOfReply(Buffer.from(rubbish))
      expect(facts).toMatchObject({ valid: false, error: undefined })
      expect(facts.text()).toBe('')
    }
  })

  test('a whole chat reply with a repeated key is read as a valid reply, as clients read it', () => {
    const twice = Buffer.from(
      `{"id":"a","id":"b","choices":[{"message":{"content":"x"}}],"usage":${JSON.stringify(plain)}}`,
    )
    expect(usageOfReply(twice)).toMatchObject({ valid: true, usage: usage({ input: 100, output: 20 }) })
  })

  test('the text of a whole chat reply for counting contains everything that was generated, once', () => {
    const message = {
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
        { type: 'text', text: 'four' },
      ],
      refusal: 'no',
      reasoning: 'why',
      reasoning_content: 'why',
      reasoning_details: [{ text: 'why' }],
      audio: { data: 'T2dn', transcript: 'beep' },
      function_call: { name: 'f', arguments: '{}' },
      tool_calls: [{ function: { name: 'g', arguments: '{"a":1}' } }, { custom: { name: 'h', input: 'i' } }],
    }
    const text = usageOfReply(reply({ choices: [choice(message)] })).text()
    expect(text.split('\n').sort()).toEqual(
      ['beep', 'f', 'four', 'g', 'h', 'hm', 'i', 'no', 'why', '{"a":1}', '{}'].sort(),
    )
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const replies = folder
    ? readdirSync(join(folder, 'chat')).filter((name) => name.endsWith('.json') && !name.startsWith('error-'))
    : []

  test(`${replies.length} recorded chat replies are valid, and their usage adds up to the total_tokens that they report`, () => {
    for (const name of replies) {
      const bytes = readFileSync(join(folder ?? '', 'chat', name))
      const facts = usageOfReply(bytes)
      expect(facts, name).toMatchObject({ valid: true, error: undefined })
      const { usage: raw } = JSON.parse(bytes.toString()) as { usage: { total_tokens: number } }
      expect(facts.usage && promptTokens(facts.usage) + facts.usage.output, name).toBe(raw.total_tokens)
    }
    expect(replies.length).toBeGreaterThanOrEqual(0)
  })
})
