import { refuseChoices } from '../choices.ts'
import type { Dropped, UpstreamModel } from '../codec.ts'
import type { Conversation, OutputSchema, Tool, WebSearch } from '../conversation.ts'
import { arrayOf, type MemberText, membersOf, objectOf } from '../json/json-text.ts'
import { parseRecord } from '../json/record.ts'
import { dropLogprobs } from '../logprobs-asked.ts'
import { dropSeedAndPenalties } from '../seed-and-penalties.ts'
import { dropSharedFields } from '../shared-fields.ts'
import { writeCache } from './cache-mark.ts'
import { STANDARD_TIER } from './end-user.ts'
import { drop } from './dropped-fields.ts'
import { encodeOutputFormat, withSupportedFormat } from './output-format.ts'
import { encodePart } from './encode-part.ts'
import { isBlank, encodableTurns } from './encodable-turns.ts'
import { encodeSampling } from './thinking.ts'

/** Version of the web search tool; `docs/api.md: Chat completions`, translations. */
const WEB_SEARCH = { type: 'web_search_20250305', name: 'web_search' } as const

/**
 * Encodes a conversation as a messages request. The order of fields is fixed, so that equal conversations
 * give equal bytes, which hit the upstream's cache. Throws `invalid_request` if messages cannot express
 * something that must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  { name: upstreamModel, capabilities }: UpstreamModel,
  dropped: Dropped,
): Buffer {
  dropSharedFields(requested, dropped, { keepsEndUser: true })
  dropLogprobs(requested, dropped)
  if (requested.choices?.field === 'n') drop(dropped, 'n')
  else refuseChoices(requested)
  dropSeedAndPenalties(requested, dropped)
  const conversation = withSupportedFormat(requested, capabilities, dropped)
  const turns = encodableTurns(conversation.turns, dropped)
  const sampled = encodeSampling(conversation, capabilities, turns, dropped)
  const { max_tokens, thinking, output_config, ...sampling } = sampled
  const system = conversation.system.filter((part) => !isBlank(part))
  const messages = turns.map(
    ({ role, parts }) => `{"role":"${role}","content":${arrayOf(parts.map(encodePart))}}`,
  )
  const body = objectOf([
    ['model', JSON.stringify(upstreamModel)],
    ['max_tokens', String(max_tokens)],
    ['system', system.length > 0 ? arrayOf(system.map(encodePart)) : undefined],
    ['messages', arrayOf(messages)],
    ...encodeTools(conversation, dropped),
    ...membersOf({ thinking }),
    ['output_config', encodeOutputConfig(output_config, conversation.outputFormat)],
    ...membersOf({
      ...sampling,
      stop_sequences: encodeStop(conversation.stop, dropped),
      stream: conversation.stream || undefined,
      metadata: conversation.endUser && { user_id: conversation.endUser.id },
      service_tier: conversation.isStandardTier && STANDARD_TIER,
    }),
  ])
  return Buffer.from(body)
}

function encodeOutputConfig(
  config: object | undefined,
  format: OutputSchema | undefined,
): string | undefined {
  if (!config && !format) return undefined
  return objectOf([...membersOf(config ?? {}), ['format', format && encodeOutputFormat(format)]])
}

function encodeTools(conversation: Conversation, dropped: Dropped): MemberText[] {
  const { webSearch, toolChoice, parallelTools } = conversation
  const tools = [
    ...conversation.tools.map(encodeTool),
    ...(webSearch ? [JSON.stringify(encodeSearch(webSearch))] : []),
  ]
  if (tools.length > 0)
    return [['tools', arrayOf(tools)], ...membersOf({ tool_choice: encodeChoice(conversation) })]
  // Upstreams refuse a tool choice without tools.
  if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') drop(dropped, 'tool_choice')
  if (parallelTools !== undefined) drop(dropped, 'parallel_tool_calls')
  return []
}

function encodeTool({ name, description, schema = '{}', strict, cache }: Tool): string {
  return objectOf([
    ...membersOf({ name, description }),
    ['input_schema', withType(schema)],
    ...membersOf({ strict, ...writeCache(cache) }),
  ])
}

/** Adds `type` at the root of a schema, because upstreams require it. */
function withType(schema: string): string {
  const given = parseRecord(schema) ?? {}
  if (Object.hasOwn(given, 'type')) return schema
  const added = ['"type":"object"', ...(Object.hasOwn(given, 'properties') ? [] : ['"properties":{}'])]
  const rest = schema.slice(1)
  return `{${added.join(',')}${Object.keys(given).length > 0 ? ',' : ''}${rest}`
}

function encodeSearch({ maxUses, location }: WebSearch): object {
  return {
    ...WEB_SEARCH,
    max_uses: maxUses,
    user_location: location && { type: 'approximate', ...location },
  }
}

/**
 * Encodes the tool choice; undefined for the dialect's default. With the choice `none`, `parallelTools` is
 * dropped.
 */
function encodeChoice({ toolChoice, parallelTools }: Conversation): object | undefined {
  if (!toolChoice && parallelTools === undefined) return undefined
  const kind = toolChoice?.kind ?? 'auto'
  return {
    type: kind,
    ...(toolChoice?.kind === 'tool' && { name: toolChoice.name }),
    ...(parallelTools === false && kind !== 'none' && { disable_parallel_tool_use: true }),
  }
}

/** Encodes stop sequences, except for blank ones, which upstreams refuse. */
function encodeStop(stop: readonly string[], dropped: Dropped): readonly string[] | undefined {
  const visible = stop.filter((sequence) => sequence.trim() !== '')
  if (visible.length < stop.length) drop(dropped, 'stop')
  return visible.length > 0 ? visible : undefined
}
