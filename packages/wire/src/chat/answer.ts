import type { ReceivedMedia } from '../received-media.ts'
import type { Fields } from '../field.ts'
import { asRecord, stringOrEmpty } from '../json/record.ts'
import type { ToolUse } from '../tool-use.ts'
import { unknownTexts } from '../unknown-members.ts'

/** Counts in `arrived` the audio, the images and the encrypted reasoning of a message or a delta. */
export function recordReceivedMedia(
  message: Fields | undefined,
  arrived: ReceivedMedia,
  elidedBytes = 0,
): void {
  if (!message) return
  const sound = stringOrEmpty(asRecord(message['audio'])?.['data'])
  if (sound !== '') arrived.addSound(sound.length + elidedBytes)
  for (const list of [message['images'], message['content']])
    if (Array.isArray(list)) for (const part of list) notePicture(asRecord(part), arrived)
  const details = message['reasoning_details']
  if (!Array.isArray(details)) return
  for (const detail of details) {
    const hidden = stringOrEmpty(asRecord(detail)?.['data'])
    if (hidden !== '') arrived.addHidden(hidden.length, 0)
  }
}

/** The URL of a picture in an answer, often with its data; empty if the part is no picture. */
export function pictureUrl(part: Fields | undefined): string {
  const held = part?.['image_url']
  return stringOrEmpty(asRecord(held)?.['url'] ?? held)
}

function notePicture(part: Fields | undefined, arrived: ReceivedMedia): void {
  const url = pictureUrl(part)
  if (url !== '') arrived.addPicture(url.startsWith('data:') ? url.slice(url.indexOf(',') + 1) : '')
}

/**
 * Collects all text that the model wrote in a message or a delta: content, refusal, reasoning, transcripts of
 * audio, names and arguments of tool calls, and what unknown members contain. Returns no empty pieces. Text that a provider repeats under two
 * names counts once.
 */
export function generatedText(message: unknown): string[] {
  const pieces: string[] = []
  const record = asRecord(message)
  if (!record) return pieces
  addText(pieces, record['content'])
  add(pieces, record['refusal'])
  add(pieces, asRecord(record['audio'])?.['transcript'])
  addReasoning(pieces, record)
  addCall(pieces, record['function_call'])
  if (Array.isArray(record['tool_calls'])) {
    for (const call of record['tool_calls']) {
      addCall(pieces, asRecord(call)?.['function'])
      addCall(pieces, asRecord(call)?.['custom'])
    }
  }
  pieces.push(...unknownTexts(record, KNOWN))
  return pieces
}

/** Maximum number of choices that are counted separately. */
const MAX_CHOICES = 128

/** The index of a choice; 0 if it states none that can be right. */
export function indexOfChoice(choice: Fields | undefined): number {
  return statedIndexOf(choice) ?? 0
}

/** The index that a choice states; undefined if it states none that can be right. */
export function statedIndexOf(choice: Fields | undefined): number | undefined {
  const index = choice?.['index']
  return Number.isInteger(index) && (index as number) >= 0 && (index as number) < MAX_CHOICES
    ? (index as number)
    : undefined
}

/**
 * What a chunk of a stream adds to a choice: its delta, or the whole message of a server that cannot stream.
 * Others repeat in `message` what their deltas said (Perplexity in each chunk, MiniMax in the last one).
 */
export function addedTo(choice: Fields | undefined, isEmpty: boolean): Fields | undefined {
  const delta = asRecord(choice?.['delta'])
  const message = asRecord(choice?.['message'])
  if (!message) return delta
  return isEmpty && generatedText(delta).length === 0 ? message : delta
}

/** Texts of a message or a delta in members that the gateway does not know. */
export function textsOfUnknownMembers(message: Fields | undefined): readonly string[] {
  return message ? unknownTexts(message, KNOWN) : []
}

/**
 * Members of a message or a delta that are read above, or that contain nothing that the model wrote. Some
 * repeat other members.
 */
const KNOWN: ReadonlySet<string> = new Set([
  'role',
  'content',
  'refusal',
  'name',
  'id',
  'index',
  'type',
  'audio',
  'images',
  'annotations',
  'citations',
  'function_call',
  'tool_calls',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'reasoning_signature',
  'signature',
  'thinking_blocks',
  'extra_content',
  'provider_specific_fields',
  'logprobs',
  'obfuscation',
  'padding',
  'tool_call_id',
])

/** Converts a choice of a text completion to a message whose content is its text. */
export function completionAsMessage(choice: Readonly<Record<string, unknown>> | undefined): object {
  return { content: choice?.['text'] }
}

/**
 * Adds reasoning to `pieces`. `reasoning_content` and `reasoning` are two names of one text;
 * `reasoning_details` is read if both are absent.
 */
function addReasoning(pieces: string[], record: Record<string, unknown>): void {
  const before = pieces.length
  addText(pieces, record['reasoning_content'])
  if (record['reasoning'] !== record['reasoning_content']) addText(pieces, record['reasoning'])
  if (pieces.length === before) addText(pieces, record['reasoning_details'])
}

/**
 * Adds to `pieces` a text, or the texts in a list of parts: `{text}`, or `{thinking}` with a text or further
 * parts.
 */
function addText(pieces: string[], value: unknown): void {
  add(pieces, value)
  if (!Array.isArray(value)) return
  for (const part of value) {
    const record = asRecord(part)
    add(pieces, record?.['text'])
    add(pieces, record?.['refusal'])
    const thinking = record?.['thinking']
    add(pieces, thinking)
    if (Array.isArray(thinking)) for (const thought of thinking) add(pieces, asRecord(thought)?.['text'])
  }
}

/** Adds to `pieces` a function's name and arguments, or a custom tool's name and input. */
function addCall(pieces: string[], value: unknown): void {
  const call = asRecord(value)
  add(pieces, call?.['name'])
  add(pieces, call?.['arguments'])
  add(pieces, call?.['input'])
}

function add(pieces: string[], value: unknown): void {
  if (typeof value === 'string' && value !== '') pieces.push(value)
}

/** The web search that is reported if only the cited pages of a reply show that there was one. */
export const SEARCH_INFERRED_FROM_CITATION: ToolUse = { kind: 'web_search', count: 1, isCited: true }

/** Reports whether a message, or a part of one, cites a web page. */
export function citesWebPage(message: unknown): boolean {
  const annotations = asRecord(message)?.['annotations']
  return (
    Array.isArray(annotations) &&
    annotations.some((annotation) => asRecord(annotation)?.['type'] === 'url_citation')
  )
}
