import { CACHE_MARK, names, requestNames } from '../../request-names.ts'
import { CHECKS as COMPLETION_CHECKS } from '../completions/request.ts'
import { CHECKS } from './request.ts'

const part = names('type text refusal thinking', {
  image_url: names('url detail'),
  video_url: names('url'),
  input_audio: names('data format'),
  file: names('file_data file_id filename'),
  cache_control: CACHE_MARK,
})

const call = names('name arguments')

const message = names('role name tool_call_id refusal reasoning_content reasoning reasoning_details', {
  content: part,
  tool_calls: names('id type index', { function: call, custom: names('name input') }),
  function_call: call,
  audio: names('id data transcript'),
  cache_control: CACHE_MARK,
})

const declaration = names('name description parameters strict')

const tool = names('type model max_uses', {
  function: declaration,
  custom: names('name description format'),
  cache_control: CACHE_MARK,
})

const named = names('name')

const below = {
  messages: message,
  tools: tool,
  functions: declaration,
  function_call: named,
  tool_choice: names('type mode', {
    function: named,
    custom: named,
    allowed_tools: names('mode', { tools: tool }),
  }),
  stream_options: names('include_usage include_obfuscation'),
  response_format: names('type schema', { json_schema: names('name description schema strict') }),
  web_search_options: names('search_context_size user_location'),
  reasoning: names('effort max_tokens enabled exclude summary'),
  thinking: names('type budget_tokens'),
  prediction: names('type', { content: part }),
  audio: names('voice format'),
  cache_control: CACHE_MARK,
}

/** Names of the fields of chat completions requests. */
export const chatNames = requestNames(CHECKS.keys(), below)

/** Names of the fields of completions requests, which may be converted to chat requests. */
export const completionNames = requestNames([...CHECKS.keys(), ...COMPLETION_CHECKS.keys()], below)
