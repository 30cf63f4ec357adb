import {
  MEDIA_ADDRESS_MEMBERS,
  ANSWER_PROTOCOL_TERMS,
  FREE_OBJECT_MEMBERS,
  ARGUMENTS_JSON_MEMBERS,
  TERM_AND_NUMBER_MEMBERS,
  MEDIA_MEMBERS,
  MEDIA_TYPE_MEMBERS,
  MODEL_ROLES,
  MEMBERS_LISTING_CHOSEN_NAMES,
  MEMBERS_WITH_CHOSEN_NAMES,
  UNGENERATED_MEMBERS,
  TEXT_PLACE_OF_MEMBER,
  REASONING_TYPES,
  TEXT_REPEATING_MEMBERS,
  TOOL_RESULT_MEMBERS,
  TOOL_RESULT_ROLES,
  SIGNATURE_MEMBERS,
  SIGNED_TEXT_MEMBERS,
  PROTOCOL_TERMS,
  REASONING_MEMBERS,
} from './guarded-member-names.ts'
import { findUnusualWords, isAnswerWord, isMediaContent } from './answer-words.ts'
import { isMemberName, isSealed, type ValueKind } from './guarded-values.ts'
import { hasBytesAt } from './json/bytes.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import type { ServedProtocol } from './protocols.ts'
import { isSignatureEnvelope } from './signature-envelope.ts'
import type { FileFacts } from './text-file.ts'

/** Which part of a call a text belongs to. */
export type TextPlace = 'input' | 'output' | 'tool_arguments' | 'tool_results'

/** A text that guards check, in a request or response of any protocol. */
export interface FoundText {
  /** Offsets of the JSON string, including its quotes. */
  readonly from: number
  readonly to: number
  readonly place: TextPlace
  /** Whether the text is reasoning that is covered by a signature, so that it must not be changed. */
  readonly isSigned: boolean
  /** Whether the text is itself JSON: the arguments of a tool. Guards then check the strings in it. */
  readonly isJson: boolean
  /** Whether this is not a string but a number, in the arguments or the result of a tool. */
  readonly isNumber: boolean
  /** Whether the text is a name in a schema, or the name of a variable. */
  readonly isName: boolean
  /** Whether the text is inside an object whose keys users or models choose. */
  readonly isData: boolean
  /** How the value is read; `text` in answers. */
  readonly kind: ValueKind
  /** What is stated about the file that the value may be; undefined if nothing is. */
  readonly file?: FileFacts
  /** The last step of the path from the root of an answer to the text; undefined in requests. */
  readonly step: PathStep | undefined
}

/** A step of the path to a text: a member of an object, or an element of a list. */
export interface PathStep {
  readonly up: PathStep | undefined
  /** Name of the member; undefined for an element of a list. */
  readonly name: string | undefined
  /** The object with the member, or the list with the element. */
  readonly of: Node
}

/**
 * Offsets of a value that repeats texts token by token, and the JSON that replaces the value if a text is
 * changed.
 */
export type RepeatingSpan = readonly [from: number, to: number, instead: string]

/** The texts of an answer or of one of its events, and the values that repeat them token by token. */
export interface GeneratedTexts {
  /** The texts in the order of their bytes. */
  readonly texts: readonly FoundText[]
  readonly repeating: readonly RepeatingSpan[]
}

/** Facts that are needed to find the texts of an answer, but that the answer does not state. */
export interface AnswerContext {
  /** The protocol of the client, in which the answer is written. */
  readonly dialect: ServedProtocol
  /** Whether reasoning is signed by its provider, so that it cannot be changed. */
  readonly signsReasoning: boolean
}

