import { wordsFor, withText, withWords } from './constraint-words.ts'
import {
  type Addition,
  AllOf,
  gather,
  type Gathered,
  MAX_DESCRIPTION,
  TreeTexts,
} from './gathered-members.ts'
import type { SchemaWork } from './schema-work.ts'
import {
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
/** Work of adding a schema to a property, in characters. */
const ADDED = 32

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
export function combine(schemas: readonly TreeObject[], work: SchemaWork, keepsAll = false): Combined {
  const [first, ...others] = schemas.filter(({ members }) => members.size > 0)
  if (!first) return { schema: treeObject([]), isEmpty: false }
  if (others.length === 0) return { schema: first, isEmpty: false }
  const result = new Map(first.members)
  const gathered = new Map<string, Gathered>()
  const texts = new TreeTexts(work)
  const words: string[] = []
  let isEmpty = false
  const add = (name: string, given: Tree, value: Tree): Addition => {
    const known = gathered.get(name)
    if (known) return known.add(value)
    if (given === value || texts.of(given) === texts.of(value)) return 'added'
    const begun = gather(name, given, texts, work)
    if (begun) {
      gathered.set(name, begun)
      return begun.add(value)
    }
    work.copy(typeof given === 'string' || name === 'type' ? given : '')
    const both = intersection(name, given, value)
    if (both === undefined) return 'unsaid'
    if (both === EMPTY) return 'empty'
    result.set(name, both)
    return 'added'
  }
  work.spend(first.members.size)
  for (const { members } of others) {
    work.spend(members.size)
    for (const [name, value] of members) {
      const given = result.get(name)
      if (given === undefined) result.set(name, value)
      else {
        const addition = add(name, given, value)
        isEmpty ||= addition === 'empty'
        if (addition === 'added') continue
        work.copy(value)
        words.push(...wordsFor(name, value))
      }
    }
  }
  for (const [name, values] of gathered) result.set(name, values.result())
  if (keepsAll) return { schema: withWords({ members: result }, words), isEmpty }
  const allowed = withOnlyAllowed(result, [first, ...others], texts, work)
  return { schema: withWords(allowed.schema, words), isEmpty: isEmpty || allowed.isEmpty }
}

/**
 * The value of a member that demands what two values of it do. Undefined if there is none, and `EMPTY` if no
 * value can match both.
 */
function intersection(name: string, a: Tree, b: Tree): Tree | typeof EMPTY | undefined {
  switch (name) {
    case 'type':
      return commonTypes(namesOf(a), namesOf(b))
    case 'const':
      return EMPTY
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
  const [inA, inB] = [new Set(a), new Set(b)]
  const common = [
    ...a.filter((type) => inB.has(type) || (type === 'integer' && inB.has('number'))),
    ...b.filter((type) => type === 'integer' && !inA.has(type) && inA.has('number')),
  ]
  if (common.length === 0) return EMPTY
  return common.length === 1 ? JSON.stringify(common[0]) : treeValue(common)
}

/**
 * Applies what each of the combined schemas says about properties that it does not name: removes those that
 * one does not allow, unless they are required, and adds the schema of the others.
 */
function withOnlyAllowed(
  members: ReadonlyMap<string, Tree>,
  schemas: readonly TreeObject[],
  texts: TreeTexts,
  work: SchemaWork,
): Combined {
  const required = new Set(textsOf(members.get('required')))
  const properties = membersOf(members.get('properties'))
  const left = new Map([...properties].map(([name, value]) => [name, new AllOf(value, texts)]))
  const closed: ReadonlyMap<string, Tree>[] = []
  let isSame = true
  for (const schema of schemas) {
    const rest = schema.members.get('additionalProperties')
    if (rest === undefined || rest === 'true' || schema.members.has('patternProperties')) continue
    const own = membersOf(schema.members.get('properties'))
    if (rest === 'false') closed.push(own)
    else {
      work.spend(left.size * ADDED)
      for (const [name, all] of left) if (!own.has(name) && all.add(rest)) isSame = false
    }
  }
  const allowed = closed.length > 0 ? inAll(closed) : undefined
  const isEmpty = allowed !== undefined && [...required].some((name) => !allowed.has(name))
  for (const name of properties.keys())
    if (allowed && !allowed.has(name) && !required.has(name)) {
      left.delete(name)
      isSame = false
    }
  if (isSame) return { schema: { members }, isEmpty }
  const changed = treeObject([...left].map(([name, all]) => [name, all.result()]))
  return { schema: withMembers({ members }, [['properties', changed]]), isEmpty }
}

/** The names that all maps have. The smallest is compared with each of the others. */
function inAll(maps: readonly ReadonlyMap<string, Tree>[]): ReadonlySet<string> {
  const smallest = maps.reduce((a, b) => (b.size < a.size ? b : a))
  return new Set([...smallest.keys()].filter((name) => maps.every((map) => map.has(name))))
}

/**
 * Replaces alternatives for an object by one object with the properties of all of them, of which those are
 * required that all require. Each alternative is described in words.
 */
export function unite(
  base: TreeObject,
  branches: readonly TreeObject[],
  keyword: string,
  work: SchemaWork,
): TreeObject {
  const objects = [...new Set(branches)].filter((branch) => typesOf(branch)?.includes('object') !== false)
  const own = membersOf(base.members.get('properties'))
  const found = new Map<string, Map<string, Tree>>()
  const texts = new TreeTexts(work)
  for (const branch of objects) {
    work.copy(branch)
    for (const [name, schema] of membersOf(branch.members.get('properties'))) {
      if (own.has(name)) continue
      found.set(name, (found.get(name) ?? new Map<string, Tree>()).set(texts.of(schema), schema))
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
  const isRequired = new Set(required)
  const optional = properties.flatMap(([name]) => (isRequired.has(name) ? [] : [name]))
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
