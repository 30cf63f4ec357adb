import {
  preferLaterUsage,
  readInclusiveUsage,
  type ReportedUsage,
  type UpstreamCounts,
} from '../reported-usage.ts'
import { openAiTierMember, type StatedService, statedTier, withStatedService } from '../service-tier.ts'
import { asRecord } from '../json/record.ts'
import { statedIndexOf } from './answer.ts'
import type { ReplyIdentity } from '../codec.ts'
import { promptTokens, type Usage, cacheWriteTokens } from '../usage.ts'

/** The usage that choices of a reply have stated of themselves, by their index. */
export type UsageOfChoices = Map<number, ReportedUsage>

/**
 * Finds the usage in a chunk or a reply: at the top level, in `x_groq`, in the choices, or in an
 * error. Returns the first usage that contains the output tokens, or the first one if none does. `ofChoices` has
 * what earlier chunks of the stream stated.
 */
export function usageInChatReply(
  reply: UpstreamCounts,
  ofChoices: UsageOfChoices = new Map(),
): ReportedUsage | undefined {
  let found: ReportedUsage | undefined
  for (const usage of [
    readInclusiveUsage(reply['usage']),
    readInclusiveUsage(asRecord(reply['x_groq'])?.['usage']),
    usageInChoices(reply['choices'], ofChoices),
    readInclusiveUsage(asRecord(reply['error'])?.['usage']),
  ]) {
    if (usage && !usage.outputIsUnknown) return withStatedService(usage, statedTier(reply['service_tier']))
    found ??= usage
  }
  return found && withStatedService(found, statedTier(reply['service_tier']))
}

/** As at Moonshot, where each choice ends with its own output and the prompt of all: the prompt counts once. */
function usageInChoices(choices: unknown, known: UsageOfChoices): ReportedUsage | undefined {
  if (!Array.isArray(choices)) return undefined
  const taken = new Set(choices.map((choice) => statedIndexOf(asRecord(choice))))
  let free = 0
  let isStated = false
  for (const value of choices) {
    const choice = asRecord(value)
    while (taken.has(free)) free++
    // Those without an index have the numbers that no other one states.
    const index = statedIndexOf(choice) ?? free++
    const usage = readInclusiveUsage(choice?.['usage'])
    if (!usage) continue
    known.set(index, preferLaterUsage(known.get(index), usage) ?? usage)
    isStated = true
  }
  if (!isStated) return undefined
  const all = [...known.values()]
  if (all.length === 1) return all[0]
  // A sum would hide which total is implausible, so none counts.
  return all.map(({ byTotal, ...usage }) => byTotal?.otherwise ?? usage).reduce(withOutputOf)
}

function withOutputOf(sum: ReportedUsage, one: ReportedUsage): ReportedUsage {
  return {
    ...sum,
    output: sum.output + one.output,
    reasoning: sum.reasoning + one.reasoning,
    audioOutput: sum.audioOutput + one.audioOutput,
    imageOutput: sum.imageOutput + one.imageOutput,
    ...(one.outputIsUnknown && { outputIsUnknown: true }),
  }
}

/** Writes usage with the fields that all chat providers have. The prompt tokens include cached tokens. */
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
 * Writes the service tier that the upstream has stated, as an object to spread. Empty for a messages
 * upstream; `docs/api.md: Chat completion response`.
 */
export function tierMember(
  served: StatedService | undefined,
  { upstream }: Pick<ReplyIdentity, 'upstream'>,
): { readonly service_tier?: string } {
  return upstream === 'messages' ? {} : openAiTierMember(served)
}

/**
 * Writes usage for a chat client if the upstream uses another protocol; `docs/api.md: Chat completion
 * response`. `usage_source` names the upstream's protocol if it is messages. Such an upstream does not count
 * each kind of input separately, so the whole prompt counts as text. `input_tokens` and `output_tokens`
 * include cached tokens as in chat, which `usage_semantic` states.
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
