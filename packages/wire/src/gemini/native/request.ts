import {
  type Check,
  checkEachObject,
  checkMembers,
  createSecretCheck,
  isInteger,
  isNumber,
  isTexts,
  type JsonSchema,
  kindName,
  objectCheck,
  refuseField,
  requestSchema,
  textCheck,
  type ValueTest,
  withSchema,
} from '../../field-check.ts'
import type { ProviderTools } from '../../tool-use.ts'
import type { Fields } from '../../field.ts'
import { asRecord } from '../../json/record.ts'
import type { Member, Node, ScannedObject } from '../../json/scanned-object.ts'
import { type PromptBounds, type PromptText, respondsWithMedia } from '../../prompt-tokens.ts'
import { withInstruction } from '../../system-prompt.ts'
import { GEMINI_PROMPT_RULES, mediaOfContents, NAMED_FIELDS, NO_MEDIA, promptBound } from './prompt.ts'
import {
  camelCase,
  memberInEitherSpelling,
  valueNodeOf,
  snakeCase,
  spellingsOf,
  topMember,
  parseTopMember,
} from '../field-spelling.ts'
import { KnownMemberNames } from '../../json/known-names.ts'
import { requestNames } from '../../request-names.ts'
import { GEMINI_EMBED_REQUEST, GEMINI_REQUEST } from '../shape.ts'
import { applyEdits } from '../../json/json-edit.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { promptText } from '../../prompt-text.ts'
import { modelResourceName } from '../model-name.ts'

/** The fields of a request that the gateway reads. All other fields are forwarded unchanged. */
export interface GeminiRequest extends PromptBounds {
  readonly maxTokens: number | undefined
  /** Number of candidates requested. */
  readonly candidateCount: number
  /** Tools of the request that the provider runs; absent if there are none. */
  readonly providerTools?: ProviderTools
  /** Whether the contents of the request are only texts. */
  readonly hasOnlyTexts: boolean
}

/** Highest accepted value for the maximum of output tokens, as in other protocols. */
const MAX_OUTPUT_TOKENS = 10_000_000

const CONFIG = 'generationConfig'

/** Fields of `generationConfig` that determine how much quota is reserved for the call. */
const CONFIG_RULES: readonly ConfigRule[] = [
  ['maxOutputTokens', `an integer from 1 to ${MAX_OUTPUT_TOKENS}`, isInteger(1, MAX_OUTPUT_TOKENS)],
  ['candidateCount', 'an integer from 1 to 8', isInteger(1, 8)],
]

/** Check for a field whose value must be an array or a single object. */
const list = createSecretCheck(
  'an array or an object',
  withSchema(
    { type: ['array', 'object'] },
    (value: unknown) => Array.isArray(value) || asRecord(value) !== undefined,
  ),
)

/**
 * Request fields that the gateway needs to choose a channel, or to reserve quota and charge the call. All
 * other fields are checked only by the provider.
 */
const CHECKS: ReadonlyMap<string, Check> = spelled([
  ['contents', withSchema({ type: ['array', 'object'] }, checkContents)],
  ['tools', list],
  [CONFIG, withSchema({ type: 'object' }, checkConfig)],
  ['serviceTier', textCheck],
])

const REQUIRED = ['contents'] as const

/** Builds the JSON Schema of valid Gemini requests to generate content. */
export function geminiRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS, GEMINI_CONVERSION_CHECKS)
}

/**
 * Checks a request, and returns what the gateway reads. `model` is the model's name in the path. Throws
 * `invalid_request` that names the field.
 */
export function readGeminiRequest(scan: ScannedObject, model: string): GeminiRequest {
  checkMembers(scan, REQUIRED, CHECKS)
  const config = asRecord(parseTopMember(scan, CONFIG)) ?? {}
  const isPlain = hasOnlyTexts(scan)
  const offered = offeredTools(scan)
  const media = isPlain ? NO_MEDIA : mediaOfContents(scan, model)
  return {
    maxTokens: memberInEitherSpelling(config, 'maxOutputTokens') as number | undefined,
    candidateCount: (memberInEitherSpelling(config, 'candidateCount') as number | undefined) ?? 1,
    ...(offered && { providerTools: offered }),
    hasOnlyTexts: isPlain,
    promptBound: promptBound(scan) + media.excess,
    namesPrompt: NAMED_FIELDS.some((field) => topMember(scan, field)),
    hasMedia: media.isAny || answersInMedia(memberInEitherSpelling(config, 'responseModalities'), model),
  }
}

