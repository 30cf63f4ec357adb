import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE, promptTokens } from './usage.ts'
import { count, detail, reportedUsage } from '../../../test/generators/reported-usage.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { StreamUsage } from './gemini/usage.ts'
import { readInclusiveUsage, type ReportedUsage, withCredibleTotal } from './reported-usage.ts'

/**
 * Gemini's reports with the same meaning, except for audio and written cache tokens, which it does not
 * report.
 */
const reportedByGemini = fc
  .record({ prompt: count, output: count, thoughts: count, tools: count, cached: count, total: detail })
  .map(({ prompt, output, thoughts, tools, cached, total }) => ({
    promptTokenCount: prompt,
    candidatesTokenCount: output,
    thoughtsTokenCount: thoughts,
    toolUsePromptTokenCount: tools,
    cachedContentTokenCount: cached,
    totalTokenCount: total,
  }))

function geminiUsage(usageMetadata: object): ReportedUsage | undefined {
  const stream = new StreamUsage()
  stream.read({ usageMetadata })
  return stream.usage
}

/** Checks the rule of the total for a report with these sums and this maximum of output. */
function checkTotal(
  reported: ReportedUsage,
  stated: { readonly prompt: number; readonly output: number; readonly total: unknown },
  maximum: number,
): void {
  const { prompt, output, total } = stated
  const kept = withCredibleTotal(reported, maximum)
  if (!kept) return expect(prompt + output).toBe(0)
  const charged = promptTokens(kept) + kept.output
  const least = prompt + output
  const hasTotal = typeof total === 'number' && Number.isInteger(total) && total <= 1_000_000_000
  if (!hasTotal || total <= least) return expect(charged).toBe(least)
  expect([least, total]).toContain(charged)
  // Tokens that no detail explains never raise the output above the maximum.
  const unexplained = reported.byTotal ? reported.byTotal.output - output : 0
  expect(charged).toBe(unexplained === 0 || output + unexplained <= maximum ? total : least)
  // Even if no detail explained anything, all of it would fit.
  if (total - prompt <= maximum) expect(charged).toBe(total)
  expect(unexplained).toBeLessThanOrEqual(total - least)
}

describe('a plausible total', () => {
  const maximum = fc.oneof(fc.nat(20), fc.constantFrom(65_536, 1_000_000_000))

  test('total_tokens is believed if what it has beyond the other counts fits into the output maximum, and ignored otherwise', () => {
    fc.assert(
      fc.property(reportedUsage, maximum, (said, most) => {
        const usage = readInclusiveUsage(said)
        if (!usage) throw new Error('it was discarded')
        const { prompt_tokens: stated, completion_tokens: output, total_tokens: total } = said
        // Without a total, cached tokens that exceed the prompt are beside it.
        const isBeside = total === null || total === undefined
        const prompt = isBeside ? Math.max(stated, promptTokens(usage)) : stated
        checkTotal(usage, { prompt, output, total }, most)
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  test("Gemini's totalTokenCount is believed if it fits into the output maximum, like OpenAI's total_tokens", () => {
    fc.assert(
      fc.property(reportedByGemini, maximum, (said, most) => {
        const usage = geminiUsage(said)
        const output = said.candidatesTokenCount + said.thoughtsTokenCount
        const prompt = said.promptTokenCount + said.toolUsePromptTokenCount
        if (!usage || usage.outputIsUnknown) return
        checkTotal(usage, { prompt, output, total: said.totalTokenCount }, most)
      }),
      { numRuns: lawRuns(2000) },
    )
  })

  test('total_tokens is believed if it exceeds prompt and completion by exactly one detail: reasoning or cached tokens', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(100), fc.integer({ min: 1, max: 300 }), (prompt, output, more) => {
        const said = {
          prompt_tokens: prompt,
          completion_tokens: output,
          total_tokens: prompt + output + more,
        }
        const cached = { prompt_tokens_details: { cached_tokens: more } }
        const thought = { completion_tokens_details: { reasoning_tokens: more } }
        const kept = (details: object): object =>
          withCredibleTotal(readInclusiveUsage({ ...said, ...details }) ?? NO_USAGE, 0) ?? NO_USAGE
        expect(kept(cached)).toMatchObject({ input: prompt, cacheRead: more, output })
        expect(kept(thought)).toMatchObject({ input: prompt, output: output + more, reasoning: more })
        const both = kept({ ...cached, ...thought })
        const isCached = more > prompt && more <= output
        expect(both).toMatchObject(
          isCached ? { input: prompt, cacheRead: more, output } : { output: output + more, reasoning: more },
        )
        const gemini = { promptTokenCount: prompt, candidatesTokenCount: output + 1 }
        expect(
          withCredibleTotal(
            geminiUsage({
              ...gemini,
              cachedContentTokenCount: more,
              totalTokenCount: prompt + output + 1 + more,
            }) ?? NO_USAGE,
            0,
          ),
        ).toMatchObject({ input: prompt, cacheRead: more, output: output + 1 })
      }),
      { numRuns: lawRuns(500) },
    )
  })
})
