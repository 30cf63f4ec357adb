import { names, requestNames } from '../request-names.ts'
import { CONVERTED_CHECKS } from './converted-checks.ts'
import { CHECKS } from './native/request.ts'

const part = names(
  'type text refusal detail image_url file_data file_id file_url filename annotations prompt_cache_breakpoint',
  { input_audio: names('data format') },
)

const TOOL =
  'type name description parameters strict format execution model search_context_size user_location ' +
  'max_num_results vector_store_ids quality size n partial_images background server_label server_url'
const container = names('type file_ids memory_limit')
const inNamespace = names(TOOL, { container, environment: container })
const tool = names(TOOL, { tools: inNamespace, container, environment: container })

// The members of calls and of their results are not listed, because their names are the client's.
const item = names(
  'type role id call_id name namespace status arguments input output action summary encrypted_content phase',
  { content: part, tools: tool },
)

/** Names of the fields of requests for responses, for compaction, and for counting tokens. */
export const responsesNames = requestNames([...CHECKS.keys(), ...CONVERTED_CHECKS.keys()], {
  input: item,
  instructions: item,
  tools: tool,
  tool_choice: names('type name mode server_label', { tools: tool }),
  reasoning: names('effort summary generate_summary max_tokens enabled'),
  text: names('verbosity', { format: names('type name description schema strict') }),
  stream_options: names('include_obfuscation include_usage'),
  conversation: names('id'),
  prompt: names('id version variables'),
  prompt_cache_options: names('mode ttl'),
})
