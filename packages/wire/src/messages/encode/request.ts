import { refuseSeveralChoices } from '../../reply.ts'
import type { DroppedFields, UpstreamModel } from '../../codec.ts'
import type {
  Conversation,
  MediaPart,
  OutputSchema,
  Part,
  SearchPart,
  Tool,
  ToolResultPart,
  WebSearch,
} from '../../conversation.ts'
import { jsonArrayOf, jsonMembersOf, type MemberText, renderObject } from '../../json/json-edit.ts'
import { parseRecord } from '../../json/record.ts'
import { dropLogprobs } from '../../logprobs.ts'
import { isTextFile, textOfMedia } from '../../media-source.ts'
import { dropSeedAndPenalties } from '../../sampling.ts'
import { toolForClaude } from '../../schemas/accepted-schemas.ts'
import { EnforcedSchemas } from '../../schemas/closed-schema.ts'
import { dropSharedFields } from '../../shared-fields.ts'
import { historyInput } from '../../tool-input.ts'
import { FORCED_SEARCH } from '../../web-search.ts'
import { writeCacheMark } from '../cache-mark.ts'
import { reportDropped } from '../dropped-fields.ts'
import { isBlankText, withEncodableTurns } from './turns.ts'
import { STANDARD_TIER } from '../end-user.ts'
import { encodeOutputFormat, withSupportedFormat } from '../output-format.ts'
import { encodeSampling } from './thinking.ts'

/** The version of the web search tool that upstreams get; `docs/api.md: Chat completions`, translations. */
const WEB_SEARCH = { type: 'web_search_20250305', name: 'web_search' } as const

const TIER = 'service_tier'

/**
 * Encodes a conversation as a messages request. Fields are written in a fixed order, so that equal
 * conversations have equal bytes and hit the upstream's cache. Throws `invalid_request` if this protocol
 * cannot express something that must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  { name: upstreamModel, capabilities }: UpstreamModel,
  dropped: DroppedFields,
): Buffer {
  const tier = requested.takesAnyTier ? requested.shared?.get(TIER) : undefined
  dropSharedFields(requested, dropped, { keepsEndUser: true, keepsTier: tier !== undefined })
  dropLogprobs(requested, dropped)
  if (requested.choices?.field === 'n') reportDropped(dropped, 'n')
  else refuseSeveralChoices(requested)
  dropSeedAndPenalties(requested, dropped)
  const enforced = new EnforcedSchemas()
  const encodable = withEncodableTurns(requested, capabilities, dropped)
  const { turns } = encodable
  const conversation = withSupportedFormat(encodable, capabilities, enforced, dropped)
  const sampled = encodeSampling(conversation, capabilities, turns, dropped)
  const { max_tokens, thinking, output_config, ...sampling } = sampled
  const system = conversation.system.filter((part) => !isBlankText(part))
  const messages = turns.map(
    ({ role, parts }) => `{"role":"${role}","content":${jsonArrayOf(parts.map(encodePart))}}`,
  )
  const body = renderObject([
    ['model', JSON.stringify(upstreamModel)],
    ['max_tokens', String(max_tokens)],
    ['system', system.length > 0 ? jsonArrayOf(system.map(encodePart)) : undefined],
    ['messages', jsonArrayOf(messages)],
    ...encodeTools(conversation, enforced, dropped),
    ...jsonMembersOf({ thinking }),
    ['output_config', encodeOutputConfig(output_config, conversation.outputFormat)],
    ...jsonMembersOf({
      ...sampling,
      stop_sequences: encodeStop(conversation.stop, dropped),
      stream: conversation.stream || undefined,
      metadata: conversation.endUser && { user_id: conversation.endUser.id },
      service_tier: conversation.isStandardTier && STANDARD_TIER,
    }),
    [TIER, tier],
  ])
  return Buffer.from(body)
}

function encodeOutputConfig(
  config: object | undefined,
  format: OutputSchema | undefined,
): string | undefined {
  if (!config && !format) return undefined
  return renderObject([...jsonMembersOf(config ?? {}), ['format', format && encodeOutputFormat(format)]])
}

function encodeTools(
  conversation: Conversation,
  enforced: EnforcedSchemas,
  dropped: DroppedFields,
): MemberText[] {
  const { webSearch, toolChoice, parallelTools } = conversation
  const tools = [
    ...conversation.tools.map((tool) => encodeTool(toolForClaude(tool, withType, enforced, dropped))),
    ...(webSearch ? [JSON.stringify(encodeSearch(webSearch, dropped))] : []),
  ]
  if (tools.length > 0)
    return [['tools', jsonArrayOf(tools)], ...jsonMembersOf({ tool_choice: encodeChoice(conversation) })]
  // A tool choice without tools is refused by upstreams.
  if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') reportDropped(dropped, 'tool_choice')
  if (parallelTools !== undefined) reportDropped(dropped, 'parallel_tool_calls')
  return []
}

function encodeTool({ name, description, schema, strict, cache }: Tool): string {
  return renderObject([
    ...jsonMembersOf({ name, description }),
    ['input_schema', schema],
    ...jsonMembersOf({ strict, ...writeCacheMark(cache) }),
  ])
}

/** Adds `type` to the root of a schema without it, because upstreams require it. */
function withType(schema: string): string {
  const given = parseRecord(schema) ?? {}
  if (Object.hasOwn(given, 'type')) return schema
  const added = ['"type":"object"', ...(Object.hasOwn(given, 'properties') ? [] : ['"properties":{}'])]
  const rest = schema.slice(1)
  return `{${added.join(',')}${Object.keys(given).length > 0 ? ',' : ''}${rest}`
}

