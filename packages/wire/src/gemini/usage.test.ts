import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../usage.ts'
import { StreamUsage } from './usage.ts'

const usageOf = (...reports: readonly (object | undefined)[]): unknown => {
  const usage = new StreamUsage()
  for (const usageMetadata of reports) usage.read({ usageMetadata })
  return usage.usage
}

describe('usage of Gemini', () => {
  test('a Gemini usage has thoughts in the output, tool results in the input, and cached tokens as a part of the prompt', () => {
    expect(
      usageOf({
        promptTokenCount: 100,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 7,
        toolUsePromptTokenCount: 30,
        totalTokenCount: 142,
      }),
    ).toEqual({ ...NO_USAGE, input: 90, cacheRead: 40, output: 12, reasoning: 7 })
  })

  test('a Gemini usage has audio and image tokens as parts of input and output, without the cached ones', () => {
    const details = (modality: string, tokenCount: number): object => ({ modality, tokenCount })
    expect(
      usageOf({
        promptTokenCount: 400,
        promptTokensDetails: [details('TEXT', 100), details('IMAGE', 200), details('AUDIO', 100)],
        cachedContentTokenCount: 150,
        cacheTokensDetails: [details('IMAGE', 90), details('AUDIO', 60)],
        candidatesTokenCount: 1300,
        candidatesTokensDetails: [details('IMAGE', 1290), details('TEXT', 10)],
        totalTokenCount: 1700,
      }),
    ).toEqual({
      ...NO_USAGE,
      input: 250,
      imageInput: 110,
      audioInput: 40,
      cacheRead: 150,
      audioCacheRead: 60,
      imageCacheRead: 90,
      output: 1300,
      imageOutput: 1290,
    })
  })

  test('a Gemini usage has at most as many audio and image tokens as tokens in all', () => {
    expect(
      usageOf({
        promptTokenCount: 10,
        promptTokensDetails: [
          { modality: 'AUDIO', tokenCount: 50 },
          null,
          { modality: 'IMAGE', tokenCount: -1 },
        ],
        candidatesTokenCount: 5,
        candidatesTokensDetails: [
          { modality: 'AUDIO', tokenCount: 4 },
          { modality: 'IMAGE', tokenCount: 4 },
        ],
        totalTokenCount: 15,
      }),
    ).toEqual({ ...NO_USAGE, input: 10, audioInput: 10, output: 5, audioOutput: 4, imageOutput: 1 })
  })

  test.each([
    ['undefined without a prompt', { candidatesTokenCount: 23, thoughtsTokenCount: 67 }, undefined],
    [
      'the rest of the total without one',
      { candidatesTokenCount: 5, totalTokenCount: 15 },
      { input: 10, output: 5 },
    ],
    [
      'the prompt alone without output',
      { promptTokenCount: 8, totalTokenCount: 8 },
      { input: 8, outputIsUnknown: true },
    ],
    [
      'what the total has in addition',
      { promptTokenCount: 8, candidatesTokenCount: 2, totalTokenCount: 15 },
      { input: 8, output: 7, reasoning: 5 },
    ],
    [
      'its parts where the total is too small',
      { promptTokenCount: 8, candidatesTokenCount: 2, totalTokenCount: 3 },
      { input: 8, output: 2 },
    ],
    [
      'cached tokens up to the prompt',
      { promptTokenCount: 8, cachedContentTokenCount: 9, candidatesTokenCount: 1 },
      { input: 0, cacheRead: 8 },
    ],
    ['undefined without a credible count', { promptTokenCount: -1, totalTokenCount: 1e12 }, undefined],
  ])('usage of a Gemini response is %s', (_, report, expected) => {
    if (expected === undefined) expect(usageOf(report)).toBeUndefined()
    else expect(usageOf(report)).toMatchObject(expected)
  })

  test('the usage of a Gemini stream is its last report, which may be lower than an earlier one', () => {
    const first = { promptTokenCount: 10, candidatesTokenCount: 50, totalTokenCount: 60 }
    const last = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
    expect(usageOf(first, undefined, last)).toMatchObject({ input: 10, output: 5 })
  })

  test('the usage of a Gemini stream is not lost by a later report without counts, or without output', () => {
    const report = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
    expect(usageOf(report, { trafficType: 'ON_DEMAND' })).toMatchObject({ input: 10, output: 5 })
    expect(usageOf(report, { promptTokenCount: 10, totalTokenCount: 10 })).toMatchObject({ output: 5 })
    expect(usageOf({ trafficType: 'ON_DEMAND' }, report)).toMatchObject({ input: 10, output: 5 })
  })

  test('a Gemini usage counts the queries of the provider’s search', () => {
    const usage = new StreamUsage()
    usage.read({ usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } })
    usage.read({ candidates: [{ groundingMetadata: { webSearchQueries: ['a', 'b'] } }] })
    expect(usage.usage).toMatchObject({ webSearches: 2 })
  })
})
