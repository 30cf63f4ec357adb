import {
  isTreeObject,
  mapInnerSchemas,
  membersOf,
  elementsOf,
  parseTree,
  textOf,
  textsOf,
  treeObject,
  typesOf,
  type Tree,
  type TreeObject,
  withMembers,
  without,
  writeTree,
} from './schema-tree.ts'

/** Names of types in Google's form, in upper case. */
const TYPES: ReadonlySet<string> = new Set([
  'ARRAY',
  'BOOLEAN',
  'INTEGER',
  'NULL',
  'NUMBER',
  'OBJECT',
  'STRING',
])

/** Members that Google's JSON may spell with underscores, and members with another name in JSON Schema. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['any_of', 'anyOf'],
  ['additional_properties', 'additionalProperties'],
  ['max_items', 'maxItems'],
  ['min_items', 'minItems'],
  ['max_length', 'maxLength'],
  ['min_length', 'minLength'],
  ['max_properties', 'maxProperties'],
  ['min_properties', 'minProperties'],
  ['property_ordering', 'propertyOrdering'],
  ['defs', '$defs'],
  ['ref', '$ref'],
])

/** Members with a number that Google's JSON may write as text: 64-bit integers and doubles. */
const NUMBERS = [
  'maxItems',
  'minItems',
  'maxLength',
  'minLength',
  'maxProperties',
  'minProperties',
  'maximum',
  'minimum',
] as const

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const NULL = '"null"'

/** A schema in Google's form as JSON Schema. */
interface ConvertedSchema {
  readonly schema: string
  /** Whether more was changed than the spelling of names. */
  readonly isMoreThanSpelling: boolean
}

/**
 * Converts a schema in Google's form, a subset of OpenAPI 3.0, to JSON Schema: types in lower case, `nullable`
 * as a union with null, numbers that are written as text, no `format: enum`, properties in the order of
 * `propertyOrdering`. Returns the same text if nothing needs to change. Source: `Schema` in
 * https://ai.google.dev/api/caching#Schema, with `defs` and `ref` of Vertex AI.
 */
export function fromGoogleSchema(text: string): ConvertedSchema {
  let isMoreThanSpelling = false
  const convert = (schema: TreeObject): TreeObject => {
    const inner = mapInnerSchemas(withJsonSchemaNames(schema), (one) =>
      isTreeObject(one) ? convert(one) : one,
    )
    const converted = withNull(withOrder(withValues(inner)))
    isMoreThanSpelling ||= converted !== inner
    return withLowerCaseType(converted)
  }
  const schema = writeTree(convert(parseTree(text)))
  return { schema, isMoreThanSpelling }
}

function withJsonSchemaNames(schema: TreeObject): TreeObject {
  const { members } = schema
  if (![...members.keys()].some((name) => NAMES.has(name))) return schema
  return treeObject([...members].map(([name, value]) => [NAMES.get(name) ?? name, value] as const))
}

/** Replaces the values that JSON Schema writes in another way. */
function withValues(schema: TreeObject): TreeObject {
  const { members } = schema
  const replaced: [string, Tree][] = []
  for (const number of NUMBERS) {
    const digits = textOf(members.get(number))
    if (digits !== undefined && NUMBER.test(digits)) replaced.push([number, digits])
  }
  const reference = textOf(members.get('$ref'))
  if (reference?.startsWith('#/defs/'))
    replaced.push(['$ref', JSON.stringify(reference.replace('#/defs/', '#/$defs/'))])
  const removed = [
    ...(textOf(members.get('type')) === 'TYPE_UNSPECIFIED' ? ['type'] : []),
    ...(textOf(members.get('format')) === 'enum' ? ['format'] : []),
  ]
  const rest = without(schema, removed)
  return replaced.length > 0 ? withMembers(rest, replaced) : rest
}

function withLowerCaseType(schema: TreeObject): TreeObject {
  const type = schema.members.get('type')
  if (type === undefined) return schema
  const names = elementsOf(type)
  const lower: Tree = names.length > 0 ? { elements: names.map(lowerCase) } : lowerCase(type)
  const isSame = names.length > 0 ? elementsOf(lower).every((one, i) => one === names[i]) : lower === type
  return isSame ? schema : withMembers(schema, [['type', lower]])
}

function lowerCase(type: Tree): Tree {
  const name = textOf(type)
  return name !== undefined && TYPES.has(name) ? JSON.stringify(name.toLowerCase()) : type
}

/** Puts the properties into the order that the schema states for them. */
function withOrder(schema: TreeObject): TreeObject {
  const order = schema.members.get('propertyOrdering')
  if (order === undefined) return schema
  const rest = without(schema, ['propertyOrdering'])
  const properties = membersOf(schema.members.get('properties'))
  const first = textsOf(order).filter((name) => properties.has(name))
  const names = [...new Set([...first, ...properties.keys()])]
  const given = [...properties.keys()]
  if (names.every((name, index) => name === given[index])) return rest
  return withMembers(rest, [
    ['properties', treeObject(names.map((name) => [name, properties.get(name) as Tree] as const))],
  ])
}

/** Writes `nullable` as a union with null: in the type, the alternatives and the listed values. */
function withNull(schema: TreeObject): TreeObject {
  const { members } = schema
  const nullable = members.get('nullable')
  if (nullable === undefined) return schema
  const rest = without(schema, ['nullable'])
  if (nullable !== 'true') return rest
  const types = typesOf(schema)
  const added: [string, Tree][] = []
  if (types && !types.some((type) => /^null$/i.test(type)))
    added.push(['type', { elements: [...types.map((type) => JSON.stringify(type)), NULL] }])
  const alternatives = elementsOf(members.get('anyOf'))
  if (alternatives.length > 0)
    added.push(['anyOf', { elements: [...alternatives, treeObject([['type', NULL]])] }])
  const values = elementsOf(members.get('enum'))
  if (values.length > 0 && !values.includes('null')) added.push(['enum', { elements: [...values, 'null'] }])
  const reference = members.get('$ref')
  if (reference !== undefined) {
    added.push(['anyOf', { elements: [treeObject([['$ref', reference]]), treeObject([['type', NULL]])] }])
    return withMembers(without(rest, ['$ref']), added)
  }
  return withMembers(rest, added)
}
