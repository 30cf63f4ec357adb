import { reroutingMemberName } from '../upstream-settings.ts'
import type { DroppedFields } from '../codec.ts'
import { isNotEmpty, type IsMeaningful, isNotFalse } from '../dropped-fields.ts'
import { asRecord } from '../json/record.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { camelCase, topMember } from './field-spelling.ts'

/** Names of dropped fields that this codec may report, in addition to the keys of `FIELDS` and `CONFIG`. */
type DroppedName =
  /** Reported for any field of a request that the gateway does not know. */
  | 'unknown'
  | 'parts'
  | 'parts.mediaResolution'
  | 'parts.videoMetadata'
  | 'systemInstruction'
  | 'tools.response'
  | 'tools.server'
  | 'tools.unknown'
  /** Fields that only requests of other protocols have. */
  | 'cache_control'
  | 'content'
  | 'image_url.detail'
  | 'parallel_tool_calls'
  | 'reasoning_content'
  | 'response_format'
  | 'schema'
  | 'seed'
  | 'stop'
  | 'thinking'
  | 'title'
  | 'toolConfig'
  | 'tool_choice'
  | 'tools.strict'
  | 'tools.web_search'
  | 'web_search'

/** Reports a dropped field. The type ensures that the name contains no text of a client. */
export function reportDropped(dropped: DroppedFields, name: DroppedName): void {
  dropped.add(name)
}

/**
 * Top-level request fields that the neutral form cannot express, each with a test whether its value matters.
 */
const FIELDS: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['labels', isNotEmpty],
  ['modelArmorConfig', isNotEmpty],
  ['safetySettings', isNotEmpty],
  ['store', isNotFalse],
])

/**
 * Fields of `generationConfig` that the neutral form cannot express, each with a test whether its value
 * matters.
 */
const CONFIG: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['audioTimestamp', isNotFalse],
  ['enableAffectiveDialog', isNotFalse],
  ['enableEnhancedCivicAnswers', isNotFalse],
  ['imageConfig', isNotEmpty],
  ['mediaResolution', (value) => value !== 'MEDIA_RESOLUTION_UNSPECIFIED'],
  ['modelSelectionConfig', isNotEmpty],
  ['responseFormat', isNotEmpty],
  [
    'responseModalities',
    (value) => !Array.isArray(value) || value.some((one) => !/^text$/i.test(String(one))),
  ],
  ['routingConfig', isNotEmpty],
  ['speechConfig', isNotEmpty],
])

const READ_FIELDS: ReadonlySet<string> = new Set([
  'contents',
  'generationConfig',
  'model',
  'serviceTier',
  'stream',
  'systemInstruction',
  'toolConfig',
  'tools',
])

const READ_CONFIG: ReadonlySet<string> = new Set([
  'candidateCount',
  'frequencyPenalty',
  'logprobs',
  'maxOutputTokens',
  'presencePenalty',
  'responseJsonSchema',
  'responseLogprobs',
  'responseMimeType',
  'responseSchema',
  'seed',
  'stopSequences',
  'temperature',
  'thinkingConfig',
  'topK',
  'topP',
])

/** Reports the fields of a request that the conversion ignores, if their values differ from the default. */
export function reportDroppedTopLevelFields(scan: ScannedObject, dropped: DroppedFields): void {
  for (const { key } of scan.members.values()) nameField(key, scan.value(key), [READ_FIELDS, FIELDS], dropped)
  const config = topMember(scan, 'generationConfig')
  for (const [key, value] of Object.entries(asRecord(config && scan.value(config.key)) ?? {}))
    nameField(key, value, [READ_CONFIG, CONFIG], dropped)
}

function nameField(
  key: string,
  value: unknown,
  [read, known]: readonly [ReadonlySet<string>, ReadonlyMap<string, IsMeaningful>],
  dropped: DroppedFields,
): void {
  const name = camelCase(key)
  if (value === null || read.has(name)) return
  const isMeaningful = known.get(name)
  if (!isMeaningful) dropped.add(reroutingMemberName(key) ?? 'unknown')
  else if (isMeaningful(value)) dropped.add(name)
}
