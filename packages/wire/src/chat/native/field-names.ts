import { CACHE_MARK_NAMES, knownNames, requestNames } from '../../request-names.ts'
import { COMPLETION_FIELD_CHECKS } from '../completions/request.ts'
import { CHAT_FIELD_CHECKS } from './request.ts'

const part = knownNames('type text refusal thinking', {
  image_url: knownNames('url detail'),
  video_url: knownNames('url'),
  input_audio: knownNames('data format'),
  file: knownNames('file_data file_id filename'),
  cache_control: CACHE_MARK_NAMES,
})

const call = knownNames('name arguments')

const message = knownNames('role name tool_call_id refusal reasoning_content reasoning reasoning_details', {
  content: part,
  tool_calls: knownNames('id type index', { function: call, custom: knownNames('name input') }),
  function_call: call,
  audio: knownNames('id data transcript'),
  cache_control: CACHE_MARK_NAMES,
})

const declaration = knownNames('name description parameters strict')

const tool = knownNames('type model max_uses', {
  function: declaration,
  custom: knownNames('name description format'),
  cache_control: CACHE_MARK_NAMES,
})

const named = knownNames('name')

const below = {
  messages: message,
  tools: tool,
  functions: declaration,
  function_call: named,
  tool_choice: knownNames('type mode', {
    function: named,
    custom: named,
    allowed_tools: knownNames('mode', { tools: tool }),
  }),
  stream_options: knownNames('include_usage include_obfuscation'),
  response_format: knownNames('type schema', { json_schema: knownNames('name description schema strict') }),
  web_search_options: knownNames('search_context_size user_location'),
  reasoning: knownNames('effort max_tokens enabled exclude summary'),
  thinking: knownNames('type budget_tokens'),
  prediction: knownNames('type', { content: part }),
  audio: knownNames('voice format'),
  cache_control: CACHE_MARK_NAMES,
}

/** The names of the fields of chat completions requests. */
export const chatFieldNames = requestNames(CHAT_FIELD_CHECKS.keys(), below)

/** The names of the fields of completions requests, which may be converted to chat requests. */
export const completionFieldNames = requestNames(
  [...CHAT_FIELD_CHECKS.keys(), ...COMPLETION_FIELD_CHECKS.keys()],
  below,
)
