import type { Dropped, UpstreamModel } from '../codec.ts'
import type { Conversation } from '../conversation.ts'
import { GatewayError } from '../../errors.ts'
import { arrayOf, type MemberText, membersOf, objectOf } from '../json/json-text.ts'
import { sharedMembers } from '../shared-fields.ts'
import { drop } from './dropped-fields.ts'
import { encodeMessages } from './encode-messages.ts'
import { encodeOutputFormat } from './output-format.ts'
import { encodeEffort } from './thinking.ts'
import { encodeToolChoice } from './tool-choice.ts'
import { encodeTool } from './tool.ts'
import { canSearch, encodeWebSearch } from './web-search.ts'

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
    throw new GatewayError('invalid_request', `This model takes at most ${MAX_STOPS} stop sequences.`)
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
