import { refuseChoices } from '../choices.ts'
import type { Dropped, UpstreamModel } from '../codec.ts'
import type { Conversation, CustomDefinition, Tool, WebSearch } from '../conversation.ts'
import { isThinkingOff } from '../thinking-effort.ts'
import { arrayOf, type MemberText, membersOf, objectOf } from '../json/json-text.ts'
import { dropSeedAndPenalties } from '../seed-and-penalties.ts'
import { sizeOf } from '../search-size.ts'
import { sharedMembers } from '../shared-fields.ts'
import { drop, LOGPROBS } from './dropped-fields.ts'
import { encodeItems } from './encode-items.ts'
import { encodeOutputFormat } from './output-format.ts'
import { encodeThinking } from './thinking.ts'
import { encodeToolChoice } from './tool-choice.ts'

/** Smallest maximum of output tokens that upstreams accept. */
const MIN_OUTPUT_TOKENS = 16

/** Value of `include` that requests the pages that a search found. */
const SEARCH_PAGES = 'web_search_call.action.sources'

/** The maximum of tokens that is sent for a conversation. */
export function maxTokensOf({ maxTokens }: Pick<Conversation, 'maxTokens'>): number | undefined {
  return maxTokens === undefined ? undefined : Math.max(maxTokens, MIN_OUTPUT_TOKENS)
}

/**
 * Encodes a request. Nothing is stored unless the client requests it, and reasoning is requested in encrypted
 * form, so that the client can send it back. The order of fields is fixed, so that equal conversations give
 * equal bytes, which hit the upstream's cache. Throws `invalid_request` if responses cannot express something
 * that must not be dropped.
 */
export function encodeRequest(
  conversation: Conversation,
  { name, capabilities }: UpstreamModel,
  dropped: Dropped,
): Buffer {
  const { stop, thinking, topK, logprobs } = conversation
  refuseChoices(conversation)
  if (stop.length > 0) drop(dropped, 'stop')
  if (topK !== undefined) drop(dropped, 'top_k')
  dropSeedAndPenalties(conversation, dropped)
  const { instructions, input } = encodeItems(conversation, dropped)
  const reasoning = encodeThinking(thinking, capabilities, dropped)
  const asksForThoughts = reasoning !== undefined && thinking !== undefined && !isThinkingOff(thinking)
  const { store = 'false', ...others } = Object.fromEntries(sharedMembers(conversation))
  const { verbosity, ...rest } = others
  const include = [
    ...(asksForThoughts ? ['reasoning.encrypted_content'] : []),
    ...(logprobs ? [LOGPROBS] : []),
    ...(conversation.webSearch?.listsPages ? [SEARCH_PAGES] : []),
  ]
  const request = objectOf([
    ...membersOf({
      model: name,
      instructions,
      input,
      max_output_tokens: maxTokensOf(conversation),
      temperature: conversation.temperature,
      top_p: conversation.topP,
      stream: conversation.stream || undefined,
    }),
    ...encodeTools(conversation, dropped),
    ['text', encodeText(conversation, verbosity)],
    ...membersOf({
      reasoning,
      include: include.length > 0 ? include : undefined,
      top_logprobs: logprobs?.top,
    }),
    ['store', store],
    ...Object.entries(rest),
  ])
  return Buffer.from(request)
}

function encodeText({ outputFormat }: Conversation, verbosity: string | undefined): string | undefined {
  if (!outputFormat && verbosity === undefined) return undefined
  return objectOf([
    ['format', outputFormat && encodeOutputFormat(outputFormat)],
    ['verbosity', verbosity],
  ])
}

/** Upstreams refuse a tool choice without tools. */
function encodeTools(
  { tools, toolChoice, parallelTools, webSearch }: Conversation,
  dropped: Dropped,
): MemberText[] {
  const written = [...tools.map(encodeTool), ...(webSearch ? [JSON.stringify(encodeSearch(webSearch))] : [])]
  if (tools.some(({ cache }) => cache)) drop(dropped, 'cache_control')
  if (written.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') drop(dropped, 'tool_choice')
    return []
  }
  return [
    ['tools', arrayOf(written)],
    ...membersOf({
      tool_choice: toolChoice && encodeToolChoice(toolChoice, tools),
      parallel_tool_calls: parallelTools,
    }),
  ]
}

/** Strictness is always stated, because tools are strict by default in this dialect, but not in others. */
function encodeTool({ name, description, schema = 'null', strict = false, form }: Tool): string {
  if (form?.custom) return encodeCustom(name, form.custom)
  return objectOf([
    ...membersOf({ type: 'function', name, description }),
    ['parameters', schema],
    ...membersOf({ strict }),
  ])
}

function encodeSearch({ maxUses, location }: WebSearch): object {
  return {
    type: 'web_search',
    search_context_size: sizeOf(maxUses),
    user_location: location && { type: 'approximate', ...location },
  }
}

function encodeCustom(name: string, { description, grammar }: CustomDefinition): string {
  const format = grammar && { type: 'grammar', ...grammar }
  return objectOf(membersOf({ type: 'custom', name, description, format }))
}
