import type { Dropped } from '../codec.ts'
import { SHARED_FIELDS, type SharedField } from '../conversation.ts'
import {
  isAnyValue,
  isNotEmpty,
  type IsMeaningful,
  reportDroppedFields,
  isNotFalse,
} from '../dropped-fields.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/** Value of `include` that requests the log probabilities of the text's tokens. */
export const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Names that this codec may report in addition to those of `FIELDS`. The list is fixed. */
type DroppedName =
  /** Unknown fields of a request. */
  | 'unknown'
  | 'input.annotations'
  | 'input.compaction'
  | 'input.item_reference'
  | 'input.reasoning'
  | 'input.tools'
  | 'input.unknown'
  | 'reasoning.context'
  | 'reasoning.mode'
  | 'tools.code_interpreter'
  | 'tools.computer'
  | 'tools.file_search'
  | 'tools.image_generation'
  | 'tools.mcp'
  | 'tools.programmatic_tool_calling'
  | 'tools.tool_search'
  | 'tools.unknown'
  | 'tools.web_search'
  /** Fields of other dialects' requests that this dialect cannot express. */
  | 'cache_control'
  | 'content'
  | 'is_error'
  | 'reasoning_content'
  | 'stop'
  | 'thinking'
  | 'tool_choice'
  | 'top_k'

/** Reports a dropped field. The name never contains a client's text. */
export function reportDropped(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}

const asksFor =
  (...known: readonly string[]): IsMeaningful =>
  (value) =>
    Array.isArray(value) && value.some((entry) => !known.includes(entry as string))

/** Fields that a conversation cannot express, each with a test whether its value differs from the default. */
const FIELDS: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['background', isNotFalse],
  ['context_management', isNotEmpty],
  // Encrypted reasoning is always returned.
  ['include', asksFor('reasoning.encrypted_content', INCLUDE_LOGPROBS)],
  ['max_tool_calls', isAnyValue],
  ['moderation', isAnyValue],
  ['truncation', (value) => value !== 'disabled'],
  // This field describes the client, and the model never reads it, so it is never reported as dropped.
  ['client_metadata', () => false],
  ['stream_options', () => false],
])

/** Shared fields that are top-level members in this dialect. */
export const SHARED_TOP_LEVEL_FIELDS: readonly SharedField[] = SHARED_FIELDS.filter(
  (name) => name !== 'verbosity',
)

/** Fields that the conversion reads. */
const READ_FIELDS: ReadonlySet<string> = new Set<string>([
  'model',
  'input',
  'instructions',
  'stream',
  'max_output_tokens',
  'temperature',
  'top_p',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  // The gateway has already added the items of the previous response to the input.
  'previous_response_id',
  'text',
  'reasoning',
  ...SHARED_TOP_LEVEL_FIELDS,
])

/**
 * Reports the top-level fields of a request that the conversion drops, unless their values have no effect.
 */
export function nameDroppedFields(scan: ScannedObject, dropped: Dropped): void {
  reportDroppedFields(scan, dropped, READ_FIELDS, FIELDS)
}
