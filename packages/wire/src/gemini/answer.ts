import { type AnswerError, errorInAnswer, errorOfEnd } from '../answer-error.ts'
import { RESPONSE_LIMITS, scanObject } from '../json/json-scan.ts'
import { asRecord, stringOrEmpty } from '../json/record.ts'
import type { Fields } from '../field.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { finishReasonOf } from './stop-reasons.ts'
import { modelWithoutPrefix } from './model-name.ts'
import { memberInEitherSpelling, valueNodeOf } from './field-spelling.ts'
import type { ReceivedMedia } from '../received-media.ts'
import { unknownTexts } from '../unknown-members.ts'

/**
 * Returns the arguments of a function call as they were written. `part` is the index of the part with the
 * call.
 */
export type FindArgumentsText = (part: number) => string | undefined

/** Returns the candidate with this index. A candidate that states no index has index 0. */
export function candidateAt(
  { candidates }: Fields,
  number: number,
): { candidate: Fields; at: number } | undefined {
  if (!Array.isArray(candidates)) return undefined
  for (const [at, value] of (candidates as readonly unknown[]).entries()) {
    const candidate = asRecord(value)
    if (candidate && (candidate['index'] ?? 0) === number) return { candidate, at }
  }
  return undefined
}

/**
 * Returns the JSON texts of the responses in a body. If the body is an array, which is a collected stream,
 * each element is a response.
 */
export function jsonTextsOfResponses(body: string): readonly string[] {
  if (!body.trimStart().startsWith('[')) return [body]
  const scan = scanned(`{"answers":${body}}`)
  const answers = scan?.span('answers')
  return scan && answers ? scan.elements(answers.node).map((node) => scan.textOf(node)) : []
}

/** Returns the parts of a candidate; none if its content is absent or empty. */
export function partsOfCandidate(candidate: Fields): readonly unknown[] {
  const parts = asRecord(candidate['content'])?.['parts']
  return Array.isArray(parts) ? (parts as readonly unknown[]) : []
}

/** Id and model that a response states; empty if it does not. */
export function idAndModelOf({ responseId, modelVersion }: Fields): {
  readonly id: string
  readonly model: string
} {
  return {
    id: typeof responseId === 'string' ? responseId : '',
    model: typeof modelVersion === 'string' ? modelWithoutPrefix(modelVersion) : '',
  }
}

/**
 * Returns the text of a chunk, and whether it is a thought, if the chunk contains nothing else except token
 * counts; undefined for any other chunk.
 */
export function textOfPlainChunk(
  chunk: Fields,
): { readonly text: string; readonly isThought: boolean } | undefined {
  const { candidates } = chunk
  const [value, ...others] = Array.isArray(candidates) ? (candidates as readonly unknown[]) : []
  const candidate = asRecord(value)
  if (!candidate || others.length > 0 || (candidate['index'] ?? 0) !== 0) return undefined
  if (Object.keys(candidate).some((name) => name !== 'content' && name !== 'index')) return undefined
  const [only, ...more] = partsOfCandidate(candidate)
  const part = asRecord(only)
  const text = part?.['text']
  if (!part || more.length > 0 || typeof text !== 'string' || text === '') return undefined
  if (Object.keys(part).some((name) => name !== 'text' && name !== 'thought')) return undefined
  return chunk['error'] === undefined ? { text, isThought: part['thought'] === true } : undefined
}

/** The error of a candidate that ended for a reason that means a failure; undefined for any other candidate. */
export function errorOfCandidate(candidate: Fields): AnswerError | undefined {
  return errorOfEnd(finishReasonOf(candidate['finishReason']), candidate['finishMessage'])
}

