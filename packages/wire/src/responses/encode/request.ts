import { WireError } from '../../wire-error.ts'
import { refuseSeveralChoices } from '../../reply.ts'
import type { DroppedFields, UpstreamModel } from '../../codec.ts'
import type {
  Conversation,
  CustomToolDefinition,
  MediaPart,
  OpaquePart,
  Part,
  TextPart,
  ThinkingPart,
  Tool,
  ToolResultPart,
  Turn,
  WebSearch,
} from '../../conversation.ts'
import { CACHE_BREAKPOINT_FIELD, writeBreakpoint } from '../../cache-marks.ts'
import { decodeCustomInput, searchSizeFor } from '../../openai-tools.ts'
import { jsonArrayOf, jsonMembersOf, type MemberText, renderObject } from '../../json/json-edit.ts'
import { withWordForJson } from '../../output-format.ts'
import { dropSeedAndPenalties } from '../../sampling.ts'
import { formatForServer, toolForServer } from '../../schemas/accepted-schemas.ts'
import { SchemaWork } from '../../schemas/schema-work.ts'
import { sharedMembers } from '../../shared-fields.ts'
import { isThinkingOff } from '../../thinking.ts'
import { isSystemText, withSystemTextsInTurns } from '../../system-texts-in-turns.ts'
import { inputOrEmpty } from '../../tool-input.ts'
import { reportDropped, INCLUDE_LOGPROBS } from '../dropped-fields.ts'
import { encodeOutputFormat } from '../output-format.ts'
import { searchItem } from '../search-item.ts'
import { encodeThinking } from '../thinking.ts'
import { encodeToolChoice } from '../tool-choice.ts'
import { audioFormat, dataUrl, fileName, textOfMedia } from '../../media-source.ts'

/** Value of `include` that requests the pages that a web search found. */
const SEARCH_PAGES = 'web_search_call.action.sources'

/** The maximum of output tokens sent for a conversation: the client's, or the lowest that the server accepts. */
export function maxTokensOf(
  { maxTokens }: Pick<Conversation, 'maxTokens'>,
  { server }: Pick<UpstreamModel, 'server'>,
): number | undefined {
  return maxTokens === undefined ? undefined : Math.max(maxTokens, server.minOutputTokens)
}

/**
 * Encodes a request. Storage is requested only if the client does. Reasoning is requested in encrypted form,
 * so that the client can send it back. Fields are written in a fixed order, so that equal conversations have
 * equal bytes and hit the upstream's cache. Throws `invalid_request` if this protocol cannot express
 * something that must not be dropped.
 */
export function encodeRequest(
  conversation: Conversation,
  upstream: UpstreamModel,
  dropped: DroppedFields,
): Buffer {
  const { name, capabilities } = upstream
  const maxTokens = maxTokensOf(conversation, upstream)
  if (maxTokens !== conversation.maxTokens) reportDropped(dropped, 'max_output_tokens')
  const { stop, thinking, topK, logprobs } = conversation
  refuseSeveralChoices(conversation)
  if (stop.length > 0) reportDropped(dropped, 'stop')
  if (topK !== undefined) reportDropped(dropped, 'top_k')
  dropSeedAndPenalties(conversation, dropped)
  const { instructions, input } = encodeItems(conversation, dropped)
  const reasoning = encodeThinking(thinking, capabilities, dropped)
  const requestsThoughts = reasoning !== undefined && thinking !== undefined && !isThinkingOff(thinking)
  const { store = 'false', ...others } = Object.fromEntries(sharedMembers(conversation))
  const { verbosity, ...rest } = others
  const include = [
    ...(requestsThoughts ? ['reasoning.encrypted_content'] : []),
    ...(logprobs ? [INCLUDE_LOGPROBS] : []),
    ...(conversation.webSearch?.listsPages ? [SEARCH_PAGES] : []),
  ]
  const work = new SchemaWork()
  const request = renderObject([
    ...jsonMembersOf({
      model: name,
      instructions,
      input,
      max_output_tokens: maxTokens,
      temperature: conversation.temperature,
      top_p: conversation.topP,
      stream: conversation.stream || undefined,
    }),
    ...encodeTools(conversation, upstream, work, dropped),
    ['text', encodeText(conversation, verbosity, upstream, work, dropped)],
    ...jsonMembersOf({
      reasoning,
      include: include.length > 0 ? include : undefined,
      top_logprobs: logprobs?.top,
    }),
    ['store', store],
    ...Object.entries(rest),
  ])
  return Buffer.from(request)
}

