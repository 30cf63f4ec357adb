import { reroutingName } from '../../domain/allowed-field.ts'
import type { Dropped } from '../codec.ts'
import { asRecord } from '../json/record.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { camelCase, topMember } from './spelling.ts'

/** Names that this codec may report besides those of `FIELDS` and `CONFIG`: a closed list. */
type DroppedName =
  /** Fields of a request that nobody here knows. */
  | 'unknown'
  | 'parts'
  | 'parts.mediaResolution'
  | 'parts.videoMetadata'
  | 'systemInstruction'
  | 'tools.response'
  | 'tools.server'
  | 'tools.unknown'
  /** Names of fields of requests of other wires. */
  | 'cache_control'
  | 'content'
  | 'image_url.detail'
  | 'parallel_tool_calls'
  | 'reasoning_content'
  | 'response_format'
  | 'seed'
  | 'stop'
  | 'thinking'
  | 'title'
  | 'tool_choice'
  | 'tools.strict'
  | 'tools.web_search'

/** Names what is left out: text of the client's is never part of it. */
export function drop(dropped: Dropped, name: DroppedName): void {
  dropped.add(name)
}

/** Whether a value says more than the field's absence would. */
type IsMeaningful = (value: unknown) => boolean

const notFalse: IsMeaningful = (value) => value !== false
const isFilled: IsMeaningful = (value) =>
  Array.isArray(value) ? value.length > 0 : Object.keys(asRecord(value) ?? {}).length > 0

/** Top-level fields that the shared form cannot hold. */
const FIELDS: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['labels', isFilled],
  ['modelArmorConfig', isFilled],
  ['safetySettings', isFilled],
  ['store', notFalse],
])

/** Fields of `generationConfig` that the shared form cannot hold. */
const CONFIG: ReadonlyMap<string, IsMeaningful> = new Map<string, IsMeaningful>([
  ['audioTimestamp', notFalse],
  ['enableAffectiveDialog', notFalse],
  ['enableEnhancedCivicAnswers', notFalse],
  ['imageConfig', isFilled],
  ['mediaResolution', (value) => value !== 'MEDIA_RESOLUTION_UNSPECIFIED'],
  ['modelSelectionConfig', isFilled],
  ['responseFormat', isFilled],
  [
    'responseModalities',
    (value) => !Array.isArray(value) || value.some((one) => !/^text$/i.test(String(one))),
  ],
  ['routingConfig', isFilled],
  ['speechConfig', isFilled],
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

/** Names the fields of a request that a conversion leaves out, if they mean something. */
export function nameDroppedFields(scan: ScannedObject, dropped: Dropped): void {
  for (const { key } of scan.members.values()) nameField(key, scan.value(key), [READ_FIELDS, FIELDS], dropped)
  const config = topMember(scan, 'generationConfig')
  for (const [key, value] of Object.entries(asRecord(config && scan.value(config.key)) ?? {}))
    nameField(key, value, [READ_CONFIG, CONFIG], dropped)
}

function nameField(
  key: string,
  value: unknown,
  [read, known]: readonly [ReadonlySet<string>, ReadonlyMap<string, IsMeaningful>],
  dropped: Dropped,
): void {
  const name = camelCase(key)
  if (value === null || read.has(name)) return
  const says = known.get(name)
  if (!says) dropped.add(reroutingName(key) ?? 'unknown')
  else if (says(value)) dropped.add(name)
}
