import { wordsFor, withText, withWords } from './constraint-words.ts'
import {
  elementsOf,
  isTreeObject,
  membersOf,
  textOf,
  textsOf,
  treeObject,
  treeValue,
  typesOf,
  type Tree,
  type TreeObject,
  withMembers,
  writeTree,
} from './schema-tree.ts'

/** Maximum length of a description that is joined from several, in characters. */
const MAX_DESCRIPTION = 20_000
/** Maximum numbers of names and of characters with which an alternative is described. */
const MAX_NAMES = 30
const MAX_TITLE = 300

const LARGER: ReadonlySet<string> = new Set([
  'minimum',
  'exclusiveMinimum',
  'minLength',
  'minItems',
  'minProperties',
])
const SMALLER: ReadonlySet<string> = new Set([
  'maximum',
  'exclusiveMaximum',
  'maxLength',
  'maxItems',
  'maxProperties',
])
/** Stands for a demand that no value can meet. */
const EMPTY = Symbol('empty')
/** Members of which the last one applies. */
const LAST: ReadonlySet<string> = new Set(['title', 'default', 'examples', '$schema', '$id', '$comment'])

/** Several schemas as one. */
interface Combined {
  readonly schema: TreeObject
  /** Whether no value can match all of them. */
  readonly isEmpty: boolean
}

/**
 * Combines schemas, all of which a value must match, into one. What it cannot express is added to the
 * description in words. `keepsAll` keeps optional properties that one of the schemas does not allow.
 */
export function combine(schemas: readonly TreeObject[], keepsAll = false): Combined {
  const [first, ...others] = schemas.filter(({ members }) => members.size > 0)
  if (!first) return { schema: treeObject([]), isEmpty: false }
  const result = new Map(first.members)
  const words: string[] = []
  let isEmpty = false
  for (const { members } of others) {
    for (const [name, value] of members) {
      const given = result.get(name)
      const both =
        given === undefined || given === value || writeTree(given) === writeTree(value)
          ? (given ?? value)
          : intersection(name, given, value)
      if (both === undefined) words.push(...wordsFor(name, value))
      else if (both === EMPTY) {
        isEmpty = true
        words.push(...wordsFor(name, value))
      } else result.set(name, both)
    }
  }
  if (others.length === 0) return { schema: first, isEmpty }
  if (keepsAll) return { schema: withWords({ members: result }, words), isEmpty }
  const allowed = withOnlyAllowed(result, [first, ...others])
  return { schema: withWords(allowed.schema, words), isEmpty: isEmpty || allowed.isEmpty }
}

/**
 * The value of a member that demands what two values of it do. Undefined if there is none, and `EMPTY` if no
 * value can match both.
 */
function intersection(name: string, a: Tree, b: Tree): Tree | typeof EMPTY | undefined {
  switch (name) {
    case 'description': {
      const joined = `${textOf(a)}\n\n${textOf(b)}`
      return joined.length > MAX_DESCRIPTION ? a : JSON.stringify(joined)
    }
    case 'type':
      return commonTypes(namesOf(a), namesOf(b))
    case 'required':
      return treeValue([...new Set([...textsOf(a), ...textsOf(b)])])
    case 'enum': {
      const values = new Set(elementsOf(b).map(writeTree))
      const common = elementsOf(a).filter((value) => values.has(writeTree(value)))
      return common.length > 0 ? { elements: common } : EMPTY
    }
    case 'const':
      return EMPTY
    case 'properties':
    case '$defs':
    case 'definitions':
      return joinedMembers(membersOf(a), membersOf(b), name === 'properties')
    case 'items':
      return isTreeObject(a) && isTreeObject(b) ? allOf(a, b) : undefined
    case 'allOf':
      return { elements: [...elementsOf(a), ...elementsOf(b)] }
    case 'additionalProperties':
      if (a === 'false' || b === 'false') return 'false'
      return a === 'true' ? b : b === 'true' ? a : allOf(a, b)
    default:
      if (LAST.has(name)) return b
      if (LARGER.has(name)) return Number(a) >= Number(b) ? a : b
      if (SMALLER.has(name)) return Number(a) <= Number(b) ? a : b
      return undefined
  }
}

function namesOf(type: Tree): readonly string[] {
  return typesOf(treeObject([['type', type]])) ?? []
}

function commonTypes(a: readonly string[], b: readonly string[]): Tree | typeof EMPTY {
  const common = [
    ...a.filter((type) => b.includes(type) || (type === 'integer' && b.includes('number'))),
    ...b.filter((type) => type === 'integer' && !a.includes(type) && a.includes('number')),
  ]
  if (common.length === 0) return EMPTY
  return common.length === 1 ? JSON.stringify(common[0]) : treeValue(common)
}

function joinedMembers(
  a: ReadonlyMap<string, Tree>,
  b: ReadonlyMap<string, Tree>,
  areSchemas: boolean,
): TreeObject {
  const joined = new Map(a)
  for (const [name, value] of b) {
    const given = joined.get(name)
    if (given === undefined) joined.set(name, value)
    else if (areSchemas && given !== value && writeTree(given) !== writeTree(value))
      joined.set(name, allOf(given, value))
  }
  return { members: joined }
}