function encodeText(
  { outputFormat: format }: Conversation,
  verbosity: string | undefined,
  upstream: UpstreamModel,
  work: SchemaWork,
  dropped: DroppedFields,
): string | undefined {
  if (!format && verbosity === undefined) return undefined
  const accepted = format?.kind === 'json-schema' ? formatForServer(format, upstream, work, dropped) : format
  return renderObject([
    ['format', accepted && encodeOutputFormat(accepted)],
    ['verbosity', verbosity],
  ])
}

/**
 * Encodes the tools and the tool choice. Without tools, no tool choice is sent, because upstreams refuse it.
 */
function encodeTools(
  { tools, toolChoice, parallelTools, webSearch }: Conversation,
  upstream: UpstreamModel,
  work: SchemaWork,
  dropped: DroppedFields,
): MemberText[] {
  const accepted = tools.map((tool) => toolForServer(tool, upstream, work, dropped))
  const written = [
    ...accepted.map(encodeTool),
    ...(webSearch ? [JSON.stringify(encodeSearch(webSearch))] : []),
  ]
  if (tools.some(({ cache }) => cache)) reportDropped(dropped, 'cache_control')
  if (written.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') reportDropped(dropped, 'tool_choice')
    return []
  }
  return [
    ['tools', jsonArrayOf(written)],
    ...jsonMembersOf({
      tool_choice: webSearch?.isForced
        ? { type: 'web_search' }
        : toolChoice && encodeToolChoice(toolChoice, tools),
      parallel_tool_calls: parallelTools,
    }),
  ]
}

/**
 * Encodes a tool. `strict` is always written, because its default is true in this protocol, but not in
 * others.
 */
function encodeTool({ name, description, schema = 'null', strict = false, form }: Tool): string {
  if (form?.custom) return encodeCustom(name, form.custom)
  return renderObject([
    ...jsonMembersOf({ type: 'function', name, description }),
    ['parameters', schema],
    ...jsonMembersOf({ strict }),
  ])
}

function encodeSearch({ maxUses, location, domains }: WebSearch): object {
  return {
    type: 'web_search',
    search_context_size: searchSizeFor(maxUses),
    user_location: location && { type: 'approximate', ...location },
    filters: domains,
  }
}

function encodeCustom(name: string, { description, grammar }: CustomToolDefinition): string {
  const format = grammar && { type: 'grammar', ...grammar }
  return renderObject(jsonMembersOf({ type: 'custom', name, description, format }))
}

/** A conversation in the form of this protocol: instructions and input items. */
interface Items {
  /**
   * A single plain text. If there are several system texts, or one that may have cache marks, they become an
   * item of `input` instead. So they do beside `json_object`, for which servers require the word in `input`.
   */
  readonly instructions: string | undefined
  readonly input: readonly Written[]
}

/** Used instead of a user message if the conversation has none, because upstreams require one. */
const PLACEHOLDER: Written = { type: 'message', role: 'user', content: '...' }

