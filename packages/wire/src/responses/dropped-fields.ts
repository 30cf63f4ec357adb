import type { DroppedFields } from '../codec.ts'
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

/** Names of dropped fields that this codec may report, in addition to the keys of `FIELDS`. */
type DroppedName =
  /** Reported for any field of a request that the gateway does not know. */
  | 'unknown'
  | 'input.annotations'
  | 'input.compaction'
  | 'input.item_reference'
  | 'input.phase'
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
  /** Fields that only requests of other protocols have. */
  | 'cache_control'
  | 'content'
  | 'is_error'
  | 'max_output_tokens'
  | 'reasoning_content'
  | 'stop'
  | 'thinking'
  | 'tool_choice'
  | 'top_k'
  | 'web_search'

/** Reports a dropped field. The type ensures that the name contains no text of a client. */
export function reportDropped(dropped: DroppedFields, name: DroppedName): void {
  dropped.add(name)
}

const asksFor =
  (...known: readonly string[]): IsMeaningful =>
  (value) =>
    Array.isArray(value) && value.some((entry) => !known.includes(entry as string))

/**
 * Request fields that a conversion loses, each with a function that returns whether a value differs from the
 * default.
 */
const FIELDS: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['background', isNotFalse],
  ['context_management', isNotEmpty],
  // `reasoning.encrypted_content` is not reported, because encrypted reasoning is always returned.
  ['include', asksFor('reasoning.encrypted_content', INCLUDE_LOGPROBS)],
  ['max_tool_calls', isAnyValue],
  ['moderation', isAnyValue],
  ['truncation', (value) => value !== 'disabled'],
  // `client_metadata` is never reported: it describes the client, and the model does not read it.
  ['client_metadata', () => false],
  ['stream_options', () => false],
])

/** Fields of `SHARED_FIELDS` that are top-level members in responses requests. */
export const SHARED_TOP_LEVEL_FIELDS: readonly SharedField[] = SHARED_FIELDS.filter(
  (name) => name !== 'verbosity',
)

/** Request fields that the conversion to another protocol uses. */
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
  // `previous_response_id` is used before: the gateway has added the items of the previous response to the
  // input.
  'previous_response_id',
  'text',
  'reasoning',
  ...SHARED_TOP_LEVEL_FIELDS,
])

/**
 * Reports the top-level fields of a request that the conversion ignores, if their values differ from the
 * default.
 */
export function reportDroppedTopLevelFields(scan: ScannedObject, dropped: DroppedFields): void {
  reportDroppedFields(scan, dropped, READ_FIELDS, FIELDS)
}
