import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../usage.ts'
import { usageOfResponse } from './native/tap.ts'
import { usageInResponse } from './usage.ts'

const USAGE = { input_tokens: 100, output_tokens: 40, total_tokens: 140 }

describe('usage of a response', () => {
  test('the usage of a response is read as disjoint counts', () => {
    const usage = {
      ...USAGE,
      input_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
      output_tokens_details: { reasoning_tokens: 10 },
    }
    expect(usageInResponse({ usage })).toEqual({
      ...NO_USAGE,
      input: 50,
      cacheRead: 30,
      cacheWrite5m: 20,
      lifetimeIsUnknown: true,
      output: 40,
      reasoning: 10,
    })
  })

  test('the usage of a response has zero for details that a server omits, and is unknown if the server states none', () => {
    expect(usageInResponse({ usage: USAGE })).toMatchObject({
      input: 100,
      cacheRead: 0,
      output: 40,
      reasoning: 0,
    })
    expect(usageInResponse({ usage: null })).toBeUndefined()
    expect(usageInResponse({})).toBeUndefined()
  })

  test('a detail in the usage of a response that cannot be true is limited, and the other counts stay', () => {
    const usage = { ...USAGE, input_tokens_details: { cached_tokens: 200 } }
    expect(usageInResponse({ usage })).toMatchObject({ input: 0, cacheRead: 100, output: 40 })
  })

  test('the usage of a response counts searches by tool_usage, or by its items if that is missing', () => {
    const search = { type: 'web_search_call', action: { type: 'search' } }
    const output = [
      search,
      { type: 'web_search_call' },
      { type: 'web_search_call', action: { type: 'open_page' } },
    ]
    expect(usageInResponse({ usage: USAGE, output })?.webSearches).toBe(2)
    expect(
      usageInResponse({ usage: USAGE, output, tool_usage: { web_search: { num_requests: 1 } } })?.webSearches,
    ).toBe(1)
  })
})

describe('a whole response', () => {
  const facts = (response: object): ReturnType<typeof usageOfResponse> =>
    usageOfResponse(Buffer.from(JSON.stringify(response)))

  test('a whole responses reply is read for its status, its id and all texts that the model wrote', () => {
    const output = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hmm' }] },
      { type: 'message', content: [{ type: 'output_text', text: 'Hello' }] },
      { type: 'function_call', name: 'f', arguments: '{}' },
    ]
    const read = facts({ id: 'resp_1', status: 'completed', output, usage: USAGE })
    expect(read).toMatchObject({ id: 'resp_1', status: 'completed', valid: true, error: undefined })
    expect(read.text()).toBe('Hmm\nHello\nf\n{}')
  })

  test.each([
    ['an error', { error: { message: 'x' } }],
    ['one that failed', { output: [], status: 'failed' }],
    ['a list', []],
  ])('a whole responses reply is recognized as invalid if it is %s', (_, body) => {
    expect(facts(body).valid).toBe(false)
  })
})
