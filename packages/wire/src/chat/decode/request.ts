import { choicesAsked } from '../../choices.ts'
import type { Dropped } from '../../codec.ts'
import type { Conversation } from '../../conversation.ts'
import { asRecord } from '../../json/record.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import { logprobsAsked } from '../../logprobs-asked.ts'
import { sharedFields } from '../../shared-fields.ts'
import { decodeMessages } from '../decode-messages.ts'
import { nameDroppedFields } from '../dropped-fields.ts'
import { fieldsAt, listAt, present } from '../../field.ts'
import { decodeOutputFormat } from '../output-format.ts'
import { decodeThinkingConfig } from '../../thinking-config.ts'
import { decodeThinking } from '../thinking.ts'
import { decodeToolChoice } from '../tool-choice.ts'
import { decodeTools } from '../tools.ts'
import { decodeWebSearch } from '../web-search.ts'

/**
 * Decodes a checked chat request; `docs/api.md: Chat completions`. Fields that a conversation cannot express
 * are reported in `dropped`. Throws `invalid_request` with the path of an unreadable value.
 */
export function decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation {
  const value = (key: string): unknown => present(scan.value(key))
  const number = (key: string): number | undefined => value(key) as number | undefined
  const limits = [number('max_tokens'), number('max_completion_tokens')].filter(
    (limit) => limit !== undefined,
  )
  const stop = value('stop') ?? []
  const search = value('web_search_options')
  nameDroppedFields(scan, dropped)
  return {
    model: value('model') as string,
    stream: value('stream') === true,
    ...decodeMessages(listAt(value('messages'), 'messages'), dropped),
    ...decodeToolChoice(value('tool_choice'), decodeTools(scan, dropped)),
    parallelTools: value('parallel_tool_calls') as boolean | undefined,
    maxTokens: limits.length > 0 ? Math.max(...limits) : undefined,
    temperature: number('temperature'),
    topP: number('top_p'),
    topK: number('top_k'),
    seed: number('seed'),
    presencePenalty: number('presence_penalty'),
    frequencyPenalty: number('frequency_penalty'),
    stop: (Array.isArray(stop) ? (stop as string[]) : [stop as string]).filter((text) => text !== ''),
    thinking:
      decodeThinkingConfig(googleThinking(value('extra_body')), 'extra_body.google.thinking_config') ??
      decodeThinking(value('reasoning_effort'), value('reasoning'), dropped),
    outputFormat: decodeOutputFormat(scan),
    webSearch: search === undefined ? undefined : decodeWebSearch(fieldsAt(search, 'web_search_options')),
    ...choicesAsked('n', value('n')),
    ...logprobsAsked(value('logprobs') === true, value('top_logprobs')),
    includeUsage: asRecord(value('stream_options'))?.['include_usage'] === true,
    ...sharedFields(scan),
  }
}

/** Settings of thinking as clients of Google's chat endpoint send them. */
function googleThinking(extraBody: unknown): unknown {
  return present(asRecord(asRecord(extraBody)?.['google'])?.['thinking_config'])
}
