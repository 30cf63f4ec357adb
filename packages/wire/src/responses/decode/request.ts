import { withoutBillingHeader } from '../../billing-header.ts'
import type { DroppedFields } from '../../codec.ts'
import type { Conversation, EndUser } from '../../conversation.ts'
import { checkMembers, refuseField } from '../../field-check.ts'
import { requireObject, nullToUndefined } from '../../field.ts'
import { readLogprobsRequest } from '../../logprobs.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import { withCacheLifetimeOfRequest } from '../../cache-marks.ts'
import { sharedField, sharedFields } from '../../shared-fields.ts'
import { RESPONSES_CONVERSION_CHECKS } from '../native/request.ts'
import { InputReader } from './input.ts'
import { OfferedTools, ToolFunctionNames } from './tools.ts'
import { INCLUDE_LOGPROBS, reportDroppedTopLevelFields, SHARED_TOP_LEVEL_FIELDS } from '../dropped-fields.ts'
import { decodeOutputFormat } from '../output-format.ts'
import { repeatedSettings } from '../response-object.ts'
import { asksForSummary, decodeThinking } from '../thinking.ts'
import { decodeToolChoice } from '../tool-choice.ts'

/** Request fields that refer to data stored at one upstream, which another upstream cannot read. */
const STATEFUL = ['conversation', 'prompt'] as const

/**
 * Decodes a checked request. Fields that a conversation cannot express are reported in `dropped`. Throws
 * `invalid_request` with the path of an invalid value, and if the request continues something stored at an
 * upstream. If it continues a response that the gateway has stored, the items of that response were already
 * added to the input.
 */
export function decodeRequest(scan: ScannedObject, dropped: DroppedFields): Conversation {
  const value = (key: string): unknown => nullToUndefined(scan.value(key))
  checkMembers(scan, [], RESPONSES_CONVERSION_CHECKS)
  for (const field of STATEFUL)
    if (value(field) !== undefined)
      refuseField(
        field,
        `all items in 'input' (this model's channel and the gateway store none)`,
        'a reference',
      )
  if (value('background') === true) refuseField('background', `false for this model's channel`, 'true')
  reportDroppedTopLevelFields(scan, dropped)
  const names = new ToolFunctionNames()
  const offered = new OfferedTools(scan, names, dropped)
  offered.read(scan.span('tools')?.node, 'tools')
  const { system, turns } = new InputReader(scan, { names, dropped }, offered).read()
  const text = value('text')
  const verbosity = sharedField(
    'verbosity',
    text === undefined ? undefined : requireObject(text, 'text')['verbosity'],
  )
  const shared = new Map([
    ...(sharedFields(scan, dropped, SHARED_TOP_LEVEL_FIELDS).shared ?? []),
    ...verbosity,
  ])
  const conversation: Conversation = {
    model: value('model') as string,
    stream: value('stream') === true,
    system: withoutBillingHeader(system, dropped),
    turns,
    ...decodeToolChoice(value('tool_choice'), offered),
    parallelTools: value('parallel_tool_calls') as boolean | undefined,
    maxTokens: value('max_output_tokens') as number | undefined,
    temperature: value('temperature') as number | undefined,
    topP: value('top_p') as number | undefined,
    topK: undefined,
    seed: undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    stop: [],
    thinking: decodeThinking(value('reasoning'), dropped),
    ...(asksForSummary(value('reasoning')) && { showsThoughts: true }),
    outputFormat: decodeOutputFormat(scan),
    ...readLogprobsRequest(requestsLogprobs(value('include')), value('top_logprobs')),
    ...endUserOf(value),
    ...(value('service_tier') === 'default' && { isStandardTier: true }),
    includeUsage: true,
    ...(shared.size > 0 && { shared }),
    repeated: repeatedSettings(scan),
  }
  return withCacheLifetimeOfRequest(conversation, value('prompt_cache_options'))
}

function requestsLogprobs(include: unknown): boolean {
  return Array.isArray(include) && include.includes(INCLUDE_LOGPROBS)
}

/** Returns the id of the client's user. `user` is an older name of `safety_identifier`. */
function endUserOf(value: (key: string) => unknown): { endUser?: EndUser } {
  for (const field of ['safety_identifier', 'user'] as const) {
    const id = value(field)
    if (typeof id === 'string' && id !== '') return { endUser: { id, field } }
  }
  return {}
}