/**
 * Whether an answer may contain images or audio, because the request asks for them or the model produces them
 * without being asked.
 */
function answersInMedia(modalities: unknown, model: string): boolean {
  if (!Array.isArray(modalities)) return respondsWithMedia(model)
  return modalities.some((modality) => !/^text$/i.test(String(modality)))
}

function checkContents(scan: ScannedObject, { key, node, count }: Member): void {
  if (scan.kindOf(node) === 'object') return
  if (scan.kindOf(node) === 'array' && count === 0) refuseField(key, 'at least one content', 'an empty array')
  checkEachObject(scan, node, key, (content, path) => {
    const parts = valueNodeOf(scan, content, 'parts')
    if (parts !== undefined && scan.kindOf(parts) !== 'object')
      checkEachObject(scan, parts, `${path()}.parts`, () => {})
  })
}

function checkConfig(scan: ScannedObject, { key, node }: Member): void {
  if (scan.kindOf(node) !== 'object') refuseField(key, 'an object', kindName(scan, node))
  checkGenerationConfig(scan.value(key) as Fields, key, CONFIG_RULES)
}

/** Tools other than functions, by the members of the request that offer them. */
function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const list = topMember(scan, 'tools')?.node
  if (list === undefined) return undefined
  const tools = (scan.kindOf(list) === 'array' ? scan.elements(list) : [list])
    .filter((tool) => scan.kindOf(tool) === 'object')
    .flatMap((tool) => scan.entries(tool))
    .filter(({ node }) => scan.kindOf(node) !== 'null')
    .map(({ key }) => ({ type: camelCase(key) }))
    .filter(({ type }) => type !== 'functionDeclarations')
  return tools.length > 0 ? { tools } : undefined
}

/** Returns a table with each check under both names of its field: in camel case and in snake case. */
function spelled(fields: readonly (readonly [string, Check])[]): ReadonlyMap<string, Check> {
  return new Map(
    fields.flatMap(([name, check]) => [name, snakeCase(name)].map((spelling) => [spelling, check] as const)),
  )
}

/**
 * Request fields that are checked only when the request is converted. If it is forwarded without conversion,
 * the provider checks them.
 */
export const GEMINI_CONVERSION_CHECKS: ReadonlyMap<string, Check> = spelled([
  ['systemInstruction', objectCheck],
  ['toolConfig', objectCheck],
  ['safetySettings', list],
  ...NAMED_FIELDS.map((field) => [field, textCheck] as const),
])

/** Rule for a field of `generationConfig`. The name is in camel case; requests may use snake case. */
type ConfigRule = readonly [name: string, expected: string, test: ValueTest]

/**
 * Fields of `generationConfig` that are checked only when a request is converted. Numbers may have fractions
 * where the provider's types allow them.
 */
export const CONVERSION_CONFIG_RULES: readonly ConfigRule[] = [
  ['temperature', 'a number from 0 to 2', isNumber(0, 2)],
  ['topP', 'a number from 0 to 1', isNumber(0, 1)],
  ['topK', 'a number from 0 to 1000', isNumber(0, 1000)],
  ['stopSequences', 'an array of strings', isTexts],
  ['seed', 'an integer from -2147483648 to 2147483647', isInteger(-(2 ** 31), 2 ** 31 - 1)],
  ['presencePenalty', 'a number from -2 to 2', isNumber(-2, 2)],
  ['frequencyPenalty', 'a number from -2 to 2', isNumber(-2, 2)],
]

/** Checks fields of `generationConfig`, which is at `path`. Throws `invalid_request` that names the field. */
export function checkGenerationConfig(config: Fields, path: string, rules: readonly ConfigRule[]): void {
  for (const [name, expected, test] of rules) {
    const value = memberInEitherSpelling(config, name)
    if (value !== undefined && !test(value))
      refuseField(`${path}.${name}`, expected, typeof value === 'number' ? String(value) : 'something else')
  }
}

/**
 * Whether the contents are only texts, without media, calls, thoughts and signatures. For most requests,
 * examining each part is much faster than searching all bytes.
 */
export function hasOnlyTexts(scan: ScannedObject): boolean {
  const contents = topMember(scan, 'contents')
  if (!contents || scan.kindOf(contents.node) !== 'array') return false
  for (const content of scan.elements(contents.node)) {
    const parts = valueNodeOf(scan, content, 'parts')
    if (parts === undefined || scan.kindOf(parts) !== 'array') return false
    for (const part of scan.elements(parts)) if (!isText(scan, part)) return false
  }
  return true
}

