import { WireError } from './wire-error.ts'
import { asRecord } from './json/record.ts'
import type { Member, Node, ScannedObject } from './json/scanned-object.ts'

/** Highest accepted value for the maximum of output tokens (`docs/api.md: Errors`, max_tokens too large). */
const MAX_OUTPUT_TOKENS = 10_000_000
const MAX_MODEL_LENGTH = 256
const MAX_PREVIEW = 60
/**
 * Regular expression for JSON Schema that excludes control characters. It does not use \p{Cc}, which not all
 * validators support.
 */
const NO_CONTROL_CHARACTER = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$'

/**
 * Checks a member of a request that is present and not null. Throws `invalid_request` if its value is not
 * accepted.
 */
export interface Check {
  (scan: ScannedObject, member: Member): void
  /** Schema of the accepted values; undefined if every value is accepted. */
  readonly schema?: JsonSchema
}

export const isText = withSchema({ type: 'string' }, (value: unknown): boolean => typeof value === 'string')
export const isTexts = withSchema(
  { type: 'array', items: isText.schema },
  (value: unknown): boolean => Array.isArray(value) && value.every(isText),
)
const isObject = withSchema({ type: 'object' }, (value: unknown): boolean => asRecord(value) !== undefined)
export const isNumber = (from: number, to: number): ValueTest =>
  withSchema(
    { type: 'number', minimum: from, maximum: to },
    (value: unknown) => typeof value === 'number' && value >= from && value <= to,
  )
export const isInteger = (from: number, to: number): ValueTest =>
  withSchema(
    { type: 'integer', minimum: from, maximum: to },
    (value: unknown) => Number.isInteger(value) && (value as number) >= from && (value as number) <= to,
  )

/**
 * Checks a request against a table: first that required fields are present, then the members in the order of
 * the body. Null in an optional field counts as absent; fields that are not in the table are not checked.
 */
export function checkMembers(
  scan: ScannedObject,
  required: readonly string[],
  checks: ReadonlyMap<string, Check>,
): void {
  for (const field of required) {
    if (!isPresent(scan, field)) throw new WireError('invalid_request', `'${field}' is required.`)
  }
  for (const member of scan.members.values()) {
    if (scan.kindOf(member.node) !== 'null') checks.get(member.key)?.(scan, member)
  }
}

/** Reports whether the field is present and not null. */
export function isPresent(scan: ScannedObject, field: string): boolean {
  const kind = scan.kind(field)
  return kind !== undefined && kind !== 'null'
}

/**
 * Creates the JSON Schema of requests from the table of their checks. `passed` contains fields that only the
 * provider checks; the schema describes them too.
 */
export function requestSchema(
  required: readonly string[],
  checks: ReadonlyMap<string, Check>,
  passed: ReadonlyMap<string, Check> = new Map(),
): JsonSchema {
  const properties = [
    ...[...checks].map(([field, { schema = {} }]) => [
      field,
      required.includes(field) ? schema : { anyOf: [schema, { type: 'null' }] },
    ]),
    ...[...passed].map(([field, { schema }]) => [field, { description: schema?.['description'] ?? '' }]),
  ]
  return { type: 'object', required, properties: Object.fromEntries(properties) }
}

/**
 * Creates a check of a parsed value. The error message contains the invalid value if it is not an object or
 * array.
 */
export function createValueCheck(expected: string, isValid: ValueTest): Check {
  return withSchema(described(expected, isValid), (scan: ScannedObject, { key, node }: Member) => {
    const value = scan.value(key)
    if (!isValid(value)) refuseField(key, expected, isScalar(value) ? preview(value) : kindName(scan, node))
  })
}

/**
 * Creates a check of a field that may contain a prompt. The error message contains only the type of the
 * value.
 */
export function createSecretCheck(expected: string, isValid: ValueTest): Check {
  return withSchema(described(expected, isValid), (scan: ScannedObject, { key, node }: Member) => {
    if (!isValid(scan.value(key))) refuseField(key, expected, kindName(scan, node))
  })
}

function described(expected: string, { schema }: ValueTest): JsonSchema {
  return { description: expected, ...schema }
}

export const textCheck = createValueCheck('a string', isText)
export const booleanCheck = createValueCheck(
  'true or false',
  withSchema({ type: 'boolean' }, (value: unknown) => typeof value === 'boolean'),
)
export const integerCheck = createValueCheck(
  'an integer',
  withSchema({ type: 'integer' }, (value: unknown) => Number.isInteger(value)),
)
export const objectCheck = createSecretCheck('an object', isObject)

/** Checks a model's name. */
export const modelNameCheck = createValueCheck(
  `a name of 1 to ${MAX_MODEL_LENGTH} characters, none of them a control character`,
  withSchema(
    { type: 'string', minLength: 1, maxLength: MAX_MODEL_LENGTH, pattern: NO_CONTROL_CHARACTER },
    isModelName,
  ),
)

/** Checks a maximum of output tokens, which must be at least 1. */
export const outputTokensCheck = maximumFrom(1)
/** Checks a maximum of output tokens that may be 0, with which the upstream only reads the prompt. */
export const outputTokensOrNoneCheck = maximumFrom(0)

