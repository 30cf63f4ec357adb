import { promptTokens, type Usage } from '../usage.ts'

/** Renders usage. Counts of 0 are omitted, as the provider does, except for those that clients add up. */
export function usageOut(usage: Usage): object {
  const { cacheRead, output, reasoning } = usage
  const prompt = promptTokens(usage)
  const thoughts = Math.min(reasoning, output)
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output - thoughts,
    totalTokenCount: prompt + output,
    ...(cacheRead > 0 && { cachedContentTokenCount: cacheRead }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
  }
}