/** Encodes the turns as items. Throws `invalid_request` if the conversation is empty after that. */
function encodeItems(requested: Conversation, dropped: DroppedFields): Items {
  const { system, turns, outputFormat } = withSystemTextsInTurns(withWordForJson(requested))
  const form = requested.listsContent ? listContent : plainContent
  const rules = { custom: customCalls(turns), form }
  const items = turns.flatMap((turn) =>
    turn.role === 'user' ? encodeUser(turn, rules, dropped) : encodeAssistant(turn, dropped),
  )
  if (items.length === 0 && turns.length > 0)
    throw new WireError(
      'invalid_request',
      `The conversation contains nothing that can be sent to this model.`,
    )
  const content = form(system.flatMap((part) => encodePart(part, dropped)))
  if (items.length === 0 && content === '') return { instructions: undefined, input: [PLACEHOLDER] }
  // Instructions without input are refused by upstreams.
  const canInstruct = items.length > 0 && outputFormat?.kind !== 'json-object'
  if (content === '' || (typeof content === 'string' && canInstruct))
    return { instructions: content === '' ? undefined : content, input: items }
  return { instructions: undefined, input: [{ type: 'message', role: 'system', content }, ...items] }
}

/** Ids of calls to custom tools. */
function customCalls(turns: readonly Turn[]): ReadonlySet<string> {
  const calls = turns.flatMap(({ parts }) => parts.filter((part) => part.kind === 'tool-call'))
  return new Set(calls.filter(({ isCustom }) => isCustom).map(({ id }) => id))
}

/** What determines how the parts of a user's turn are encoded. */
interface ItemRules {
  /** Ids of the calls of custom tools. */
  readonly custom: ReadonlySet<string>
  /** Renders the content of a message, or the output of a tool. */
  readonly form: ContentForm
}

/** Encodes a user's turn. Tool outputs become items of their own, before the other parts of the turn. */
function encodeUser({ parts }: Turn, rules: ItemRules, dropped: DroppedFields): Written[] {
  const results: Written[] = []
  const messages: Written[] = []
  let content: Written[] = []
  const endMessage = (): void => {
    if (content.length > 0) messages.push({ type: 'message', role: 'user', content: rules.form(content) })
    content = []
  }
  for (const part of parts) {
    if (part.kind === 'tool-result') results.push(encodeResult(part, rules, dropped))
    else if (isSystemText(part)) {
      endMessage()
      messages.push({ type: 'message', role: 'system', content: rules.form(encodePart(part, dropped)) })
    } else if (part.kind === 'text' || part.kind === 'media' || part.kind === 'opaque')
      content.push(...encodePart(part, dropped))
  }
  endMessage()
  const items = [...results, ...messages]
  // An empty turn is written too, because otherwise the conversation would end with a different turn, or be
  // empty.
  return items.length > 0 ? items : [{ type: 'message', role: 'user', content: '' }]
}

/**
 * Encodes an assistant's turn. Consecutive texts become one message; each other part becomes an item at its
 * position.
 */
function encodeAssistant({ parts }: Turn, dropped: DroppedFields): Written[] {
  const items: Written[] = []
  let texts: TextPart[] = []
  const endMessage = (): void => {
    if (texts.length > 0) items.push(assistantMessage(texts))
    texts = []
  }
  for (const part of parts) {
    if (part.kind === 'text') {
      texts.push(part)
      continue
    }
    const item = encodeOther(part, dropped)
    if (!item) continue
    endMessage()
    items.push(item)
  }
  endMessage()
  return items
}

function assistantMessage(texts: readonly TextPart[]): Written {
  const parts = texts.map(({ text }) => ({ type: 'output_text', text, annotations: [] }))
  return { type: 'message', role: 'assistant', content: plainContent(parts) }
}

function encodeOther(part: Exclude<Part, TextPart>, dropped: DroppedFields): Written | undefined {
  if (part.kind === 'tool-call' && part.cache) reportDropped(dropped, 'cache_control')
  switch (part.kind) {
    case 'thinking':
      return encodeThought(part, dropped)
    case 'tool-call':
      if (part.isCustom)
        return {
          type: 'custom_tool_call',
          call_id: part.id,
          name: part.name,
          input: decodeCustomInput(part.input),
        }
      return { type: 'function_call', call_id: part.id, name: part.name, arguments: inputOrEmpty(part.input) }
    case 'search':
      return searchItem(part)
    case 'opaque':
      if (part.protocol === 'responses') return part.value as Written
      reportDropped(dropped, 'content')
      return undefined
    case 'media':
    case 'tool-result':
      reportDropped(dropped, 'content')
      return undefined
  }
}

