import { type Fields, asFields, asNumber, asString } from '../fields.ts'

/** Tokens that a provider bills for a line at the tier `batch`, in the same terms for all protocols. */
export interface BilledTokens {
  /** All tokens of the prompt, with those that were read from a cache or written to one. */
  readonly input: number
  readonly cached: number
  readonly written: number
  /** All tokens that were generated, with those of thoughts. */
  readonly output: number
  readonly reasoning: number
}

export const NO_TOKENS: BilledTokens = { input: 0, cached: 0, written: 0, output: 0, reasoning: 0 }

export function sumOf(one: BilledTokens, other: BilledTokens): BilledTokens {
  return {
    input: one.input + other.input,
    cached: one.cached + other.cached,
    written: one.written + other.written,
    output: one.output + other.output,
    reasoning: one.reasoning + other.reasoning,
  }
}

/** Reads what an answer states in its usage. */
export function billedTokens(answer: Fields): BilledTokens {
  const usage = asFields(answer.usage ?? answer.usageMetadata)
  const count = (name: string, within: Fields = usage): number => asNumber(within[name]) ?? 0
  if (answer.usageMetadata !== undefined) {
    const reasoning = count('thoughtsTokenCount')
    return {
      input: count('promptTokenCount'),
      cached: count('cachedContentTokenCount'),
      written: 0,
      output: count('candidatesTokenCount') + reasoning,
      reasoning,
    }
  }
  if (asString(answer.type) === 'message') {
    const cached = count('cache_read_input_tokens')
    const written = count('cache_creation_input_tokens')
    return {
      input: count('input_tokens') + cached + written,
      cached,
      written,
      output: count('output_tokens'),
      reasoning: count('thinking_tokens', asFields(usage.output_tokens_details)),
    }
  }
  const isResponse = answer.object === 'response'
  const input = asFields(isResponse ? usage.input_tokens_details : usage.prompt_tokens_details)
  const output = asFields(isResponse ? usage.output_tokens_details : usage.completion_tokens_details)
  return {
    input: count(isResponse ? 'input_tokens' : 'prompt_tokens'),
    cached: count('cached_tokens', input),
    written: count('cache_write_tokens', input),
    output: count(isResponse ? 'output_tokens' : 'completion_tokens'),
    reasoning: count('reasoning_tokens', output),
  }
}