/** Replacement of a part of the bytes by another JSON text. */
export interface TextChange {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Facts about a value that follow from the members around it. */
interface Surroundings {
  readonly place: TextPlace
  /**
   * Whether users or models choose the keys of the value if it is an object, so that guards check these keys
   * too.
   */
  readonly isData: boolean
  readonly isSigned: boolean
  /** Whether all reasoning in the answer counts as signed. */
  readonly signsReasoning?: boolean
  /** Whether the value is in a turn of the model; undefined outside of turns. */
  readonly isOfModel?: boolean
  /** Set in the responses protocol only: for the root of an event, and for the object with the response. */
  readonly isRoot?: 'event' | 'response' | undefined
  readonly isInData?: boolean
}

/** The texts that the search has found so far. */
interface Found {
  readonly texts: FoundText[]
  readonly repeating: RepeatingSpan[]
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const DATA_URL = Buffer.from('"data:')

/**
 * Finds the texts of an answer: all strings except terms of the protocol, ids, the bytes of media, and what
 * repeats the request.
 */
export function findAnswerTexts(scan: ScannedObject, origin: AnswerContext): GeneratedTexts {
  return generatedTexts(scan, origin, 'response')
}

/**
 * Finds the texts of one event of a streamed answer: all strings except terms of the protocol, ids, the bytes
 * of media, and what repeats the request.
 */
export function textsOfEvent(scan: ScannedObject, origin: AnswerContext): GeneratedTexts {
  return generatedTexts(scan, origin, 'event')
}

function generatedTexts(
  scan: ScannedObject,
  { dialect, signsReasoning }: AnswerContext,
  form: 'event' | 'response',
): GeneratedTexts {
  const found = { texts: [], repeating: [] }
  // Only the responses protocol repeats the request in its answers.
  const isRoot = dialect === 'responses' ? form : undefined
  collect(scan, ROOT, { place: 'output', isData: false, isSigned: false, signsReasoning, isRoot }, found)
  return found
}

/** Decodes the JSON string between two offsets; of a number it returns the digits. */
export function decodeStringAt(bytes: Buffer, from: number, to: number): string {
  if (bytes[from] !== QUOTE) return bytes.toString('utf8', from, to)
  const escape = bytes.indexOf(BACKSLASH, from)
  if (escape === -1 || escape >= to) return bytes.toString('utf8', from + 1, to - 1)
  return JSON.parse(bytes.toString('utf8', from, to)) as string
}

/**
 * Applies changes to the bytes. The changes must be in order and must not overlap. All other bytes stay
 * unchanged.
 */
export function applyTextChanges(bytes: Buffer, changes: readonly TextChange[]): Buffer {
  if (changes.length === 0) return bytes
  const parts: Buffer[] = []
  let at = 0
  for (const { from, to, text } of changes) {
    parts.push(bytes.subarray(at, from), Buffer.from(text))
    at = to
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}

function collect(
  scan: ScannedObject,
  node: Node,
  around: Surroundings,
  found: Found,
  name = '',
  step?: PathStep,
): void {
  switch (scan.kindOf(node)) {
    case 'string':
      add(scan, node, around, found, step, name)
      return
    case 'number':
      if (around.isData || name === 'numberValue') add(scan, node, around, found, step, '')
      return
    case 'array':
      for (const element of scan.elements(node))
        collect(scan, element, around, found, name, { up: step, name: undefined, of: node })
      return
    case 'object':
      if (around.isData) collectData(scan, node, around, found, step)
      else collectMembers(scan, node, around, found, step)
      return
    case 'true':
    case 'false':
    case 'null':
  }
}

function add(
  scan: ScannedObject,
  node: Node,
  { place, isSigned, isInData = false }: Surroundings,
  { texts }: Found,
  step: PathStep | undefined,
  name: string,
  isName = MEMBERS_LISTING_CHOSEN_NAMES.has(name),
): void {
  const from = scan.startOf(node)
  texts.push({
    from,
    to: scan.endOf(node),
    // Guards know `tool_results` only in requests. A tool result in an answer is a part of the output.
    place: place === 'tool_results' ? 'output' : place,
    isSigned,
    isJson: place === 'tool_arguments' && ARGUMENTS_JSON_MEMBERS.has(name),
    isNumber: scan.bytes[from] !== QUOTE,
    isName,
    isData: isInData,
    kind: 'text',
    step,
  })
}

// The keys are collected too, because users may choose them: `{"ann@example.com": 5}`.
function collectData(
  scan: ScannedObject,
  node: Node,
  around: Surroundings,
  found: Found,
  step: PathStep | undefined,
): void {
  const within = around.isInData ? around : { ...around, isInData: true }
  for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) {
    add(scan, key, within, found, step, '')
    collect(scan, scan.valueOf(key), within, found, '', step)
  }
}

// The keys are collected because users choose them. The values are defined by the protocol.
function collectNamed(
  scan: ScannedObject,
  node: Node,
  around: Surroundings,
  found: Found,
  step: PathStep | undefined,
): void {
  for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) {
    add(scan, key, { ...around, isInData: true }, found, step, '', true)
    collect(scan, scan.valueOf(key), around, found, '', { up: step, name: scan.keyText(key), of: node })
  }
}

function collectMembers(
  scan: ScannedObject,
  node: Node,
  around: Surroundings,
  found: Found,
  step: PathStep | undefined,
): void {
  const role = stringMember(scan, node, 'role')
  // An object with a role is a message in every protocol, even if it also has a type.
  const type = role === undefined ? (stringMember(scan, node, 'type') ?? '') : ''
  // Reasoning counts only in turns of a model. Otherwise a client could mark its own texts as reasoning, so
  // that they are not changed.
  const isOfModel = role === undefined ? around.isOfModel !== false : MODEL_ROLES.has(role)
  const isSigned =
    around.isSigned ||
    (role === undefined &&
      isOfModel &&
      isReasoning(scan, node, type) &&
      (around.signsReasoning === true || (isSignedNode(scan, node) && !hasEnvelope(scan, node))))
  const isResult = type.endsWith('tool_result') || type.endsWith('_call_output')
  const isCall = type.endsWith('_call') && type !== 'tool_call'
  const isUse = type.endsWith('tool_use')
  for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) {
    const name = scan.keyText(key)
    const value = scan.valueOf(key)
    if (!isMemberName(name)) add(scan, key, { ...around, isInData: true }, found, step, '')
    if (isUngenerated(scan, name, value, around, found, step)) continue
    if (isLeftOut(scan, node, name, value, type, role) && isUnreadable(scan, name, value)) continue
    let { place } = around
    if (TEXT_PLACE_OF_MEMBER.has(name)) place = TEXT_PLACE_OF_MEMBER.get(name) as TextPlace
    else if (isResult || (role !== undefined && TOOL_RESULT_ROLES.has(role) && name !== 'name'))
      place = 'tool_results'
    else if (isCall) place = TOOL_RESULT_MEMBERS.has(name) ? 'tool_results' : 'tool_arguments'
    else if (isUse && name === 'input') place = 'tool_arguments'
    const isTool = place === 'tool_arguments' || place === 'tool_results'
    const isData = isTool && FREE_OBJECT_MEMBERS.has(name)
    const signs =
      (isSigned && (around.isSigned || SIGNED_TEXT_MEMBERS.has(name))) ||
      (around.signsReasoning === true && REASONING_MEMBERS.has(name))
    const isRoot: Surroundings['isRoot'] =
      around.isRoot === 'event' && name === 'response' ? 'response' : undefined
    const isSame =
      place === around.place &&
      isData === around.isData &&
      signs === around.isSigned &&
      isOfModel === (around.isOfModel !== false) &&
      isRoot === around.isRoot
    const within = isSame ? around : { ...around, place, isData, isSigned: signs, isOfModel, isRoot }
    const next = { up: step, name, of: node }
    if (MEMBERS_WITH_CHOSEN_NAMES.has(name) && !isData && scan.kindOf(value) === 'object')
      collectNamed(scan, value, within, found, next)
    else collect(scan, value, within, found, name, next)
  }
}

