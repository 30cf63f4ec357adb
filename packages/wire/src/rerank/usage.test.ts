import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../usage.ts'
import { scanObject } from '../json/json-scan.ts'
import { readRerankUsage, writeRerankUsage } from './reply.ts'

const read = (reply: object): ReturnType<typeof readRerankUsage> =>
  readRerankUsage(scanObject(Buffer.from(JSON.stringify(reply))))

describe('the usage of a rerank response', () => {
  test.each<[string, object, number, number]>([
    ['a total (Jina, Voyage)', { usage: { total_tokens: 17, cost: 3.4e-7 } }, 17, 0],
    ['a total beside a prompt of zero', { usage: { prompt_tokens: 0, total_tokens: 17 } }, 17, 0],
    ['prompt and total', { usage: { prompt_tokens: 15, total_tokens: 17 } }, 15, 0],
    [
      'the chat protocol’s',
      { usage: { prompt_tokens: 2966, completion_tokens: 4, total_tokens: 2970 } },
      2966,
      4,
    ],
    ['a total of which some was generated', { usage: { completion_tokens: 4, total_tokens: 20 } }, 16, 4],
    ['input_tokens', { usage: { input_tokens: 9, output_tokens: 1 } }, 9, 1],
    ['meta.tokens (Cohere)', { meta: { tokens: { input_tokens: 30, output_tokens: 2 } } }, 30, 2],
    ['meta.billed_units', { meta: { billed_units: { input_tokens: 31, search_units: 1 } } }, 31, 0],
    [
      'meta.tokens before meta.billed_units',
      { meta: { tokens: { input_tokens: 30 }, billed_units: { input_tokens: 31 } } },
      30,
      0,
    ],
    ['usage before meta', { usage: { total_tokens: 5 }, meta: { tokens: { input_tokens: 30 } } }, 5, 0],
    ['a prompt beside output that cannot be true', { usage: { prompt_tokens: 9, output_tokens: -1 } }, 9, 0],
    ['a total beside a prompt that cannot be true', { usage: { prompt_tokens: 0.5, total_tokens: 9 } }, 9, 0],
    [
      'meta where usage cannot be true',
      { usage: { prompt_tokens: -1, total_tokens: 1.5 }, meta: { tokens: { input_tokens: 30 } } },
      30,
      0,
    ],
  ])('the usage of a rerank response is %s', (_, reply, input, output) => {
    expect(read(reply)).toMatchObject({ ...NO_USAGE, input, output, searchUnits: expect.anything() })
  })

  test.each([
    [3, 3],
    [2.5, 3],
  ])(
    'the usage of a rerank response may be search units (Cohere) without tokens: %d',
    (told, searchUnits) => {
      const billed = { meta: { billed_units: { search_units: told } } }
      expect(read(billed)).toEqual({ ...NO_USAGE, searchUnits, promptIsUnknown: true })
    },
  )

  test('the usage of a rerank response may be search units beside tokens', () => {
    const meta = { tokens: { input_tokens: 30 }, billed_units: { search_units: 2 } }
    expect(read({ meta })).toEqual({ ...NO_USAGE, input: 30, searchUnits: 2 })
  })

  test.each<[string, object]>([
    ['nothing', {}],
    ['no search unit', { meta: { billed_units: { search_units: 0 } } }],
    ['less than no search unit', { meta: { billed_units: { search_units: -3 } } }],
    ['search units beyond belief', { meta: { billed_units: { search_units: 1e300 } } }],
    ['null', { usage: null, meta: null }],
    ['zeros', { usage: { prompt_tokens: 0, total_tokens: 0 } }],
    ['text', { usage: { total_tokens: '17' } }],
    ['less than nothing', { usage: { total_tokens: -17 } }],
    ['a total below what was generated', { usage: { completion_tokens: 9, total_tokens: 5 } }],
    ['beyond belief', { usage: { total_tokens: 1e300 } }],
    ['a list', { usage: [1], meta: [1] }],
  ])('the usage of a rerank response is unknown where the upstream sends %s', (_, reply) => {
    expect(read(reply)).toBeUndefined()
  })
})

test('a client gets prompt, completion and their sum', () => {
  expect(JSON.parse(writeRerankUsage({ ...NO_USAGE, input: 7, output: 2 }))).toEqual({
    prompt_tokens: 7,
    completion_tokens: 2,
    total_tokens: 9,
  })
})
