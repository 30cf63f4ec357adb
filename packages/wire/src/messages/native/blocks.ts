import { checkEachObject, schemaImplies, type JsonSchema, kindName, refuseField } from '../../field-check.ts'
import type { JsonKind, Node, ScannedObject } from '../../json/scanned-object.ts'

/** The values that one field of a content block may have. */
export interface FieldRule {
  readonly expected: string
  readonly kinds: readonly JsonKind[]
  /** Whether the field may be missing or null. */
  readonly optional?: boolean
  /** Whether a string is accepted only if it is empty. */
  readonly emptyText?: boolean
}

/**
 * Checks a member of an object without parsing it. Returns undefined if it is optional and absent or null.
 * Throws `invalid_request` with the path of the member.
 */
export function checkField(
  scan: ScannedObject,
  holder: Node,
  path: string,
  key: string,
  { expected, kinds, optional }: FieldRule & { readonly optional?: false },
): Node
export function checkField(
  scan: ScannedObject,
  holder: Node,
  path: string,
  key: string,
  rule: FieldRule,
): Node | undefined
export function checkField(
  scan: ScannedObject,
  holder: Node,
  path: string,
  key: string,
  { expected, kinds, optional, emptyText }: FieldRule,
): Node | undefined {
  const node = scan.memberOf(holder, key)
  if (node === undefined) return optional ? undefined : refuseField(`${path}.${key}`, expected, 'nothing')
  const kind = scan.kindOf(node)
  const isTooLong = emptyText === true && kind === 'string' && scan.endOf(node) - scan.startOf(node) > 2
  if (kinds.includes(kind) && !isTooLong) return node
  if (kind === 'null' && optional) return undefined
  return refuseField(`${path}.${key}`, expected, kindName(scan, node))
}

const TEXT: FieldRule = { expected: 'a string', kinds: ['string'] }
const OBJECT: FieldRule = { expected: 'an object', kinds: ['object'] }
/**
 * Rule for a tool's input. Some clients send an empty input as `null` or an empty string; `docs/api.md:
 * Messages`.
 */
const INPUT: FieldRule = { expected: 'an object', kinds: ['object', 'null', 'string'], emptyText: true }
const CACHE: FieldRule = { ...OBJECT, optional: true }

/** Rules for the fields of one type of content block, or of the source of an image. */
type Fields = readonly (readonly [key: string, rule: FieldRule])[]

/** Rules by type of block. Blocks of other types are not checked. `docs/api.md: Messages`, content blocks. */
export const BLOCK_RULES: ReadonlyMap<string, Fields> = new Map<string, Fields>([
  ['text', [['text', TEXT]]],
  ['image', [['source', OBJECT]]],
  [
    'tool_use',
    [
      ['id', TEXT],
      ['name', TEXT],
      ['input', INPUT],
    ],
  ],
  [
    'tool_result',
    [
      ['tool_use_id', TEXT],
      ['content', { expected: 'a string or an array of blocks', kinds: ['string', 'array'], optional: true }],
    ],
  ],
])

/** Rules by type of source. */
const SOURCES: ReadonlyMap<string, Fields> = new Map<string, Fields>([
  [
    'base64',
    [
      ['media_type', TEXT],
      ['data', TEXT],
    ],
  ],
  ['url', [['url', TEXT]]],
])

/** Fields that have the same rule in every type of content block and in every type of source. */
const KNOWN_TO_ALL: Fields = [
  ['type', TEXT],
  ['cache_control', CACHE],
]

/** Checks the content of a message: a string or blocks. */
export function checkContent(scan: ScannedObject, content: Node, path: string): void {
  if (scan.kindOf(content) === 'string') return
  checkEachObject(scan, content, path, (block, at) => checkBlock(scan, block, at()))
}

/**
 * Checks a list that should contain only text blocks. In a block of another type, only the type and the cache
 * mark are checked.
 */
export function checkTextBlocks(scan: ScannedObject, content: Node, path: string): void {
  checkEachObject(scan, content, path, (block, pathOf) => {
    const at = pathOf()
    const type = typeOf(scan, block, at)
    checkFields(scan, block, at, type === 'text' ? BLOCK_RULES.get(type) : undefined)
  })
}

function checkBlock(scan: ScannedObject, block: Node, path: string): void {
  const type = typeOf(scan, block, path)
  checkFields(scan, block, path, BLOCK_RULES.get(type))
  if (type === 'image') {
    const source = scan.memberOf(block, 'source') as Node
    const at = `${path}.source`
    checkFields(scan, source, at, SOURCES.get(typeOf(scan, source, at)))
  }
  if (type !== 'tool_result') return
  const content = scan.memberOf(block, 'content')
  if (content !== undefined && scan.kindOf(content) === 'array')
    checkContent(scan, content, `${path}.content`)
}

function checkFields(scan: ScannedObject, holder: Node, path: string, fields: Fields = []): void {
  for (const [key, rule] of fields) checkField(scan, holder, path, key, rule)
  checkField(scan, holder, path, 'cache_control', CACHE)
}

function typeOf(scan: ScannedObject, holder: Node, path: string): string {
  return scan.parse(checkField(scan, holder, path, 'type', TEXT) as Node) as string
}

/** Names of the types of JSON values in JSON Schema. */
const TYPES: Readonly<Record<JsonKind, string>> = {
  string: 'string',
  number: 'number',
  true: 'boolean',
  false: 'boolean',
  null: 'null',
  array: 'array',
  object: 'object',
}

/** Schema of the values that a field's rule accepts. */
export function fieldSchema({ kinds, optional, emptyText }: FieldRule): JsonSchema {
  const types = [...new Set([...kinds.map((kind) => TYPES[kind]), ...(optional ? ['null'] : [])])]
  return { type: types.length === 1 ? types[0] : types, ...(emptyText && { maxLength: 0 }) }
}

/** Schema of an object whose fields follow these rules. */
function fieldsSchema(fields: Fields): JsonSchema {
  return {
    type: 'object',
    required: fields.filter(([, { optional }]) => !optional).map(([key]) => key),
    properties: Object.fromEntries(fields.map(([key, rule]) => [key, fieldSchema(rule)])),
  }
}

/**
 * Schema of a list of blocks. Types of blocks without rules are accepted. The content of a tool result is
 * described as blocks of any type.
 */
export function blocksSchema(types: ReadonlyMap<string, Fields> = BLOCK_RULES): JsonSchema {
  return { type: 'array', items: typedSchema(types) }
}

function typedSchema(types: ReadonlyMap<string, Fields>): JsonSchema {
  const rules = [...types].map(([type, fields]) => {
    const must = fieldsSchema(fields)
    const properties = must['properties'] as Record<string, JsonSchema>
    if (type === 'image') properties['source'] = typedSchema(SOURCES)
    if (type === 'tool_result')
      properties['content'] = { ...properties['content'], items: fieldsSchema(KNOWN_TO_ALL) }
    return schemaImplies({ type: 'object', required: ['type'], properties: { type: { const: type } } }, must)
  })
  return { ...fieldsSchema(KNOWN_TO_ALL), allOf: rules }
}
