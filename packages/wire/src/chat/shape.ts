import { OPENAI_SERVICE } from '../openai-service.ts'
import { defineShape } from '../shape/define-shape.ts'
import { JSON_SCHEMA } from '../shape/json-schema.ts'
import type { Members } from '../shape/vocabulary.ts'

/** How a completion is sampled: the same members in chat and completions. */
const SAMPLING = {
  frequency_penalty: 'number',
  logit_bias: 'term',
  logprobs: 'number',
  max_completion_tokens: 'number',
  max_tokens: 'number',
  min_p: 'number',
  n: 'number',
  presence_penalty: 'number',
  repetition_penalty: 'number',
  seed: 'number',
  stop: 'text',
  temperature: 'number',
  top_k: 'number',
  top_logprobs: 'number',
  top_p: 'number',
} as const satisfies Members<never>

/**
 * Chat completions. https://platform.openai.com/docs/api-reference/chat/create, with the members that other servers add:
 * `reasoning_content` of DeepSeek, `reasoning_details` of OpenRouter, `cache_control` of both, `extra_content` of Google.
 */
export const CHAT_REQUEST = defineShape({
  Request: {
    ...SAMPLING,
    ...OPENAI_SERVICE,
    audio: 'term',
    function_call: 'term | ToolChoice of program',
    functions: 'Function of program',
    messages: 'Message of user',
    modalities: 'term',
    prediction: 'Message of user',
    reasoning_effort: 'term',
    response_format: 'Format of program',
    tool_choice: 'term | ToolChoice of program',
    tools: 'Tool of program',
    verbosity: 'term',
  },
  Message: {
    audio: 'id',
    cache_control: 'mark',
    content: 'text | Part',
    function_call: 'Call of model',
    id: 'id',
    name: 'text',
    reasoning: 'reasoning | Part',
    reasoning_content: 'reasoning | Part',
    reasoning_details: 'reasoning | Part',
    refusal: 'text',
    role: 'role',
    tool_call_id: 'id',
    tool_calls: 'ToolCall of model',
    type: 'term',
  },
  Part: {
    cache_control: 'mark',
    data: 'sealed',
    file: 'Media',
    format: 'term',
    id: 'id',
    image_url: 'address | Media',
    index: 'id',
    input_audio: 'Media',
    prompt_cache_breakpoint: 'mark',
    refusal: 'text',
    signature: 'signature',
    summary: 'reasoning | Part',
    text: 'text',
    thinking: 'reasoning | Part',
    type: 'term',
    video_url: 'address | Media',
  },
  'Part:file': {},
  'Part:image_url': {},
  'Part:input_audio': {},
  'Part:video_url': {},
  Media: {
    data: 'media',
    detail: 'term',
    file_data: 'media',
    file_id: 'id',
    filename: 'text',
    format: 'term',
    url: 'address',
  },
  ToolCall: {
    custom: 'Call',
    extra_content: 'Signed',
    function: 'Call',
    id: 'id',
    index: 'id',
    type: 'term',
  },
  Call: { arguments: 'arguments', input: 'arguments', name: 'name' },
  Signed: { google: 'Signed', thought_signature: 'signature' },
  Tool: { cache_control: 'mark', custom: 'Function', function: 'Function', type: 'term' },
  Function: {
    description: 'text',
    format: 'Grammar',
    name: 'name',
    parameters: 'Schema',
    strict: 'number',
  },
  Grammar: { definition: 'text', grammar: 'Grammar', syntax: 'term', type: 'term' },
  ToolChoice: {
    allowed_tools: 'ToolChoice',
    custom: 'Function',
    function: 'Function',
    mode: 'term',
    name: 'name',
    tools: 'Tool',
    type: 'term',
  },
  Format: { json_schema: 'NamedSchema', schema: 'Schema', type: 'term' },
  NamedSchema: { description: 'text', name: 'name', schema: 'Schema', strict: 'number' },
  ...JSON_SCHEMA,
})

/** Completions. https://platform.openai.com/docs/api-reference/completions/create */
export const COMPLETIONS_REQUEST = defineShape({
  Request: {
    ...SAMPLING,
    ...OPENAI_SERVICE,
    best_of: 'number',
    echo: 'number',
    prompt: 'text of user',
    suffix: 'text of user',
  },
})
