import { hasBytesAt } from './json/bytes.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'

/** Which part of a call a text belongs to. */
export type TextPlace = 'input' | 'output' | 'tool_arguments' | 'tool_results'

/** A text in a request or response of any protocol. */
export interface FoundText {
  /** Offsets of the JSON string, including its quotes. */
  readonly from: number
  readonly to: number
  readonly place: TextPlace
  /** Whether the text is reasoning that is covered by a signature, so that it must not be changed. */
  readonly isSigned: boolean
  /**
   * Whether the text is itself JSON, the arguments of a tool. The strings in it are then the texts to check.
   */
  readonly isJson: boolean
}

/** Replacement of a part of the bytes by another JSON text. */
export interface TextChange {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** What surrounds a value in the JSON. */
interface Surroundings {
  readonly place: TextPlace
  /** Whether users or models choose the names of its members, so that these names are texts too. */
  readonly isData: boolean
  readonly isSigned: boolean
  /** Whether all reasoning counts as signed. */
  readonly signsReasoning?: boolean
  /** Whether the value is in a turn of the model; undefined outside of turns. */
  readonly isOfModel?: boolean
}

/** Members whose texts are not checked, because they are words of a protocol, names or ids. */
const TERMS: ReadonlySet<string> = new Set([
  '$ref',
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
  'propertyOrdering',
  'quality',
  'required',
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

/** Members that contain media as base64. */
const MEDIA: ReadonlySet<string> = new Set(['b64_json', 'file_data', 'image', 'mask', 'partial_image_b64'])
/** Members that contain the address of media; a `data:` URL contains the media themselves. */
const ADDRESSES: ReadonlySet<string> = new Set(['fileUri', 'file_uri', 'file_url', 'image_url', 'uri', 'url'])
/** Members that stand beside `data` and state its type, by which it is recognized as media. */
const DATA_KINDS = ['media_type', 'mimeType', 'mime_type', 'format', 'transcript', 'expires_at'] as const
/** Members that contain a signature. */
const SIGNATURES = ['signature'] as const
/** Members that contain reasoning. */
const THOUGHTS: ReadonlySet<string> = new Set(['reasoning', 'reasoning_content', 'reasoning_details'])
/** Types of blocks and items that contain reasoning. */
const REASONING: ReadonlySet<string> = new Set([
  'thinking',
  'reasoning',
  'reasoning.text',
  'reasoning.summary',
])

/** Members whose whole content belongs to one place. */
const PLACES: ReadonlyMap<string, TextPlace> = new Map<string, TextPlace>([
  ['tool_calls', 'tool_arguments'],
  ['function_call', 'tool_arguments'],
  ['functionCall', 'tool_arguments'],
  ['executableCode', 'tool_arguments'],
  ['executable_code', 'tool_arguments'],
  ['functionResponse', 'tool_results'],
  ['function_response', 'tool_results'],
  ['codeExecutionResult', 'tool_results'],
  ['code_execution_result', 'tool_results'],
])

/** Members of calls and results that contain objects whose names users or models choose. */
const DATA: ReadonlySet<string> = new Set(['action', 'args', 'arguments', 'input', 'operation', 'response'])
const RESULTS: ReadonlySet<string> = new Set(['output', 'outputs', 'results', 'result'])
/** Roles of messages that contain results of tools. */
const RESULT_ROLES: ReadonlySet<string> = new Set(['tool', 'function'])
const MODEL_ROLES: ReadonlySet<string> = new Set(['assistant', 'model'])
/**
 * Members of a response that contain generated content. Other members repeat the request or contain numbers.
 */
const GENERATED: ReadonlySet<string> = new Set(['candidates', 'choices', 'content', 'output'])
/** Members of choices and candidates that repeat the text token by token. */
const REPEATING: ReadonlySet<string> = new Set(['logprobs', 'logprobsResult'])

const QUOTE = 0x22
const BACKSLASH = 0x5c
const DATA_URL = Buffer.from('"data:')

/**
 * Finds the texts of a request, in the order of its bytes: everything that a model may read, and everything
 * else that a client writes freely. Words of the protocol, ids and media are left out.
 */
export function requestTexts(scan: ScannedObject): FoundText[] {
  const found: FoundText[] = []
  collect(scan, ROOT, { place: 'input', isData: false, isSigned: false }, found)
  return found
}

/**
 * Finds the texts in a part of a response: a message, an item or a block. `name` is the name of the member
 * that contains it.
 */
export function generatedTexts(
  scan: ScannedObject,
  node: Node,
  name: string,
  signsReasoning = false,
): FoundText[] {
  if (TERMS.has(name) && scan.kindOf(node) === 'string') return []
  const found: FoundText[] = []
  collect(scan, node, { place: 'output', isData: false, isSigned: false, signsReasoning }, found, name)
  return found
}

/** Finds the generated texts of a response, without the lists that repeat them token by token. */
export function answerTexts(scan: ScannedObject, signsReasoning: boolean): FoundText[] {
  return [...scan.members.values()].flatMap(({ key, node }) =>
    GENERATED.has(key) ? generatedTexts(scan, node, key, signsReasoning) : [],
  )
}

/**
 * Finds the lists in a response that repeat its texts token by token. Returns the offsets of each list, and
 * the JSON text that can replace it.
 */
export function repeatingSpans(
  scan: ScannedObject,
): (readonly [from: number, to: number, instead: string])[] {
  const spans: (readonly [number, number, string])[] = []
  for (const name of ['choices', 'candidates']) {
    const member = scan.span(name)
    if (!member || scan.kindOf(member.node) !== 'array') continue
    for (const one of scan.elements(member.node)) {
      if (scan.kindOf(one) !== 'object') continue
      for (const { key, node } of scan.entries(one))
        if (REPEATING.has(key) && scan.kindOf(node) === 'object')
          spans.push([scan.startOf(node), scan.endOf(node), name === 'choices' ? 'null' : '{}'])
    }
  }
  const output = scan.span('output')
  if (output && scan.kindOf(output.node) === 'array') findLogprobs(scan, output.node, spans)
  return spans
}

function findLogprobs(scan: ScannedObject, node: Node, spans: (readonly [number, number, string])[]): void {
  const kind = scan.kindOf(node)
  if (kind === 'array') for (const one of scan.elements(node)) findLogprobs(scan, one, spans)
  if (kind !== 'object') return
  for (const { key, node: value } of scan.entries(node)) {
    if (key !== 'logprobs') findLogprobs(scan, value, spans)
    else if (scan.kindOf(value) === 'array') spans.push([scan.startOf(value), scan.endOf(value), '[]'])
  }
}

/** Decodes the JSON string at these offsets. */
export function textAt(bytes: Buffer, from: number, to: number): string {
  const escape = bytes.indexOf(BACKSLASH, from)
  if (escape === -1 || escape >= to) return bytes.toString('utf8', from + 1, to - 1)
  return JSON.parse(bytes.toString('utf8', from, to)) as string
}

/**
 * Applies changes to the bytes. The changes must be in order and must not overlap. All other bytes stay
 * unchanged.
 */
export function withTexts(bytes: Buffer, changes: readonly TextChange[]): Buffer {
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

function collect(scan: ScannedObject, node: Node, around: Surroundings, found: FoundText[], name = ''): void {
  switch (scan.kindOf(node)) {
    case 'string':
      found.push({
        from: scan.startOf(node),
        to: scan.endOf(node),
        place: around.place,
        isSigned: around.isSigned,
        isJson: name === 'arguments' && around.place === 'tool_arguments',
      })
      return
    case 'array':
      for (const element of scan.elements(node)) collect(scan, element, around, found, name)
      return
    case 'object':
      if (around.isData) collectData(scan, node, around, found)
      else collectMembers(scan, node, around, found)
      return
    case 'number':
    case 'true':
    case 'false':
    case 'null':
  }
}

// Names that users choose may contain data: `{"ann@example.com": 5}`.
function collectData(scan: ScannedObject, node: Node, around: Surroundings, found: FoundText[]): void {
  for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) {
    const { place, isSigned } = around
    found.push({ from: scan.startOf(key), to: scan.endOf(key), place, isSigned, isJson: false })
    collect(scan, scan.valueOf(key), around, found)
  }
}

function collectMembers(scan: ScannedObject, node: Node, around: Surroundings, found: FoundText[]): void {
  const role = stringIn(scan, node, 'role')
  // An object with a role is a message in every protocol, even if it also has a type.
  const type = role === undefined ? (stringIn(scan, node, 'type') ?? '') : ''
  // Reasoning counts only in turns of a model. Otherwise a client could mark its own texts as reasoning, so
  // that they are not changed.
  const isOfModel = role === undefined ? around.isOfModel !== false : MODEL_ROLES.has(role)
  const isSigned =
    around.isSigned ||
    (role === undefined &&
      isOfModel &&
      isReasoning(scan, node, type) &&
      (around.signsReasoning === true || isSignedNode(scan, node)))
  const isResult = type.endsWith('tool_result') || type.endsWith('_call_output')
  const isCall = type.endsWith('_call') && type !== 'tool_call'
  const isUse = type.endsWith('tool_use')
  for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) {
    const name = scan.keyText(key)
    const value = scan.valueOf(key)
    if (isLeftOut(scan, node, name, value, type, role)) continue
    let { place } = around
    if (PLACES.has(name)) place = PLACES.get(name) as TextPlace
    else if (isResult || (role !== undefined && RESULT_ROLES.has(role) && name !== 'name'))
      place = 'tool_results'
    else if (isCall) place = RESULTS.has(name) ? 'tool_results' : 'tool_arguments'
    else if (isUse && name === 'input') place = 'tool_arguments'
    const isTool = place === 'tool_arguments' || place === 'tool_results'
    const isData = (isTool && DATA.has(name)) || (name === 'metadata' && place === 'input')
    const signs = isSigned || (around.signsReasoning === true && THOUGHTS.has(name))
    collect(scan, value, { ...around, place, isData, isSigned: signs, isOfModel }, found, name)
  }
}

/** Whether a member is left out: it is a word of the protocol, an id, the name of a tool, or media. */
function isLeftOut(
  scan: ScannedObject,
  object: Node,
  name: string,
  value: Node,
  type: string,
  role: string | undefined,
): boolean {
  // An object is never left out, because a schema may use any of these names for its properties.
  if (scan.kindOf(value) === 'object' && !REPEATING.has(name)) return false
  if (TERMS.has(name) || REPEATING.has(name))
    return !scan.isContainer(value) || REPEATING.has(name) || isWords(name)
  if (name === 'name') return role === undefined
  if (MEDIA.has(name) || (name === 'result' && type === 'image_generation_call'))
    return scan.kindOf(value) === 'string'
  if (ADDRESSES.has(name)) return isDataUrl(scan, value)
  if (name !== 'data') return false
  return (
    type === 'redacted_thinking' ||
    type === 'reasoning.encrypted' ||
    (type !== 'text' && DATA_KINDS.some((kind) => scan.memberOf(object, kind) !== undefined))
  )
}

/** Whether the member contains a list of words of the protocol. */
function isWords(name: string): boolean {
  return name === 'required' || name === 'include' || name === 'modalities' || name === 'propertyOrdering'
}

function isDataUrl(scan: ScannedObject, value: Node): boolean {
  return hasBytesAt(scan.bytes, scan.startOf(value), DATA_URL)
}

function isReasoning(scan: ScannedObject, node: Node, type: string): boolean {
  if (REASONING.has(type)) return true
  // Parts in the Gemini dialect have no type; a member `thought` marks reasoning.
  const thought = type === '' ? scan.memberOf(node, 'thought') : undefined
  return thought !== undefined && scan.kindOf(thought) === 'true'
}

function isSignedNode(scan: ScannedObject, node: Node): boolean {
  return SIGNATURES.some((name) => {
    const value = scan.memberOf(node, name)
    return (
      value !== undefined && scan.kindOf(value) === 'string' && scan.endOf(value) - scan.startOf(value) > 2
    )
  })
}

/** The text of a member if it is a string, otherwise undefined. */
export function stringIn(scan: ScannedObject, object: Node, name: string): string | undefined {
  const value = scan.memberOf(object, name)
  if (value === undefined || scan.bytes[scan.startOf(value)] !== QUOTE) return undefined
  return textAt(scan.bytes, scan.startOf(value), scan.endOf(value))
}
