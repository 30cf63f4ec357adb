import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { promptTokens } from '../usage.ts'
import { numbersOfReport, readInclusiveUsage } from '../reported-usage.ts'
import { reportedUsage } from '../../../../test/generators/reported-usage.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

describe('usage with any details', () => {
  test('any usage that a chat reply reports is read as disjoint counts of tokens, and reasoning is a part of the output', () => {
    fc.assert(
      fc.property(reportedUsage, (said) => {
        const usage = readInclusiveUsage(said)
        if (!usage) throw new Error('it was discarded')
        for (const tokens of Object.values(numbersOfReport(usage))) {
          expect(Number.isSafeInteger(tokens)).toBe(true)
          expect(tokens).toBeGreaterThanOrEqual(0)
        }
        expect(usage.reasoning).toBeLessThanOrEqual(usage.output)
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  test('charged prompt and output tokens add up to total_tokens if it is plausible, otherwise to the sum of the two counts', () => {
    fc.assert(
      fc.property(reportedUsage, (said) => {
        const usage = readInclusiveUsage(said)
        if (!usage) throw new Error('it was discarded')
        const charged = promptTokens(usage) + usage.output
        const stated = said.prompt_tokens + said.completion_tokens
        const total = said['total_tokens']
        const isPlausible =
          typeof total === 'number' && Number.isInteger(total) && total >= stated && total <= 1_000_000_000
        // Without a total, cached tokens that exceed the prompt are beside it.
        if (total !== null) expect(charged).toBe(isPlausible ? total : stated)
        else expect(usage.output).toBe(said.completion_tokens)
        expect(promptTokens(usage)).toBeGreaterThanOrEqual(said.prompt_tokens)
        expect(usage.output).toBeGreaterThanOrEqual(said.completion_tokens)
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  test('details of usage that fit into their counts do not change the reported counts', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(100), fc.nat(100), fc.nat(100), fc.nat(100), (a, b, c, d, e) => {
        expect(
          readInclusiveUsage({
            prompt_tokens: a + b + c,
            completion_tokens: d + e,
            total_tokens: a + b + c + d + e,
            prompt_tokens_details: { cached_tokens: b, cached_creation_tokens: c },
            completion_tokens_details: { reasoning_tokens: e },
          }),
        ).toMatchObject({ input: a, cacheRead: b, cacheWrite5m: c, output: d + e, reasoning: e })
      }),
    )
  })

  test.each(['cached', 'written', 'audio', 'reasoning'] as const)(
    'a detail of usage larger than its count (%s) is added to it if total_tokens includes it, or if there is none and the cache is meant; otherwise it is limited to it',
    (kind) => {
      fc.assert(
        fc.property(fc.nat(100), fc.nat(100), fc.integer({ min: 1, max: 50 }), (prompt, output, more) => {
          const tokens = (kind === 'reasoning' ? output : prompt) + more
          const NAMES = {
            cached: { prompt_tokens_details: { cached_tokens: tokens } },
            written: { prompt_tokens_details: { cached_creation_tokens: tokens } },
            audio: { prompt_tokens_details: { audio_tokens: tokens } },
            reasoning: { completion_tokens_details: { reasoning_tokens: tokens } },
          }
          const said = { prompt_tokens: prompt, completion_tokens: output, ...NAMES[kind] }
          const sums = (total: object): number[] => {
            const usage = readInclusiveUsage({ ...said, ...total })
            return usage ? [promptTokens(usage), usage.output] : []
          }
          const added = kind === 'reasoning' ? [prompt, output + tokens] : [prompt + tokens, output]
          expect(sums({ total_tokens: prompt + output + tokens })).toEqual(added)
          expect(sums({ total_tokens: prompt + output })).toEqual([prompt, output])
          const isOfCache = kind === 'cached' || kind === 'written'
          expect(sums({})).toEqual(isOfCache ? added : [prompt, output])
        }),
      )
    },
  )
})