/**
 * Whether a member of an answer was not generated by the model. Adds lists that repeat the text of the answer
 * to `repeating`.
 */
function isUngenerated(
  scan: ScannedObject,
  name: string,
  value: Node,
  around: Surroundings,
  found: Found,
  step: PathStep | undefined,
): boolean {
  if (around.isRoot === 'response' && UNGENERATED_MEMBERS.has(name)) return true
  // Pieces of spoken answers do not state the media type of their bytes.
  if (name === 'data' && step?.name === 'audio') return isUnreadable(scan, name, value)
  if (!scan.isContainer(value)) return ANSWER_PROTOCOL_TERMS.has(name) && isAnswerWord(scan, name, value)
  const object = TEXT_REPEATING_MEMBERS.get(name)
  if (object === undefined) {
    if (!TERM_AND_NUMBER_MEMBERS.has(name)) return false
    findUnusualWords(scan, value, (node) => add(scan, node, { ...around, isInData: true }, found, step, ''))
    return true
  }
  const instead = scan.kindOf(value) === 'array' ? '[]' : object
  found.repeating.push([scan.startOf(value), scan.endOf(value), instead])
  return true
}

/** Whether a member of an answer that guards leave out looks like what it should be: a word, or the bytes of media. */
function isUnreadable(scan: ScannedObject, name: string, value: Node): boolean {
  if (scan.kindOf(value) !== 'string') return true
  const isMedia =
    name === 'data' || name === 'result' || MEDIA_MEMBERS.has(name) || MEDIA_ADDRESS_MEMBERS.has(name)
  return isMedia ? isMediaContent(scan, value) : isAnswerWord(scan, name, value)
}