/**
 * Encodes a thought. Upstreams accept only thoughts that they encrypted themselves, so thoughts of other
 * providers are dropped.
 */
function encodeThought({ text, proof }: ThinkingPart, dropped: DroppedFields): Written | undefined {
  if (proof?.protocol !== 'responses') {
    reportDropped(dropped, 'reasoning_content')
    return undefined
  }
  const summary = text === '' ? [] : [{ type: 'summary_text', text }]
  return { type: 'reasoning', summary, encrypted_content: proof.value }
}

/** Encodes a tool result. This protocol cannot express that a tool failed. */
function encodeResult(
  { callId, parts, isError, cache }: ToolResultPart,
  { custom, form }: ItemRules,
  dropped: DroppedFields,
): Written {
  if (isError) reportDropped(dropped, 'is_error')
  const last = parts.at(-1)
  // If the result itself has a cache mark, its last part gets the mark.
  const canHold = last && last.kind !== 'opaque'
  if (cache && !canHold) reportDropped(dropped, 'cache_control')
  const marked = cache && canHold && !last.cache ? [...parts.slice(0, -1), { ...last, cache }] : parts
  const output = form(marked.flatMap((part) => encodePart(part, dropped)))
  const type = custom.has(callId) ? 'custom_tool_call_output' : 'function_call_output'
  return { type, call_id: callId, output }
}

/** An item, or a part of its content, as an object that is written as JSON. */
type Written = Readonly<Record<string, unknown>>

/**
 * Encodes a part of a user's message or of a tool's output; an empty list if this protocol cannot express it.
 */
function encodePart(part: TextPart | MediaPart | OpaquePart, dropped: DroppedFields): Written[] {
  switch (part.kind) {
    case 'text':
      return [{ type: 'input_text', text: part.text, ...writeBreakpoint(part.cache) }]
    case 'media':
      return [{ ...encodeMedia(part), ...writeBreakpoint(part.cache) }]
    case 'opaque':
      reportDropped(dropped, 'content')
      return []
  }
}

/** Renders content as a string or as a list of parts. Without parts it is an empty string. */
type ContentForm = (parts: readonly Written[]) => string | readonly Written[]

const listContent: ContentForm = (parts) => (parts.length === 0 ? '' : parts)

/** Renders content as a string if it is a single text without other properties. */
const plainContent: ContentForm = (parts) => {
  const [first, second] = parts
  if (!first) return ''
  const isPlain = second === undefined && 'text' in first && !(CACHE_BREAKPOINT_FIELD in first)
  return isPlain ? (first['text'] as string) : parts
}

/**
 * Whether media must be downloaded first. Images and documents can be sent as URLs; all others, and those of
 * unknown type, must be downloaded.
 */
export function mustFetchMedia({ source: { kind, mediaType = '' } }: MediaPart): boolean {
  return kind === 'url' && !/^(?:image|application)\//.test(mediaType)
}

function encodeMedia(part: MediaPart): Written {
  const { source, name, detail } = part
  if (mustFetchMedia(part))
    throw new WireError('invalid_request', 'A recording that is given by its URL could not be passed on.')
  const url = source.kind === 'url' ? source.url : dataUrl(source)
  if (source.mediaType?.startsWith('image/'))
    return { type: 'input_image', image_url: url, ...(detail !== undefined && { detail }) }
  if (source.kind === 'url') return { type: 'input_file', file_url: url }
  const format = audioFormat(source.mediaType)
  if (format) return { type: 'input_audio', input_audio: { data: source.data, format } }
  if (source.mediaType.startsWith('text/')) return { type: 'input_text', text: textOfMedia(source) }
  return { type: 'input_file', filename: fileName(source.mediaType, name), file_data: url }
}