function isText(scan: ScannedObject, part: Node): boolean {
  return (
    scan.kindOf(part) === 'object' &&
    scan.values(part).length === 1 &&
    scan.memberOf(part, 'text') !== undefined
  )
}

const FIELDS = [...CHECKS.keys(), ...GEMINI_CONVERSION_CHECKS.keys(), 'model', 'store', 'stream']

// The members of a function's response are not listed, because the client chooses their names.
const functionResponse = new KnownMemberNames(['id', 'name', 'response'])

/** Names of the fields of requests that generate content, or count the tokens of such a request. */
export const geminiFieldNames: KnownMemberNames = requestNames(FIELDS, GEMINI_REQUEST, {
  members: { GenerationConfig: 'routingConfig modelSelectionConfig', Tool: 'mcpServers' },
  below: {
    'Part.functionResponse': () => functionResponse,
    'Request.generateContentRequest': () => geminiFieldNames,
  },
  spellingsOf,
})

/** Names of the fields of embeddings requests, for one content or several. */
export const embedFieldNames = requestNames([], GEMINI_EMBED_REQUEST, {
  below: { 'Part.functionResponse': () => functionResponse },
  spellingsOf,
})

/** Member that contains a complete request. Only this form can contain a system instruction and tools. */
const REQUEST = 'generateContentRequest'

/**
 * Checks a request to count tokens, which contains contents or a complete request. Throws `invalid_request`.
 */
export function checkCountRequest(scan: ScannedObject): void {
  readGeminiRequest(countedPart(scan), '')
}

/** Throws `invalid_request` if a request refers to content that only its provider has. */
export function refuseNamedContent(scan: ScannedObject): void {
  for (const field of NAMED_FIELDS)
    if (topMember(scan, field))
      refuseField(field, `all of the conversation in 'contents'`, 'content that only its provider has')
}

/**
 * Returns the text whose tokens are to be counted. Throws `invalid_request` if content is stored at the
 * provider.
 */
export function textToCount(scan: ScannedObject): PromptText {
  const part = countedPart(scan)
  refuseNamedContent(part)
  return promptText(part, GEMINI_PROMPT_RULES, '')
}

/**
 * Writes the request with the upstream's name of the model. It must be replaced also in a complete request
 * inside, which repeats the name.
 */
export function countTokensBody(scan: ScannedObject, upstreamModel: string): Buffer {
  const member = topMember(scan, REQUEST)
  if (!member) return scan.bytes
  const inner = countedPart(scan)
  const named = inner.value('model')
  if (typeof named !== 'string' || modelResourceName(named) === modelResourceName(upstreamModel))
    return scan.bytes
  const model = JSON.stringify(modelResourceName(upstreamModel))
  const text = applyEdits(inner.bytes, inner, { remove: [], replace: new Map([['model', model]]) }).toString()
  return applyEdits(scan.bytes, scan, { remove: [], replace: new Map([[member.key, text]]) })
}

/**
 * Adds instructions of the gateway before those of a request to count tokens. Google's API takes instructions only in a
 * complete request, so one is made of contents alone; Vertex AI takes them beside the contents.
 */
export function countBodyWithPrompt(
  scan: ScannedObject,
  upstreamModel: string,
  prompt: string,
  isVertex: boolean,
): Buffer {
  const member = topMember(scan, REQUEST)
  const inner = countedPart(scan)
  const replace = new Map([withInstruction(inner, prompt)])
  const isWrapped = !member && !isVertex
  if (isWrapped) replace.set('model', JSON.stringify(modelResourceName(upstreamModel)))
  const counted = applyEdits(inner.bytes, inner, { remove: [], replace })
  if (isWrapped) return Buffer.from(`{"${REQUEST}":${counted.toString()}}`)
  if (!member) return counted
  return applyEdits(scan.bytes, scan, { remove: [], replace: new Map([[member.key, counted.toString()]]) })
}

function countedPart(scan: ScannedObject): ScannedObject {
  const member = topMember(scan, REQUEST)
  if (!member) return scan
  if (scan.kindOf(member.node) !== 'object') refuseField(member.key, 'an object', 'something else')
  return scanObject(Buffer.from(scan.textOf(member.node)), RESPONSE_LIMITS)
}
