import { combine } from './combine.ts'
import { withWords, wordsFor } from './constraint-words.ts'
import { isDefinition, referenceOf, References } from './references.ts'
import { SchemaWork } from './schema-work.ts'
import {
  elementsOf,
  isTreeObject,
  mapInnerSchemas,
  membersOf,
  parseTree,
  textOf,
  textsOf,
  treeObject,
  type Tree,
  type TreeObject,
  treeValue,
  typesOf,
  withMembers,
  without,
} from './schema-tree.ts'

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const
/** Members that may stand beside a reference or a union. */
const BESIDE: ReadonlySet<string> = new Set(['description', 'title', '$defs', '$id', '$schema'])
/** Members that only values of one type have, by which a missing type is told. */
const OF_TYPES: readonly (readonly [type: string, members: readonly string[]])[] = [
  [
    'object',
    ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties', 'maxProperties'],
  ],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems']],
  ['string', ['pattern', 'format', 'minLength', 'maxLength']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

/**
 * Converts a schema to Moonshot's form: each part has a type, references lead to `$defs`, beside a reference or a union
 * there is only a description, and required properties are declared. Returns the same text if nothing needs to change.
 *
 * Sources: https://github.com/MoonshotAI/walle/blob/main/docs/walle.md and /mfjs-spec.md; Moonshot refuses other schemas
 * ("tools.function.parameters is not a valid moonshot flavored json schema").
 */
export function toMoonshotSchema(text: string, work = new SchemaWork()): string {
  work.begin(text)
  const root = parseTree(text)
  const converted = converter(root, work)(root, 'object')
  return converted === root ? text : work.write(converted)
}

type Convert = (schema: TreeObject, usualType?: string) => TreeObject

function converter(root: TreeObject, work: SchemaWork): Convert {
  const references = new References(root)
  /** What references outside of `$defs` lead to, by the name that it gets there. */
  const moved = new Map<string, string>()
  const taken = new Set(membersOf(root.members.get('$defs')).keys())
  const convert: Convert = (schema, usualType) => {
    const plain = withoutAllOf(withUnionName(schema), work)
    const inner = mapInnerSchemas(plain, (one) => (isTreeObject(one) ? convert(one) : one))
    const pointer = referenceOf(inner)
    if (pointer !== undefined && references.resolve(pointer)) return reference(inner, pointer)
    if (inner.members.has('anyOf')) return union(inner, plain.members.get('anyOf') as Tree)
    return withDeclaredProperties(withPlainTypes(withType(inner, usualType)))
  }
  const reference = (schema: TreeObject, pointer: string): TreeObject => {
    const alone = onlyBeside(schema, '$ref')
    if (pointer === '#' || pointer.startsWith('#/$defs/')) return alone
    return withMembers(alone, [['$ref', JSON.stringify(`#/$defs/${moved.get(pointer) ?? move(pointer)}`)]])
  }
  const move = (pointer: string): string => {
    const number = moved.size + 1
    let name = isDefinition(pointer)
      ? pointer.slice('#/definitions/'.length).replaceAll(/[^\w-]/g, '_')
      : `part${number}`
    while (taken.has(name)) name += `_${number}`
    taken.add(name)
    moved.set(pointer, name)
    return name
  }
  return (schema, usualType) => {
    const converted = convert(schema, usualType)
    if (moved.size === 0) return converted
    const definitions = new Map(membersOf(converted.members.get('$defs')))
    for (const [pointer, name] of moved) {
      const target = references.resolve(pointer)
      if (!target) continue
      work.copy(target)
      definitions.set(name, convert(target))
    }
    return withMembers(without(converted, ['definitions']), [['$defs', { members: definitions }]])
  }
}

function withUnionName(schema: TreeObject): TreeObject {
  const { members } = schema
  const branches = members.get('oneOf')
  if (branches === undefined || members.has('anyOf')) return schema
  return treeObject([...members].map(([name, value]) => [name === 'oneOf' ? 'anyOf' : name, value]))
}

function withoutAllOf(schema: TreeObject, work: SchemaWork): TreeObject {
  const parts = elementsOf(schema.members.get('allOf')).filter(isTreeObject)
  if (!schema.members.has('allOf')) return schema
  return combine([without(schema, ['allOf']), ...parts], work, true).schema
}

/** Says in words what stands beside a reference or a union. */
function onlyBeside(schema: TreeObject, keyword: string): TreeObject {
  const others = [...schema.members].filter(([name]) => name !== keyword && !BESIDE.has(name))
  if (others.length === 0) return schema
  const words = others.flatMap(([name, value]) => (name === 'type' ? [] : wordsFor(name, value)))
  return withWords(
    without(
      schema,
      others.map(([name]) => name),
    ),
    words,
  )
}

/**
 * A union whose branches have the types. One that only adds to an object or a list is said in words; `given`: its
 * branches as they were.
 */
function union(schema: TreeObject, given: Tree): TreeObject {
  const { members } = schema
  const branches = members.get('anyOf') as Tree
  if (members.has('properties') || members.has('items') || members.has('enum'))
    return withDeclaredProperties(
      withPlainTypes(withType(withWords(without(schema, ['anyOf']), wordsFor('anyOf', given)))),
    )
  const type = members.get('type')
  if (type === undefined) return onlyBeside(schema, 'anyOf')
  const typed = elementsOf(branches).map((branch) =>
    isTreeObject(branch) && hasAnyType(branch) ? withMembers(branch, [['type', type]]) : branch,
  )
  return onlyBeside(withMembers(schema, [['anyOf', { elements: typed }]]), 'anyOf')
}

/** Whether a schema got all types because it states none. */
function hasAnyType(schema: TreeObject): boolean {
  return typesOf(schema)?.length === TYPES.length
}

function withType(schema: TreeObject, usualType?: string): TreeObject {
  const { members } = schema
  if (members.has('type')) return schema
  const constant = members.get('const')
  if (constant !== undefined && !members.has('enum'))
    return withType(withMembers(without(schema, ['const']), [['enum', { elements: [constant] }]]))
  const type =
    OF_TYPES.find(([, names]) => names.some((name) => members.has(name)))?.[0] ??
    typeOfValues(elementsOf(members.get('enum'))) ??
    usualType
  return treeObject([['type', type === undefined ? treeValue(TYPES) : JSON.stringify(type)], ...members])
}

function typeOfValues(values: readonly Tree[]): string | undefined {
  const [type, ...others] = new Set(values.map(typeOfValue))
  return others.length === 0 ? type : undefined
}

function typeOfValue(value: Tree): string {
  if (typeof value !== 'string') return isTreeObject(value) ? 'object' : 'array'
  return value === 'null' ? value : typeof JSON.parse(value)
}

/** Divides a list of types that has other members beside it into a union. */
function withPlainTypes(schema: TreeObject): TreeObject {
  const { members } = schema
  const types = textsOf(members.get('type'))
  const others = [...members].filter(([name]) => name !== 'type' && !BESIDE.has(name))
  if (types.length === 0 || others.length === 0 || members.has('enum')) return schema
  const branches = types.map((type) => {
    const names =
      OF_TYPES.find(([name]) => name === type || (name === 'number' && type === 'integer'))?.[1] ?? []
    return treeObject([['type', JSON.stringify(type)], ...others.filter(([name]) => names.includes(name))])
  })
  const rest = without(schema, ['type', ...others.map(([name]) => name)])
  const words = others.flatMap(([name, value]) =>
    OF_TYPES.some(([, names]) => names.includes(name)) ? [] : wordsFor(name, value),
  )
  return withMembers(withWords(rest, words), [['anyOf', { elements: branches }]])
}

function withDeclaredProperties(schema: TreeObject): TreeObject {
  const required = elementsOf(schema.members.get('required'))
  const properties = membersOf(schema.members.get('properties'))
  const declared = required.filter((name) => properties.has(textOf(name) ?? ''))
  return declared.length === required.length
    ? schema
    : withMembers(schema, [['required', { elements: declared }]])
}
