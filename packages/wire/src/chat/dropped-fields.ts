import type { DroppedFields } from '../codec.ts'
import { SHARED_FIELDS } from '../conversation.ts'
import {
  isAnyValue,
  isNotEmpty,
  type IsMeaningful,
  reportDroppedFields,
  isNotDefault,
} from '../dropped-fields.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/** Names of dropped fields that this codec may report in addition to those in `DROPPED_FIELDS`. */
export type DroppedName =
  /** Stands for any field of a chat request or of its messages that is not known. */
  | 'unknown'
  | 'messages.annotations'
  | 'messages.name'
  | 'messages.audio'
  | 'messages.content'
  | 'reasoning.exclude'
  | 'chat_template_kwargs'
  | 'tools.unknown'
  | 'tools.web_search'
  | 'web_search'
  /** Fields of messages requests that chat cannot express. */
  | 'cache_control'
  | 'content'
  | 'reasoning_content'
  | 'response_format'
  | 'signature'
  | 'title'
  | 'is_error'
  | 'tool_choice'
  | 'thinking'
  | 'top_k'

/** Reports a dropped field. The type ensures that the name is in the list. */
export function reportDropped(dropped: DroppedFields, name: DroppedName): void {
  dropped.add(name)
}

/**
 * Fields of chat requests that the neutral form cannot express, each with a test whether its value matters.
 * Those in `docs/api.md: Chat completions` come first. Fields that other protocols also have are not listed.
 */
const DROPPED_FIELDS: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['logit_bias', isNotEmpty],
  ['function_call', isNotDefault('none', 'auto')],
  ['functions', (value) => !Array.isArray(value) || value.length > 0],
  ['prediction', isAnyValue],
  ['modalities', (value) => !Array.isArray(value) || value.some(isNotDefault('text'))],
  ['audio', isAnyValue],
  ['inference_geo', isAnyValue],
  ['speed', isAnyValue],
])

/** Fields of chat requests that the conversion reads, so that they are not reported as dropped. */
const READ_FIELDS: ReadonlySet<string> = new Set<string>([
  ...SHARED_FIELDS,
  'model',
  'messages',
  'max_tokens',
  'max_completion_tokens',
  'stream',
  'stream_options',
  'stop',
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
  'chat_template_kwargs',
  'response_format',
  'web_search_options',
  'logprobs',
  'top_logprobs',
  'n',
])

/**
 * Reports the top-level fields of a chat request that the conversion drops, unless their values have no
 * effect.
 */
export function reportDroppedTopLevelFields(scan: ScannedObject, dropped: DroppedFields): void {
  reportDroppedFields(scan, dropped, READ_FIELDS, DROPPED_FIELDS)
}