/**
 * Whether guards do not check a member, because it is a word of the protocol, an id, the name of a tool, or
 * the bytes of media.
 */
function isLeftOut(
  scan: ScannedObject,
  object: Node,
  name: string,
  value: Node,
  type: string,
  role: string | undefined,
): boolean {
  // A schema may use any of the names that are left out for its properties. Therefore a member with an object
  // is always searched.
  if (scan.kindOf(value) === 'object') return false
  if (PROTOCOL_TERMS.has(name)) return !scan.isContainer(value)
  if (name === 'name') return role === undefined
  if (MEDIA_MEMBERS.has(name) || (name === 'result' && type === 'image_generation_call'))
    return scan.kindOf(value) === 'string'
  if (MEDIA_ADDRESS_MEMBERS.has(name)) return isDataUrl(scan, value)
  if (name !== 'data') return false
  return (
    type === 'redacted_thinking' ||
    type === 'reasoning.encrypted' ||
    (type !== 'text' && statesMediaType(scan, object))
  )
}

function statesMediaType(scan: ScannedObject, object: Node): boolean {
  return MEDIA_TYPE_MEMBERS.some((kind) => scan.memberOf(object, kind) !== undefined)
}

function isDataUrl(scan: ScannedObject, value: Node): boolean {
  return hasBytesAt(scan.bytes, scan.startOf(value), DATA_URL)
}

function isReasoning(scan: ScannedObject, node: Node, type: string): boolean {
  if (REASONING_TYPES.has(type)) return true
  // Parts in the Gemini dialect have no type; a member `thought` marks reasoning.
  const thought = type === '' ? scan.memberOf(node, 'thought') : undefined
  return thought !== undefined && scan.kindOf(thought) === 'true'
}

/** Whether the signature is one that the gateway has made for a client. It does not cover the text. */
function hasEnvelope(scan: ScannedObject, node: Node): boolean {
  return SIGNATURE_MEMBERS.some((name) => isSignatureEnvelope(stringMember(scan, node, name) ?? ''))
}

function isSignedNode(scan: ScannedObject, node: Node): boolean {
  return SIGNATURE_MEMBERS.some((name) => {
    const value = stringMember(scan, node, name)
    return value !== undefined && value !== '' && isSealed(value)
  })
}

/** The text of a member if it is a string, otherwise undefined. */
export function stringMember(scan: ScannedObject, object: Node, name: string): string | undefined {
  const value = scan.memberOf(object, name)
  if (value === undefined || scan.bytes[scan.startOf(value)] !== QUOTE) return undefined
  return decodeStringAt(scan.bytes, scan.startOf(value), scan.endOf(value))
}
