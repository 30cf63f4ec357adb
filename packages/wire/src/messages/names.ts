import { CACHE_MARK, names, requestNames } from '../request-names.ts'
import { CHECKS } from './native/request.ts'

const source = names('type media_type data url file_id content')

// The content of a document or a result is not listed, because its names are the client's.
const block = names(
  'type text content title context id name input tool_use_id is_error thinking signature data',
  {
    source,
    cache_control: CACHE_MARK,
  },
)

const tool = names('type name description input_schema strict model max_uses user_location', {
  cache_control: CACHE_MARK,
})

const format = names('type name schema')

/** Names of the fields of messages requests. */
export const messagesNames = requestNames(
  [...CHECKS.keys(), 'container', 'mcp_servers', 'context_management'],
  {
    messages: names('role', { content: block }),
    system: block,
    tools: tool,
    tool_choice: names('type name disable_parallel_tool_use'),
    thinking: names('type budget_tokens display'),
    output_config: names('effort', { format }),
    output_format: format,
    cache_control: CACHE_MARK,
    fallbacks: names('model'),
  },
)