function encodeSearch({ maxUses, location, domains = {} }: WebSearch, dropped: DroppedFields): object {
  const { allowed_domains, blocked_domains } = domains
  // Both lists in one request are refused.
  if (allowed_domains && blocked_domains) reportDropped(dropped, 'web_search')
  return {
    ...WEB_SEARCH,
    max_uses: maxUses,
    user_location: location && { type: 'approximate', ...location },
    ...(allowed_domains ? { allowed_domains } : { blocked_domains }),
  }
}

/**
 * Encodes the tool choice; undefined for the default. With the choice `none`, `parallelTools` is not sent.
 */
function encodeChoice({ toolChoice, parallelTools, webSearch }: Conversation): object | undefined {
  const serial = { disable_parallel_tool_use: true }
  if (webSearch?.isForced) return { ...FORCED_SEARCH, ...(parallelTools === false && serial) }
  if (!toolChoice && parallelTools === undefined) return undefined
  const kind = toolChoice?.kind ?? 'auto'
  return {
    type: kind,
    ...(toolChoice?.kind === 'tool' && { name: toolChoice.name }),
    ...(parallelTools === false && kind !== 'none' && serial),
  }
}

/** Encodes stop sequences. Those that are only white space are dropped, because upstreams refuse them. */
function encodeStop(stop: readonly string[], dropped: DroppedFields): readonly string[] | undefined {
  const visible = stop.filter((sequence) => sequence.trim() !== '')
  if (visible.length < stop.length) reportDropped(dropped, 'stop')
  return visible.length > 0 ? visible : undefined
}

const DEFAULT_DOCUMENT = 'application/pdf'

/**
 * Encodes a part as the JSON text of its block. A tool's input is the text that the model wrote.
 */
function encodePart(part: Exclude<Part, SearchPart>): string {
  switch (part.kind) {
    case 'text':
      return JSON.stringify({ type: 'text', text: part.text, ...writeCacheMark(part.cache) })
    case 'media':
      return encodeMedia(part)
    case 'thinking':
      return JSON.stringify({ type: 'thinking', thinking: part.text, signature: part.proof?.value ?? '' })
    case 'tool-call': {
      const head = JSON.stringify({ type: 'tool_use', id: part.id, name: part.name })
      return joined(head, `"input":${historyInput(part.input)}`, writeCacheMark(part.cache))
    }
    case 'tool-result':
      return encodeResult(part)
    case 'opaque':
      return JSON.stringify(part.value)
  }
}

function encodeResult({ callId, parts, isError, cache }: ToolResultPart): string {
  const head = JSON.stringify({ type: 'tool_result', tool_use_id: callId })
  const [first] = parts
  const isPlain = parts.length === 1 && first?.kind === 'text' && !first.cache
  const content = isPlain ? JSON.stringify(first.text) : `[${parts.map(encodePart).join(',')}]`
  return joined(head, parts.length > 0 ? `"content":${content}` : undefined, {
    ...(isError && { is_error: true }),
    ...writeCacheMark(cache),
  })
}

/** Encodes media: an image as an image, a file of text as text, and everything else as a document of its type. */
function encodeMedia({ source, name, cache }: MediaPart): string {
  const { mediaType } = source
  const isText = source.kind === 'inline' && isTextFile(source, name)
  const isImage = !isText && (mediaType?.startsWith('image/') ?? source.kind === 'url')
  return JSON.stringify({
    type: isImage ? 'image' : 'document',
    source: isText ? encodeText(source) : encodeSource(source),
    ...(!isImage && name !== undefined && { title: name }),
    ...writeCacheMark(cache),
  })
}

type InlineMedia = Extract<MediaPart['source'], { kind: 'inline' }>

function encodeSource(source: MediaPart['source']): object {
  if (source.kind === 'url') return { type: 'url', url: source.url }
  return { type: 'base64', media_type: source.mediaType || DEFAULT_DOCUMENT, data: source.data }
}

/** Encodes a file of text. Anthropic takes texts of any kind, but only as plain text. */
function encodeText(source: InlineMedia): object {
  return { type: 'text', media_type: 'text/plain', data: textOfMedia(source) }
}

/** Adds members to the JSON text of an object. `member` is given as JSON text, `more` as values. */
function joined(object: string, member: string | undefined, more: object): string {
  const rest = JSON.stringify(more).slice(1, -1)
  return (
    [object.slice(0, -1), member, rest].filter((text) => text !== undefined && text !== '').join(',') + '}'
  )
}
