import { z } from 'zod'
import { CALL_NOTES } from '../../domain/call-note.ts'
import { promptTokens, type Usage } from '../../domain/usage.ts'
import type { UsageEntry } from '../../domain/usage-entry.ts'

/** The usage fields of a row and of a sum of rows. */
const counted = {
  quota: z.int(),
  prompt_tokens: z
    .int()
    .meta({ description: 'All input, including tokens read from and written to a cache' }),
  completion_tokens: z.int(),
  cached_tokens: z.int(),
  cache_write_5m_tokens: z.int(),
  cache_write_1h_tokens: z.int(),
  reasoning_tokens: z.int().meta({ description: 'The part of completion_tokens that was reasoning' }),
  web_searches: z.int(),
  audio_input_tokens: z.int().meta({ description: 'The part of prompt_tokens that was audio' }),
  image_input_tokens: z.int().meta({ description: 'The part of prompt_tokens that was images' }),
  audio_output_tokens: z.int().meta({ description: 'The part of completion_tokens that was audio' }),
  image_output_tokens: z.int().meta({ description: 'The part of completion_tokens that was images' }),
  seconds: z.int().meta({ description: 'Seconds of audio that was transcribed or spoken' }),
  characters: z.int().meta({ description: 'Characters that were spoken' }),
  images: z.int().meta({ description: 'Images that were returned' }),
  search_units: z.int().meta({ description: 'Search units of rerank calls' }),
}

/** A row of the usage log in responses to its user; `docs/api.md: Usage log`. */
export const ownUsageSchema = z.object({
  id: z.string(),
  request_id: z.string(),
  created_at: z.int().meta({ description: 'Unix seconds of the end of the call' }),
  type: z.literal(2),
  user_id: z.int(),
  username: z.string(),
  token_id: z.int(),
  token_name: z.string(),
  model_name: z.string(),
  requested_model: z.string().meta({
    description:
      'The model that the client requested, where a fallback may have answered; empty in the estimate for a lost node',
  }),
  group: z.string(),
  ...counted,
  use_time: z.int().meta({ description: 'Seconds' }),
  duration_ms: z.int(),
  first_byte_ms: z.int().nullable(),
  is_stream: z.boolean(),
  reason: z.string(),
  price_version: z.string(),
  price_incomplete: z
    .boolean()
    .meta({ description: 'The request offered a tool that no price is known for' }),
  note: z.enum(['', ...CALL_NOTES]).meta({
    description:
      'cut_arguments: the provider reported a proper end, but the arguments of a tool call were cut off; else empty',
  }),
  kind: z.string().meta({ description: 'The endpoint; empty in the estimate for a lost node' }),
})

/** A row in responses to an admin, with the channel and the upstream's model. */
export const usageSchema = ownUsageSchema.extend({ channel: z.string(), upstream_model: z.string() })

/** Sums over the usage log; `docs/api.md: Usage log`. */
export const usageStatSchema = z.object({
  ...counted,
  requests: z.int().meta({ description: 'Calls that got a response' }),
  rpm: z.int().meta({ description: 'Of these, in the last minute' }),
  tpm: z.int().meta({ description: 'Tokens of the last minute' }),
})

/** Converts a row for its user. */
export function ownUsageObject(entry: UsageEntry): z.output<typeof ownUsageSchema> {
  return {
    id: entry.id,
    request_id: entry.id,
    created_at: Math.floor(entry.ended_ms / 1000),
    type: 2,
    user_id: entry.user_id,
    username: entry.username,
    token_id: entry.token_id,
    token_name: entry.token_name,
    model_name: entry.model,
    requested_model: entry.requested_model,
    group: entry.group,
    quota: entry.quota,
    ...countsObject(entry.usage),
    use_time: Math.round(entry.duration_ms / 1000),
    duration_ms: entry.duration_ms,
    first_byte_ms: entry.first_byte_ms,
    is_stream: entry.stream,
    reason: entry.reason,
    price_version: entry.price_version,
    price_incomplete: entry.price_incomplete,
    note: entry.note,
    kind: entry.kind,
  }
}

/** Converts a row for an admin. */
export function usageObject(entry: UsageEntry): z.output<typeof usageSchema> {
  return { ...ownUsageObject(entry), channel: entry.channel, upstream_model: entry.upstream_model }
}

/** Converts usage to the fields of responses. */
export function countsObject(usage: Usage) {
  return {
    prompt_tokens: promptTokens(usage),
    completion_tokens: usage.output,
    cached_tokens: usage.cacheRead,
    cache_write_5m_tokens: usage.cacheWrite5m,
    cache_write_1h_tokens: usage.cacheWrite1h,
    reasoning_tokens: usage.reasoning,
    web_searches: usage.webSearches,
    audio_input_tokens: usage.audioInput,
    image_input_tokens: usage.imageInput,
    audio_output_tokens: usage.audioOutput,
    image_output_tokens: usage.imageOutput,
    seconds: usage.seconds,
    characters: usage.characters,
    images: usage.images,
    search_units: usage.searchUnits,
  }
}