/** The error that a response is or contains; undefined if there is none. A blocked prompt is not an error. */
export function errorOfAnswer(answer: Fields): AnswerError | undefined {
  const { candidates } = answer
  const isAnswer = Array.isArray(candidates) || blockReason(answer) !== undefined
  const error = errorInAnswer(answer, isAnswer || 'usageMetadata' in answer)
  if (error || !Array.isArray(candidates)) return error
  for (const candidate of candidates) {
    const found = errorOfCandidate(asRecord(candidate) ?? {})
    if (found) return found
  }
  return undefined
}

/** The provider's words about a blocked prompt, or about the end of the candidate; empty if there are none. */
export function endWords(answer: Fields, candidate?: Fields): string {
  const { blockReasonMessage } = asRecord(answer['promptFeedback']) ?? {}
  return stringOrEmpty(candidate ? candidate['finishMessage'] : blockReasonMessage)
}

/** Why a prompt was refused; undefined if it was not. */
export function blockReason(answer: Fields): string | undefined {
  const reason = asRecord(answer['promptFeedback'])?.['blockReason']
  return typeof reason === 'string' && reason !== '' ? reason : undefined
}

/**
 * Returns a function that finds the arguments of tool calls as they were written. `text` is scanned only when
 * that function is first called. If the response exceeds the scanner's limits, arguments are serialized
 * again: integer-like keys change their order, and large integers lose digits.
 */
export function argumentsTextFinder(text: string, at: number, parts: readonly unknown[]): FindArgumentsText {
  let scan: ScannedObject | undefined
  let nodes: readonly Node[] = []
  let isScanned = false
  return (number) => {
    const args = asRecord(asRecord(asRecord(parts[number])?.['functionCall'])?.['args'])
    if (!args) return undefined
    if (!isScanned) {
      scan = scanned(text)
      if (scan) nodes = partNodes(scan, at)
    }
    isScanned = true
    const node = scan && valueNodeOf(scan, valueNodeOf(scan, nodes[number], 'functionCall'), 'args')
    return scan && node !== undefined ? scan.textOf(node) : JSON.stringify(args)
  }
}

/** The parts of the candidate at this place in a response. */
function partNodes(scan: ScannedObject, at: number): readonly Node[] {
  const candidates = scan.span('candidates')
  const candidate = candidates && scan.elements(candidates.node)[at]
  const list = valueNodeOf(scan, valueNodeOf(scan, candidate, 'content'), 'parts')
  return list === undefined ? [] : scan.elements(list)
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

/** Number of tokens of an image of up to one megapixel. */
const PICTURE_TOKENS = 1_290

/**
 * Records the audio and the images in a candidate's parts, for the charge. Media in thoughts are not charged.
 */
export function recordReceivedMedia(
  parts: readonly unknown[],
  arrived: ReceivedMedia,
  elidedBytes = 0,
): void {
  for (const value of parts) {
    const part = asRecord(value)
    const inline = asRecord(part && memberInEitherSpelling(part, 'inlineData'))
    const media = inline ?? asRecord(part && memberInEitherSpelling(part, 'fileData'))
    if (!media || part?.['thought'] === true) continue
    const type = textIn(media, 'mimeType')
    const data = textIn(media, 'data')
    if (type.startsWith('audio/')) arrived.addSound(data.length + elidedBytes, type)
    else if (type.startsWith('image/')) arrived.addPicture(data, PICTURE_TOKENS)
  }
}

function textIn(fields: Fields, name: string): string {
  const value = memberInEitherSpelling(fields, name)
  return typeof value === 'string' ? value : ''
}

/** Texts of a part in members that the gateway does not know. */
export function textsOfUnknownMembers(part: Fields): readonly string[] {
  return unknownTexts(part, KNOWN_IN_PART)
}

/** Members of a part that the gateway reads, or that contain nothing that the model wrote. */
const KNOWN_IN_PART: ReadonlySet<string> = new Set([
  'text',
  'thought',
  'thoughtSignature',
  'thought_signature',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'inlineData',
  'inline_data',
  'fileData',
  'file_data',
  'videoMetadata',
  'mediaResolution',
  'partMetadata',
])
