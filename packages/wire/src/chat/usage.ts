import { type Counts, readInclusiveUsage, type ReportedUsage } from '../reported-usage.ts'
import { servedTier, withServed } from '../service-tier.ts'
import { asRecord } from '../json/record.ts'
import type { ReplyIdentity } from '../codec.ts'
import { promptTokens, type Usage, cacheWriteTokens } from '../usage.ts'

/**
 * Finds the usage of a chunk or a reply: at the top level, under another name there, in a choice, or in an
 * error. If there are several, the first one with output tokens counts, or else the first one.
 */
export function usageOf(reply: Counts): ReportedUsage | undefined {
  const choices = reply['choices']
  let found: ReportedUsage | undefined
  for (const holder of [
    reply,
    asRecord(reply['x_groq']),
    Array.isArray(choices) ? asRecord(choices[0]) : undefined,
    asRecord(reply['error']),
  ]) {
    const usage = readInclusiveUsage(holder?.['usage'])
    if (usage && !usage.outputIsUnknown) return withServed(usage, servedTier(reply['service_tier']))
    found ??= usage
  }
  return found && withServed(found, servedTier(reply['service_tier']))
}

/** Renders the usage fields that every chat provider has; cached tokens are included in the prompt. */
export function writeUsageCounts(usage: Usage): object {
  const prompt = promptTokens(usage)
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

/**
 * Renders usage for a chat client if the upstream has another dialect; `docs/api.md: Chat completion
 * response`. `usage_source` is set if that dialect is messages. Such an upstream does not distinguish kinds
 * of input, so the whole prompt counts as text. As in chat, `input_tokens` and `output_tokens` include cached
 * tokens, which `usage_semantic` states.
 */
export function writeUsage(usage: Usage, { upstream }: Pick<ReplyIdentity, 'upstream'>): object {
  const { cacheRead, cacheWrite5m, cacheWrite1h, cacheWrite30m, cacheWrite12h, output, reasoning } = usage
  const prompt = promptTokens(usage)
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cacheRead,
      cached_creation_tokens: cacheWriteTokens(usage),
      ...(cacheWrite30m + cacheWrite12h > 0 && {
        cache_write_tokens_details: { ttl_30m_tokens: cacheWrite30m, ttl_12h_tokens: cacheWrite12h },
      }),
      text_tokens: prompt,
      audio_tokens: 0,
      image_tokens: 0,
    },
    completion_tokens_details: {
      text_tokens: output - reasoning,
      audio_tokens: 0,
      image_tokens: 0,
      reasoning_tokens: reasoning,
    },
    prompt_cache_hit_tokens: cacheRead,
    input_tokens: prompt,
    output_tokens: output,
    claude_cache_creation_5m_tokens: cacheWrite5m,
    claude_cache_creation_1h_tokens: cacheWrite1h,
    usage_semantic: 'compat',
    ...(upstream === 'messages' && { usage_source: 'vendor' }),
  }
}
