import { promptTokens, type Usage, writtenTokens } from '../../domain/usage.ts'

/** Usage as this wire has it: cached tokens, read and written, are part of the input. */
export function usageOut(usage: Usage): object {
  const input = promptTokens(usage)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead,
      cache_write_tokens: writtenTokens(usage),
    },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  }
}