function allOf(a: Tree, b: Tree): TreeObject {
  return treeObject([['allOf', { elements: [a, b] }]])
}

/**
 * Applies what each of the combined schemas says about properties that it does not name: removes those that
 * one does not allow, unless they are required, and adds the schema of the others.
 */
function withOnlyAllowed(members: ReadonlyMap<string, Tree>, schemas: readonly TreeObject[]): Combined {
  const required = new Set(textsOf(members.get('required')))
  let properties = membersOf(members.get('properties'))
  let isEmpty = false
  for (const schema of schemas) {
    const rest = schema.members.get('additionalProperties')
    if (rest === undefined || rest === 'true' || schema.members.has('patternProperties')) continue
    const own = membersOf(schema.members.get('properties'))
    const isClosed = rest === 'false'
    isEmpty ||= isClosed && [...required].some((name) => !own.has(name))
    if ([...properties.keys()].every((name) => own.has(name))) continue
    properties = new Map(
      [...properties].flatMap(([name, value]): (readonly [string, Tree])[] => {
        if (own.has(name) || (isClosed && required.has(name))) return [[name, value]]
        return isClosed ? [] : [[name, allOf(value, rest)]]
      }),
    )
  }
  if (properties === membersOf(members.get('properties'))) return { schema: { members }, isEmpty }
  return { schema: withMembers({ members }, [['properties', { members: properties }]]), isEmpty }
}

/**
 * Replaces alternatives for an object by one object with the properties of all of them, of which those are
 * required that all require. Each alternative is described in words.
 */
export function unite(base: TreeObject, branches: readonly TreeObject[], keyword: string): TreeObject {
  const objects = [...new Set(branches)].filter((branch) => typesOf(branch)?.includes('object') !== false)
  const own = membersOf(base.members.get('properties'))
  const found = new Map<string, Map<string, Tree>>()
  const texts = new Map<Tree, string>()
  for (const branch of objects) {
    for (const [name, schema] of membersOf(branch.members.get('properties'))) {
      if (own.has(name)) continue
      let text = texts.get(schema)
      if (text === undefined) texts.set(schema, (text = writeTree(schema)))
      found.set(name, (found.get(name) ?? new Map<string, Tree>()).set(text, schema))
    }
  }
  const properties = [...found].map(([name, schemas]) => [name, anyOf([...schemas.values()])] as const)
  const required = [...new Set([...textsOf(base.members.get('required')), ...requiredByAll(objects)])]
  const isClosed = objects.length > 0 && objects.every(isClosedObject)
  const united = withMembers(base, [
    ['type', '"object"'],
    ['properties', treeObject([...own, ...properties])],
    ...(required.length > 0 ? [['required', treeValue(required)] as const] : []),
    ...(isClosed && !base.members.has('additionalProperties')
      ? [['additionalProperties', 'false'] as const]
      : []),
  ])
  const rule = keyword === 'oneOf' ? 'Exactly one of these applies' : 'At least one of these applies'
  return withText(united, `${rule}: ${described(branches)}`)
}

function anyOf(schemas: readonly Tree[]): Tree {
  const [only, ...others] = schemas
  if (only !== undefined && others.length === 0) return only
  return treeObject([['anyOf', { elements: schemas }]])
}

function isClosedObject({ members }: TreeObject): boolean {
  return members.get('additionalProperties') === 'false'
}

function requiredByAll(objects: readonly TreeObject[]): readonly string[] {
  const [first, ...others] = objects.map((one) => new Set(textsOf(one.members.get('required'))))
  return first ? [...first].filter((name) => others.every((one) => one.has(name))) : []
}

/** Describes alternatives, each with its number, as long as there is room. */
function described(branches: readonly TreeObject[]): string {
  let text = ''
  for (const [index, branch] of branches.entries()) {
    const one = `(${index + 1}) ${branchWords(branch)}`
    if (text.length + one.length > MAX_DESCRIPTION) return `${text} …`
    text += `${index > 0 ? ' ' : ''}${one}.`
  }
  return text
}

function branchWords(branch: TreeObject): string {
  const { members } = branch
  const about = textOf(members.get('title')) ?? textOf(members.get('description'))
  const properties = [...membersOf(members.get('properties'))]
  const fixed = properties.flatMap(([name, schema]) => {
    const value = membersOf(schema).get('const') ?? membersOf(schema).get('enum')
    return value === undefined ? [] : [`${JSON.stringify(name)} is ${writeTree(value).slice(0, MAX_TITLE)}`]
  })
  const required = textsOf(members.get('required'))
  const optional = properties.flatMap(([name]) => (required.includes(name) ? [] : [name]))
  const types = typesOf(branch)
  const parts = [
    ...(about === undefined ? [] : [about.slice(0, MAX_TITLE)]),
    ...(types && !types.includes('object') ? [`of type ${types.join(' or ')}`] : []),
    ...fixed.slice(0, MAX_NAMES),
    ...(required.length > 0 ? [`requires ${listed(required)}`] : []),
    ...(optional.length > 0 ? [`may have ${listed(optional)}`] : []),
  ]
  return parts.length > 0 ? parts.join(', ') : 'any value'
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => JSON.stringify(name))
  return [...shown, ...(names.length > MAX_NAMES ? ['…'] : [])].join(', ')
}
