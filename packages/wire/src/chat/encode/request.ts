import { WireError } from '../../wire-error.ts'
import type { DroppedFields, UpstreamModel } from '../../codec.ts'
import type {
  Conversation,
  MediaPart,
  OpaquePart,
  Part,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../conversation.ts'
import { jsonArrayOf, jsonMembersOf, type MemberText, renderObject } from '../../json/json-edit.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import type { ServerRules } from '../../server-rules.ts'
import { sharedMembers } from '../../shared-fields.ts'
import { toolForServer } from '../../schemas/accepted-schemas.ts'
import { SchemaWork } from '../../schemas/schema-work.ts'
import { isSystemText, withSystemTextsInTurns } from '../../system-texts-in-turns.ts'
import { inputOrEmpty } from '../../tool-input.ts'
import { writeCacheDirective, hasCacheMark } from '../cache-control.ts'
import { reportDropped } from '../dropped-fields.ts'
import { encodeOutputFormat, withSupportedFormat } from '../output-format.ts'
import {
  callSignature,
  detailsIn,
  googleSignatureMembers,
  takesCallSignatures,
} from '../reasoning-details.ts'
import { encodeEffort } from '../thinking.ts'
import { supportsWebSearch, encodeTool, encodeToolChoice, encodeWebSearch } from '../tools.ts'
import { dropSearchRules } from '../../web-search.ts'
import { audioFormat, dataUrl, fileName, textOfMedia } from '../../media-source.ts'

/** Maximum number of stop sequences that are sent; `docs/api.md: Limits`, stop sequences. */
const MAX_STOPS = 4

/**
 * Encodes a conversation as a chat request. Usage is requested with every stream, because the gateway charges
 * by it. Fields are written in a fixed order, so that equal conversations have equal bytes and hit the
 * upstream's cache. Throws `invalid_request` if chat cannot express something that must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  upstream: UpstreamModel,
  dropped: DroppedFields,
): Buffer {
  const { name, capabilities, server } = upstream
  const work = new SchemaWork()
  const conversation = withSupportedFormat(requested, upstream, work, dropped)
  const { stream, stop, outputFormat, webSearch, topK, logprobs } = conversation
  if (stop.length > MAX_STOPS)
    throw new WireError('invalid_request', `This model takes at most ${MAX_STOPS} stop sequences.`)
  if (topK !== undefined) reportDropped(dropped, 'top_k')
  dropSearchRules(webSearch, dropped)
  const search = webSearch?.isOptional && !supportsWebSearch(name) ? undefined : webSearch
  if (webSearch && !search) reportDropped(dropped, 'tools.web_search')
  const request = renderObject([
    ...jsonMembersOf({
      model: name,
      messages: encodeMessages(
        conversation,
        { ...capabilities, ...server, signsCalls: takesCallSignatures(name) },
        dropped,
      ),
      [capabilities.maximumField]: conversation.maxTokens,
      temperature: conversation.temperature,
      top_p: conversation.topP,
      seed: conversation.seed,
      presence_penalty: conversation.presencePenalty,
      frequency_penalty: conversation.frequencyPenalty,
      stop: stop.length > 0 ? stop : undefined,
      n: conversation.choices?.count,
      stream: stream || undefined,
      stream_options: stream ? { include_usage: true } : undefined,
    }),
    ...encodeTools(conversation, upstream, work, dropped),
    ['response_format', outputFormat && encodeOutputFormat(outputFormat)],
    ...jsonMembersOf({
      reasoning_effort: encodeEffort(conversation, capabilities, dropped),
      web_search_options: search && encodeWebSearch(search),
      logprobs: logprobs && true,
      top_logprobs: logprobs?.top,
    }),
    ...sharedMembers(conversation),
  ])
  return Buffer.from(request)
}

/** Encodes the tools. Without tools the tool choice is not sent either, because upstreams would refuse it. */
function encodeTools(
  { tools, toolChoice, parallelTools }: Conversation,
  upstream: UpstreamModel,
  work: SchemaWork,
  dropped: DroppedFields,
): MemberText[] {
  if (tools.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') reportDropped(dropped, 'tool_choice')
    return []
  }
  return [
    ['tools', jsonArrayOf(tools.map((tool) => encodeTool(toolForServer(tool, upstream, work, dropped))))],
    ...jsonMembersOf({
      tool_choice: toolChoice && encodeToolChoice(toolChoice),
      parallel_tool_calls: parallelTools,
    }),
  ]
}

/** A message in the format of chat. */
type ChatMessage = Readonly<Record<string, unknown>>

/** What a model accepts or requires in messages of the history. */
type ModelRules = Pick<Capabilities, 'takesThoughts' | 'requiresThoughts' | 'isOpenAi'> &
  Pick<ServerRules, 'takesTextParts'> & {
    /** Whether calls may have the signature of Google. */
    readonly signsCalls: boolean
  }

/** The parts of a turn, sorted by where chat has them: in a field of the message, or in another message. */
interface SortedTurn {
  readonly thinking: string[]
  /** The elements of `reasoning_details`. */
  readonly details: unknown[]
  /** Signature of the next call. */
  signature: string | undefined
  readonly content: ChatPart[]
  /** The contents of the additional messages of a user's turn: each system text, and what follows it. */
  readonly later: { readonly isSystem: boolean; readonly content: ChatPart[] }[]
  readonly calls: unknown[]
  readonly results: ChatMessage[]
  /**
   * The media of tool results. A tool message in chat can only contain text, so media are moved to the next
   * user message.
   */
  readonly media: ChatPart[]
}

/**
 * Encodes a conversation as `messages`. System texts come first. Parts that chat cannot express are reported
 * in `dropped`. Throws `invalid_request` if there are no messages.
 */
function encodeMessages(
  requested: Conversation,
  capabilities: ModelRules,
  dropped: DroppedFields,
): ChatMessage[] {
  const { system, turns } = withSystemTextsInTurns(requested)
  const messages = turns.flatMap((turn) => encodeTurn(turn, capabilities, dropped))
  if (system.length > 0) messages.unshift(systemMessage(system, dropped))
  if (messages.length === 0 && turns.length > 0)
    throw new WireError('invalid_request', `'messages' contains nothing that can be sent to this model.`)
  if (requested.listsContent) return messages
  return messages.map((message) => withPlainContent(message, capabilities.takesTextParts))
}

function systemMessage(system: readonly TextPart[], dropped: DroppedFields): ChatMessage {
  return { role: 'system', content: contentOf(system.flatMap((part) => encodePart(part, dropped))) }
}

/** Encodes a turn. Tool results become separate messages before the other parts of the turn. */
function encodeTurn(
  turn: Turn,
  { takesThoughts, requiresThoughts, isOpenAi, signsCalls }: ModelRules,
  dropped: DroppedFields,
): ChatMessage[] {
  const sorted: SortedTurn = {
    thinking: [],
    details: [],
    signature: undefined,
    content: [],
    later: [],
    calls: [],
    results: [],
    media: [],
  }
  for (const part of turn.parts) sort(part, sorted, signsCalls, dropped)
  const { details, calls, results, media } = sorted
  if (sorted.thinking.length > 0 && !takesThoughts) reportDropped(dropped, 'reasoning_content')
  const thinking = takesThoughts ? sorted.thinking : []
  const content = [...media, ...sorted.content]
  if (turn.role === 'user') {
    const said: ChatMessage[] = content.length > 0 ? [{ role: 'user', content: contentOf(content) }] : []
    // Servers other than OpenAI's may refuse a second system message, so the text is sent as the user's.
    for (const { isSystem, content: text } of sorted.later)
      said.push({ role: isSystem && isOpenAi ? 'system' : 'user', content: contentOf(text) })
    // An empty turn is kept. Otherwise the conversation would end with a different turn, or have none.
    if (said.length + results.length === 0) return [{ role: 'user', content: '' }]
    return [...results, ...said]
  }
  if (content.length + calls.length + thinking.length === 0) return results
  const hasThoughts = thinking.length > 0 || (requiresThoughts && calls.length > 0)
  const message = {
    role: 'assistant',
    content: content.length === 0 && calls.length > 0 ? null : contentOf(content),
    ...(hasThoughts && { reasoning_content: thinking.join('\n') }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return [...results, message]
}

function sort(part: Part, turn: SortedTurn, signsCalls: boolean, dropped: DroppedFields): void {
  const details = part.kind === 'opaque' ? detailsIn(part) : []
  if (details.length > 0) {
    turn.details.push(...details)
    return
  }
  switch (part.kind) {
    case 'text':
    case 'media':
    case 'opaque': {
      const content = encodePart(part, dropped)
      const last = turn.later.at(-1)
      if (isSystemText(part)) turn.later.push({ isSystem: true, content })
      else if (!last) turn.content.push(...content)
      else if (last.isSystem) turn.later.push({ isSystem: false, content })
      else last.content.push(...content)
      return
    }
    case 'search':
      reportDropped(dropped, 'content')
      return
    case 'thinking':
      turn.signature = signsCalls ? part.proof && callSignature(part.proof) : undefined
      if (part.proof && turn.signature === undefined) reportDropped(dropped, 'signature')
      if (part.text !== '') turn.thinking.push(part.text)
      return
    case 'tool-call':
      turn.calls.push({ ...encodeCall(part, dropped), ...googleSignatureMembers(turn.signature) })
      turn.signature = undefined
      return
    case 'tool-result':
      turn.results.push(encodeResult(part, turn.media, dropped))
  }
}

function encodeCall({ id, name, input, cache, proof }: ToolCallPart, dropped: DroppedFields): object {
  if (cache) reportDropped(dropped, 'cache_control')
  if (proof) reportDropped(dropped, 'signature')
  return { id, type: 'function', function: { name, arguments: inputOrEmpty(input) } }
}

/**
 * Encodes a tool result. Its text stays in the result, and its media are sent later in the same order. Chat
 * cannot express that a tool failed.
 */
function encodeResult(part: ToolResultPart, media: ChatPart[], dropped: DroppedFields): ChatMessage {
  let content: ChatPart[] = []
  const others = media.length
  for (const piece of part.parts) {
    for (const encoded of encodePart(piece, dropped)) {
      if (encoded['type'] === 'text') content.push(encoded)
      else media.push(encoded)
    }
  }
  // Some servers refuse an empty result.
  if (media.length > others && content.every(({ text }) => text === ''))
    content = [{ type: 'text', text: 'The result is in the next message of the user.' }]
  if (part.isError) reportDropped(dropped, 'is_error')
  // A cache mark on the result is moved to its last text.
  const last = content.at(-1)
  if (part.cache && last && !hasCacheMark(last))
    content[content.length - 1] = { ...last, ...writeCacheDirective(part.cache) }
  else if (part.cache) reportDropped(dropped, 'cache_control')
  return { role: 'tool', tool_call_id: part.callId, content: contentOf(content) }
}

/** A part of the content of a message, in the format of chat. */
type ChatPart = Readonly<Record<string, unknown>>

/** Encodes a part of the content. Returns an empty list if chat cannot express it. */
function encodePart(part: TextPart | MediaPart | OpaquePart, dropped: DroppedFields): ChatPart[] {
  switch (part.kind) {
    case 'text':
      return [{ type: 'text', text: part.text, ...writeCacheDirective(part.cache) }]
    case 'media':
      return [{ ...encodeMedia(part, dropped), ...writeCacheDirective(part.cache) }]
    case 'opaque':
      if (part.protocol === 'chat') return [part.value as ChatPart]
      reportDropped(dropped, 'content')
      return []
  }
}

/** Renders content as a list, or as an empty string if there is none. */
function contentOf(parts: readonly ChatPart[]): string | readonly ChatPart[] {
  return parts.length === 0 ? '' : parts
}

/**
 * Renders content that consists of texts as one string, because many servers accept lists only with images or
 * files: in system messages with a blank line between the texts, elsewhere as they follow each other. Several
 * texts stay a list where the server takes one, and where they have cache marks.
 */
function withPlainContent(message: ChatMessage, takesTextParts: boolean): ChatMessage {
  const parts = message['content']
  if (!Array.isArray(parts) || (takesTextParts && parts.length !== 1)) return message
  const texts = parts as readonly ChatPart[]
  if (!texts.every((part) => part['type'] === 'text' && !hasCacheMark(part))) return message
  const separator = message['role'] === 'system' ? '\n\n' : ''
  return { ...message, content: texts.map((part) => part['text']).join(separator) }
}

/**
 * Whether media must be fetched. Chat accepts only images and videos by URL. A URL without a media type is
 * treated as an image.
 */
export function mustFetchMedia({ source: { kind, mediaType = 'image/*' } }: MediaPart): boolean {
  return kind === 'url' && !isPicture(mediaType) && !isVideo(mediaType)
}

function encodeMedia(part: MediaPart, dropped: DroppedFields): ChatPart {
  const { source, name, detail } = part
  if (mustFetchMedia(part))
    throw new WireError('invalid_request', 'A document that is given by its URL could not be passed on.')
  const url = source.kind === 'url' ? source.url : dataUrl(source)
  if (source.kind === 'inline' && isFile(source.mediaType))
    return { type: 'file', file: { filename: fileName(source.mediaType, name), file_data: url } }
  if (name !== undefined) reportDropped(dropped, 'title')
  if (isVideo(source.mediaType)) return { type: 'video_url', video_url: { url } }
  if (source.kind === 'url' || isPicture(source.mediaType))
    return {
      type: 'image_url',
      image_url: { url, ...(detail !== undefined && { detail: DETAILS.get(detail) ?? detail }) },
    }
  const format = audioFormat(source.mediaType)
  if (format) return { type: 'input_audio', input_audio: { data: source.data, format } }
  return { type: 'text', text: textOfMedia(source) }
}

/** Values of `detail` that have a different name in chat. */
const DETAILS: ReadonlyMap<string, string> = new Map([['original', 'high']])

/** Whether chat has no type of part for this media type, so that the media are sent as a file. */
function isFile(mediaType: string): boolean {
  const isText = mediaType.startsWith('text/')
  return !isText && !isPicture(mediaType) && !isVideo(mediaType) && audioFormat(mediaType) === undefined
}

function isPicture(mediaType: string | undefined): boolean {
  return mediaType?.startsWith('image/') === true
}

function isVideo(mediaType: string | undefined): boolean {
  return mediaType?.startsWith('video/') === true
}
