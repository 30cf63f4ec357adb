import { WireError } from '../../wire-error.ts'
import type { Dropped, UpstreamModel } from '../../codec.ts'
import type { Conversation, Part, TextPart, ToolCallPart, ToolResultPart, Turn } from '../../conversation.ts'
import { arrayOf, membersOf, type MemberText, objectOf } from '../../json/json-text.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import { sharedMembers } from '../../shared-fields.ts'
import { inputOrEmpty } from '../../tool-input.ts'
import { cacheControl } from '../cache-control.ts'
import { drop } from '../dropped-fields.ts'
import { type ChatPart, contentOf, encodePart } from '../encode-part.ts'
import { encodeOutputFormat } from '../output-format.ts'
import { encodeEffort } from '../thinking.ts'
import { encodeToolChoice } from '../tool-choice.ts'
import { encodeTool } from '../tools.ts'
import { canSearch, encodeWebSearch } from '../web-search.ts'

/** Maximum number of stop sequences that are sent; `docs/api.md: Limits`, stop sequences. */
const MAX_STOPS = 4

/**
 * Encodes a conversation as a chat request. Usage is requested with every stream, because the gateway charges
 * by it. The order of fields is fixed, so that equal conversations give equal bytes, which hit the upstream's
 * cache. Throws `invalid_request` if chat cannot express something that must not be dropped.
 */
export function encodeRequest(
  conversation: Conversation,
  { name, capabilities }: UpstreamModel,
  dropped: Dropped,
): Buffer {
  const { stream, stop, outputFormat, webSearch, topK, logprobs } = conversation
  if (stop.length > MAX_STOPS)
    throw new WireError('invalid_request', `This model takes at most ${MAX_STOPS} stop sequences.`)
  if (topK !== undefined) drop(dropped, 'top_k')
  const search = webSearch?.isOptional && !canSearch(name) ? undefined : webSearch
  if (webSearch && !search) drop(dropped, 'tools.web_search')
  const request = objectOf([
    ...membersOf({
      model: name,
      messages: encodeMessages(conversation, capabilities, dropped),
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
    ...encodeTools(conversation, dropped),
    ['response_format', outputFormat && encodeOutputFormat(outputFormat)],
    ...membersOf({
      reasoning_effort: encodeEffort(conversation, capabilities, dropped),
      web_search_options: search && encodeWebSearch(search),
      logprobs: logprobs && true,
      top_logprobs: logprobs?.top,
    }),
    ...sharedMembers(conversation),
  ])
  return Buffer.from(request)
}

/** Encodes the tools. Without tools there is no tool choice either; upstreams would refuse it. */
function encodeTools({ tools, toolChoice, parallelTools }: Conversation, dropped: Dropped): MemberText[] {
  if (tools.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') drop(dropped, 'tool_choice')
    return []
  }
  return [
    ['tools', arrayOf(tools.map(encodeTool))],
    ...membersOf({
      tool_choice: toolChoice && encodeToolChoice(toolChoice),
      parallel_tool_calls: parallelTools,
    }),
  ]
}

/** Message in chat's format. */
type ChatMessage = Readonly<Record<string, unknown>>

/** Rules of a model about thoughts in earlier messages. */
type ThoughtRules = Pick<Capabilities, 'takesThoughts' | 'requiresThoughts'>

/** Parts of a turn, sorted by the message field or message they go to. */
interface SortedTurn {
  readonly thinking: string[]
  readonly content: ChatPart[]
  readonly calls: unknown[]
  readonly results: ChatMessage[]
  /** Media of tool results. Chat's tool messages carry only text, so media go into the next user message. */
  readonly media: ChatPart[]
}

/**
 * Encodes a conversation as `messages`, system texts first. Parts that chat cannot express are reported in
 * `dropped`. Throws `invalid_request` if nothing is left.
 */
function encodeMessages(
  { system, turns }: Conversation,
  capabilities: ThoughtRules,
  dropped: Dropped,
): ChatMessage[] {
  const messages = turns.flatMap((turn) => encodeTurn(turn, capabilities, dropped))
  if (system.length > 0) messages.unshift(systemMessage(system, dropped))
  if (messages.length === 0 && turns.length > 0)
    throw new WireError('invalid_request', `'messages' contains nothing that can be sent to this model.`)
  return messages
}

function systemMessage(system: readonly TextPart[], dropped: Dropped): ChatMessage {
  return { role: 'system', content: contentOf(system.flatMap((part) => encodePart(part, dropped))) }
}

/** Encodes a turn. Tool results become messages of their own, before the other parts of the turn. */
function encodeTurn(
  turn: Turn,
  { takesThoughts, requiresThoughts }: ThoughtRules,
  dropped: Dropped,
): ChatMessage[] {
  const sorted: SortedTurn = { thinking: [], content: [], calls: [], results: [], media: [] }
  for (const part of turn.parts) sort(part, sorted, dropped)
  const { calls, results, media } = sorted
  if (sorted.thinking.length > 0 && !takesThoughts) drop(dropped, 'reasoning_content')
  const thinking = takesThoughts ? sorted.thinking : []
  const content = [...media, ...sorted.content]
  if (turn.role === 'user') {
    // An empty turn is kept; otherwise the conversation would end with another turn, or with none.
    if (content.length === 0 && results.length > 0) return results
    return [...results, { role: 'user', content: contentOf(content) }]
  }
  if (content.length + calls.length + thinking.length === 0) return results
  const hasThoughts = thinking.length > 0 || (requiresThoughts && calls.length > 0)
  const message = {
    role: 'assistant',
    content: content.length === 0 && calls.length > 0 ? null : contentOf(content),
    ...(hasThoughts && { reasoning_content: thinking.join('\n') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return [...results, message]
}

function sort(part: Part, turn: SortedTurn, dropped: Dropped): void {
  switch (part.kind) {
    case 'text':
    case 'media':
    case 'opaque':
      turn.content.push(...encodePart(part, dropped))
      return
    case 'search':
      drop(dropped, 'content')
      return
    case 'thinking':
      if (part.proof) drop(dropped, 'signature')
      if (part.text !== '') turn.thinking.push(part.text)
      return
    case 'tool-call':
      turn.calls.push(encodeCall(part, dropped))
      return
    case 'tool-result':
      turn.results.push(encodeResult(part, turn.media, dropped))
  }
}

function encodeCall({ id, name, input, cache, proof }: ToolCallPart, dropped: Dropped): unknown {
  if (cache) drop(dropped, 'cache_control')
  if (proof) drop(dropped, 'signature')
  return { id, type: 'function', function: { name, arguments: inputOrEmpty(input) } }
}

/**
 * Encodes a tool result. Its text stays in the result, its media follow later, in order. Chat cannot express
 * that a tool failed.
 */
function encodeResult(part: ToolResultPart, media: ChatPart[], dropped: Dropped): ChatMessage {
  const content: ChatPart[] = []
  for (const piece of part.parts) {
    for (const encoded of encodePart(piece, dropped)) {
      if (encoded['type'] === 'text') content.push(encoded)
      else media.push(encoded)
    }
  }
  if (part.isError) drop(dropped, 'is_error')
  // A cache mark on the result moves to its last text.
  const last = content.at(-1)
  if (part.cache && last && !('cache_control' in last))
    content[content.length - 1] = { ...last, ...cacheControl(part.cache) }
  else if (part.cache) drop(dropped, 'cache_control')
  return { role: 'tool', tool_call_id: part.callId, content: contentOf(content) }
}
