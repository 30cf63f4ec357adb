import type { TextPlace } from './guarded-texts.ts'

/** Members of answers whose texts are words of a protocol, names or ids. */
export const PROTOCOL_TERMS: ReadonlySet<string> = new Set([
  'aspectRatio',
  'authorization',
  'authorization_token',
  'background',
  'cachedContent',
  'call_id',
  'category',
  'container_id',
  'detail',
  'effort',
  'encoding_format',
  'encrypted_content',
  'encrypted_index',
  'environment',
  'file_id',
  'finishReason',
  'finish_reason',
  'format',
  'id',
  'include',
  'inference_geo',
  'item_id',
  'language',
  'media_type',
  'mimeType',
  'mime_type',
  'modalities',
  'model',
  'object',
  'output_format',
  'phase',
  'previous_response_id',
  'quality',
  'responseMimeType',
  'responseModalities',
  'response_id',
  'role',
  'serviceTier',
  'service_tier',
  'signature',
  'size',
  'speed',
  'status',
  'stop_reason',
  'system_fingerprint',
  'thoughtSignature',
  'thought_signature',
  'threshold',
  'tool_call_id',
  'tool_use_id',
  'truncation',
  'ttl',
  'type',
  'verbosity',
  'voice',
])

/** Members of answers whose texts are words of a protocol, names or ids. Guards do not check them. */
export const ANSWER_PROTOCOL_TERMS: ReadonlySet<string> = new Set([
  'blockReason',
  'createTime',
  'created_at',
  'expires_at',
  'modelVersion',
  'native_finish_reason',
  'obfuscation',
  'provider',
  'responseId',
  'stop_sequence',
])
/** Members of answers that contain only numbers and words of a protocol, such as the usage. */
export const TERM_AND_NUMBER_MEMBERS: ReadonlySet<string> = new Set([
  'content_filter_offsets',
  'content_filter_result',
  'content_filter_results',
  'prompt_filter_results',
  'safetyRatings',
  'usage',
  'usageMetadata',
])
/**
 * Members of a response that the model did not generate: they repeat the request, or state how the response
 * ended.
 */
export const UNGENERATED_MEMBERS: ReadonlySet<string> = new Set([
  'error',
  'incomplete_details',
  'input',
  'instructions',
  'metadata',
  'prompt',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'text',
  'tool_choice',
  'tools',
  'user',
])
/**
 * Members that contain objects whose keys users choose, such as properties of schemas and variables of
 * prompts. The values in these objects are defined by the protocol.
 */
export const MEMBERS_WITH_CHOSEN_NAMES: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependentRequired',
  'dependentSchemas',
  'labels',
  'patternProperties',
  'properties',
  'variables',
])

/** Members whose texts are names that users chose in a schema. */
export const MEMBERS_LISTING_CHOSEN_NAMES: ReadonlySet<string> = new Set([
  '$ref',
  'propertyOrdering',
  'required',
])

/** Members that contain the bytes of media or of embeddings in base64. */
export const MEDIA_MEMBERS: ReadonlySet<string> = new Set([
  'b64_json',
  'embedding',
  'file_data',
  'image',
  'mask',
  'partial_image_b64',
])
/** Members that contain the address of media; it may be a data URL, which contains the bytes. */
export const MEDIA_ADDRESS_MEMBERS: ReadonlySet<string> = new Set([
  'fileUri',
  'file_uri',
  'file_url',
  'image_url',
  'uri',
  'url',
])
/**
 * Members that state the type of `data` in the same object. They show that `data` is media and not a text.
 */
export const MEDIA_TYPE_MEMBERS = [
  'media_type',
  'mimeType',
  'mime_type',
  'format',
  'transcript',
  'expires_at',
] as const
/** Members with which a provider signs a model's reasoning, so that the reasoning cannot be changed. */
export const SIGNATURE_MEMBERS = ['signature'] as const
/** Members of signed reasoning that its signature covers. */
export const SIGNED_TEXT_MEMBERS: ReadonlySet<string> = new Set(['thinking', 'text', 'reasoning', 'summary'])
/** Members that contain the reasoning of a model. */
export const REASONING_MEMBERS: ReadonlySet<string> = new Set([
  'reasoning',
  'reasoning_content',
  'reasoning_details',
])
/** Types of blocks, items and deltas that contain reasoning. */
export const REASONING_TYPES: ReadonlySet<string> = new Set([
  'thinking',
  'thinking_delta',
  'reasoning',
  'reasoning.text',
  'reasoning.summary',
])

/** Members whose texts all belong to the same part of a call, such as the arguments of a tool. */
export const TEXT_PLACE_OF_MEMBER: ReadonlyMap<string, TextPlace> = new Map<string, TextPlace>([
  ['tool_calls', 'tool_arguments'],
  ['function_call', 'tool_arguments'],
  ['functionCall', 'tool_arguments'],
  ['partial_json', 'tool_arguments'],
  ['executableCode', 'tool_arguments'],
  ['executable_code', 'tool_arguments'],
  ['functionResponse', 'tool_results'],
  ['function_response', 'tool_results'],
  ['codeExecutionResult', 'tool_results'],
  ['code_execution_result', 'tool_results'],
])

/** Members of tool calls and results that contain objects whose keys users or models choose. */
export const FREE_OBJECT_MEMBERS: ReadonlySet<string> = new Set([
  'action',
  'args',
  'arguments',
  'input',
  'operation',
  'response',
])
export const TOOL_RESULT_MEMBERS: ReadonlySet<string> = new Set(['output', 'outputs', 'results', 'result'])
/** Roles of messages that are results of tools. */
export const TOOL_RESULT_ROLES: ReadonlySet<string> = new Set(['tool', 'function'])
export const MODEL_ROLES: ReadonlySet<string> = new Set(['assistant', 'model'])
/** Members that contain the JSON of a tool's arguments. */
export const ARGUMENTS_JSON_MEMBERS: ReadonlySet<string> = new Set(['arguments', 'partial_json'])
/**
 * Members of answers that repeat the text token by token, with the JSON that replaces an object. A list is
 * replaced by an empty list.
 */
export const TEXT_REPEATING_MEMBERS: ReadonlyMap<string, string> = new Map([
  ['logprobs', 'null'],
  ['logprobsResult', '{}'],
])