/** Value of a maximum of output tokens in chat and completions requests that means none, as in llama.cpp and LM Studio. */
export const NO_MAXIMUM = -1

/** Checks a maximum of output tokens that is at least `min`, or `NO_MAXIMUM`. */
export function maximumOrUnlimitedFrom(min: number): Check {
  const isMaximum = isInteger(min, MAX_OUTPUT_TOKENS)
  return createValueCheck(
    `an integer from ${min} to ${MAX_OUTPUT_TOKENS}, or ${NO_MAXIMUM} for no maximum`,
    withSchema(
      { anyOf: [isMaximum.schema, { const: NO_MAXIMUM }] },
      (value: unknown) => value === NO_MAXIMUM || isMaximum(value),
    ),
  )
}

function maximumFrom(min: number): Check {
  return createValueCheck(`an integer from ${min} to ${MAX_OUTPUT_TOKENS}`, isInteger(min, MAX_OUTPUT_TOKENS))
}

/**
 * Returns the path of a value in the request, for an error message. It is a function, because the path is
 * needed only if there is an error.
 */
export type GetElementPath = () => string

/** Checks each of the `messages` of a conversation, without parsing them. There must be at least one. */
export function checkEachMessage(
  scan: ScannedObject,
  { node, count }: Member,
  check: (message: Node, path: GetElementPath) => void,
): void {
  const expected = 'a non-empty array of messages'
  if (scan.kindOf(node) !== 'array') refuseField('messages', expected, kindName(scan, node))
  if (count === 0) refuseField('messages', expected, 'an empty array')
  checkEachObject(scan, node, 'messages', check)
}

/** Checks the elements of an array of objects without parsing them. */
export function checkEachObject(
  scan: ScannedObject,
  node: Node,
  path: string,
  check: (element: Node, path: GetElementPath) => void,
): void {
  if (scan.kindOf(node) !== 'array') refuseField(path, 'an array of objects', kindName(scan, node))
  let index = 0
  const pathOf = (): string => `${path}[${index}]`
  for (const element of scan.elements(node)) {
    if (scan.kindOf(element) !== 'object') refuseField(pathOf(), 'an object', kindName(scan, element))
    check(element, pathOf)
    index++
  }
}

function isModelName(value: unknown): boolean {
  return (
    typeof value === 'string' && value !== '' && value.length <= MAX_MODEL_LENGTH && !/\p{Cc}/u.test(value)
  )
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null
}

/** Returns a simple value as JSON, truncated. */
function preview(value: unknown): string {
  const json = JSON.stringify(value).replaceAll(/[^\x20-\x7e]/g, '?')
  return json.length <= MAX_PREVIEW ? json : `${json.slice(0, MAX_PREVIEW)}…`
}

/** Names the type of a value with its article, for a message. */
export function kindName(scan: ScannedObject, node: Node): string {
  const kind = scan.kindOf(node)
  if (kind === 'true' || kind === 'false' || kind === 'null') return kind
  return /^[ao]/.test(kind) ? `an ${kind}` : `a ${kind}`
}

/** Throws `invalid_request` with the field, the expected value and the actual one. */
export function refuseField(field: string, expected: string, actual: string): never {
  throw new WireError('invalid_request', `Invalid '${field}': expected ${expected}, got ${actual}.`)
}

/** A JSON Schema, version 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Tests a parsed value. `schema`, if present, describes the accepted values. */
export interface ValueTest {
  (value: unknown): boolean
  readonly schema?: JsonSchema
}

/** Attaches a JSON Schema to a test or a check. The schema only describes the API. */
export function withSchema<Checked extends (...given: never[]) => unknown>(
  schema: JsonSchema,
  check: Checked,
): Checked & { readonly schema: JsonSchema } {
  return Object.assign(check, { schema })
}

/** Creates a schema that demands `must` for values that match `is`. */
export function schemaImplies(is: JsonSchema, must: JsonSchema): JsonSchema {
  return { anyOf: [{ not: is }, must] }
}

const DIGIT_0 = 0x30
const DIGIT_9 = 0x39

/** Schema of a list of token ids: a text that the client has already converted to tokens. */
export const tokenIdsSchema: JsonSchema = {
  type: 'array',
  minItems: 1,
  items: { type: 'integer', minimum: 0 },
}

/** Whether all elements of a list are numbers. Such a list is one text, given as token ids. */
export function areNumbers(scan: ScannedObject, elements: readonly Node[]): boolean {
  return elements.every((element) => scan.kindOf(element) === 'number')
}

/**
 * Checks that each element is a token id, without parsing them. Throws `invalid_request` with the path
 * otherwise.
 */
export function checkTokenIds(scan: ScannedObject, ids: readonly Node[], path: string): void {
  for (const [index, id] of ids.entries()) {
    if (isTokenId(scan, id)) continue
    const found = scan.kindOf(id) === 'number' ? 'another number' : kindName(scan, id)
    refuseField(`${path}[${index}]`, 'the id of a token', found)
  }
}

function isTokenId(scan: ScannedObject, id: Node): boolean {
  for (let at = scan.startOf(id); at < scan.endOf(id); at++) {
    const byte = scan.bytes[at] as number
    if (byte < DIGIT_0 || byte > DIGIT_9) return false
  }
  return true
}
