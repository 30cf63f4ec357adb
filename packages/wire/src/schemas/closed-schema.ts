import type { OutputSchema } from '../conversation.ts'
import { combine, unite } from './combine.ts'
import { withText, withWords, wordsFor } from './constraint-words.ts'
import { isDefinition, referenceOf, References } from './references.ts'
import { SchemaWork, TooMuchWork } from './schema-work.ts'
import {
  elementsOf,
  innerSchemas,
  isTreeObject,
  membersOf,
  parseTree,
  textOf,
  textsOf,
  treeObject,
  typesOf,
  type Tree,
  type TreeObject,
  withMembers,
  without,
} from './schema-tree.ts'

/** Formats of strings that the providers enforce. */
const FORMATS: ReadonlySet<string | undefined> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

/**
 * Regular expressions that the providers support: classes, groups and quantifiers. Not supported are
 * look-around, other groups with `(?`, references to groups, word boundaries and large repetitions.
 */
const SIMPLE_PATTERN =
  /^\^?(?:[^\\()[\]{}?*+|^$]|\\[dws]|\\[^\w\s]|\[\^?(?:[^\\[\]]|\\[dws]|\\[^\w\s])+\]|\((?!\?)|\)|\||(?:[?*+]|\{\d{1,2}(?:,\d{0,2})?\})(?![?*+{]))*\$?$/

/** Whether the value of a member is accepted. */
type Check = (value: Tree) => boolean

const isScalar: Check = (value) => typeof value === 'string'
const isAny: Check = () => true

/** Members without schemas that the providers accept, and with which values. */
const ACCEPTED: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['type', (value) => textOf(value) !== undefined || elementsOf(value).length > 0],
  ['required', (value) => typeof value === 'object' && 'elements' in value],
  ['additionalProperties', (value) => value === 'false'],
  ['enum', (value) => elementsOf(value).length > 0 && elementsOf(value).every(isScalar)],
  ['const', isScalar],
  ['default', isAny],
  ['description', isAny],
  ['title', isAny],
  ['format', (value) => FORMATS.has(textOf(value))],
  ['minItems', (value) => value === '0' || value === '1'],
  ['pattern', (value) => SIMPLE_PATTERN.test(textOf(value) ?? '(?')],
])

/** Members with schemas that the providers accept. */
const WITH_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'items',
  'anyOf',
  'allOf',
  '$ref',
  '$defs',
  'definitions',
])

/** Members that say something about a schema, but do not restrict its values. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title',
  'description',
  'default',
  'examples',
  '$defs',
  'definitions',
  '$schema',
  '$id',
  '$comment',
])

/** Members that only say something about objects. */
const OBJECT_MEMBERS = ['properties', 'required', 'additionalProperties'] as const

/** Values that may be copied where a reference cannot stay, so that a schema does not grow without limit. */
const MAX_COPIED = 20_000
/** Depth of nesting up to which references are replaced by copies. */
const MAX_DEPTH = 300

/**
 * Converts a schema to the subset that Anthropic and Bedrock accept for structured output and strict tools:
 * objects are closed, and what the subset lacks is said in the descriptions. A schema in the subset is
 * returned unchanged.
 *
 * Sources: https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations,
 * https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html.
 */
export function toClosedSchema(text: string, work = new SchemaWork()): string {
  work.begin(text)
  const root = parseTree(text)
  const references = new References(root)
  if (new SubsetCheck(references).accepts(root, [])) return text
  return work.write(new SchemaCloser(references, work).close(root, []))
}

const closedFormats = new WeakMap<OutputSchema, OutputSchema>()

/** Converts the schema of an output format, once for each format. */
export function toClosedFormat(format: OutputSchema, work: SchemaWork): OutputSchema {
  let known = closedFormats.get(format)
  if (!known) closedFormats.set(format, (known = { ...format, schema: toClosedSchema(format.schema, work) }))
  return known
}

/** Whether a schema is of an object, at least as one of its types. */
function isObject(schema: TreeObject): boolean {
  const types = typesOf(schema)
  if (types) return types.includes('object')
  return OBJECT_MEMBERS.some((name) => schema.members.has(name))
}

/** Tells whether a schema is in the subset. */
class SubsetCheck {
  readonly #references: References

  constructor(references: References) {
    this.#references = references
  }

  accepts(tree: Tree, outer: readonly string[]): boolean {
    if (!isTreeObject(tree)) return false
    const within = this.#references.within(tree, outer)
    const { members } = tree
    const pointer = referenceOf(tree)
    if (pointer !== undefined)
      return (
        members.size === 1 &&
        isDefinition(pointer) &&
        this.#references.resolve(pointer) !== undefined &&
        !this.#references.isRecursive(pointer, within)
      )
    if ((isObject(tree) || members.has('properties')) && !members.has('additionalProperties')) return false
    return [...members].every(
      ([name, value]) => ACCEPTED.get(name)?.(value) ?? this.#acceptsInner(name, value, within),
    )
  }

  #acceptsInner(name: string, value: Tree, outer: readonly string[]): boolean {
    if (!WITH_SCHEMAS.has(name)) return false
    switch (name) {
      case 'properties':
        return isTreeObject(value) && [...value.members.values()].every((one) => this.accepts(one, outer))
      case '$defs':
      case 'definitions':
        return isTreeObject(value) && [...value.members.values()].every((one) => this.accepts(one, []))
      case 'items':
        return this.accepts(value, outer)
      default: {
        const parts = elementsOf(value)
        const mayRefer = name !== 'allOf' || !parts.some((one) => membersOf(one).has('$ref'))
        return mayRefer && parts.length > 0 && parts.every((one) => this.accepts(one, outer))
      }
    }
  }
}

/** Writes schemas in the subset. */
class SchemaCloser {
  readonly #references: References
  readonly #sizes = new WeakMap<TreeObject, number>()
  readonly #work: SchemaWork
  #left = MAX_COPIED
  #depth = 0

  constructor(references: References, work: SchemaWork) {
    this.#references = references
    this.#work = work
  }

  /** Closes a schema that is inside the schemas to which the pointers `outer` lead. */
  close(tree: Tree, outer: readonly string[]): TreeObject {
    if (!isTreeObject(tree)) return treeObject([])
    this.#depth++
    const closed = this.#close(tree, outer)
    this.#depth--
    return closed
  }

  #close(tree: TreeObject, outer: readonly string[]): TreeObject {
    const within = this.#references.within(tree, outer)
    const pointer = referenceOf(tree)
    if (pointer !== undefined) return this.#closeReference(tree, pointer, within)
    const parts = elementsOf(tree.members.get('allOf'))
    if (tree.members.has('allOf')) return this.close(this.#combined(tree, parts, within), within)
    for (const keyword of ['anyOf', 'oneOf'])
      if (tree.members.has(keyword)) return this.#closeUnion(tree, keyword, within)
    return this.#closeMembers(tree, within)
  }

  #closeReference(schema: TreeObject, pointer: string, outer: readonly string[]): TreeObject {
    const rest = without(schema, ['$ref'])
    const target = this.#references.resolve(pointer)
    if (!target) return this.close(withWords(rest, [`as ${pointer} defines it`]), outer)
    if (this.#references.isRecursive(pointer, outer)) {
      const { schema: cut, words } = this.#references.cut(target)
      this.#work.spend(words.length)
      const copy = this.#takes(cut) ? combine([cut, rest], this.#work).schema : rest
      return this.close(withWords(copy, [`recursive: like ${pointer}${words}`]), outer)
    }
    if (isDefinition(pointer) && (rest.members.size === 0 || !this.#takes(target)))
      return treeObject([['$ref', JSON.stringify(pointer)]])
    if (!this.#takes(target)) return this.close(withWords(rest, [`like ${pointer}`]), outer)
    return this.close(combine([target, rest], this.#work).schema, [...outer, pointer])
  }

  /** Whether there is room for a copy of a schema. */
  #takes(schema: TreeObject): boolean {
    this.#left -= this.#size(schema)
    if (this.#left < 0 || this.#depth >= MAX_DEPTH) return false
    this.#work.copy(schema)
    return true
  }

  #size(schema: TreeObject): number {
    let size = this.#sizes.get(schema)
    if (size === undefined) {
      size = innerSchemas(schema).reduce((sum, inner) => sum + this.#size(inner), schema.members.size + 1)
      this.#sizes.set(schema, size)
    }
    return size
  }

  /** Combines a schema with those that its `allOf` lists. */
  #combined(schema: TreeObject, parts: readonly Tree[], outer: readonly string[]): TreeObject {
    const rest = without(schema, ['allOf'])
    const words: string[] = []
    const copies: TreeObject[] = []
    for (const part of parts) {
      const pointer = isTreeObject(part) ? referenceOf(part) : undefined
      const target = pointer === undefined ? part : this.#references.resolve(pointer)
      if (part === 'false') words.push('no value')
      if (!isTreeObject(target)) continue
      const mayCopy = pointer === undefined || !this.#references.isRecursive(pointer, outer)
      if (!mayCopy || !this.#takes(target)) words.push(`like ${pointer ?? 'another schema'}`)
      else
        copies.push(
          pointer === undefined
            ? target
            : combine([target, without(part as TreeObject, ['$ref'])], this.#work).schema,
        )
    }
    const { schema: combined } = combine([rest, ...copies], this.#work)
    return withWords(combined, words)
  }

  #closeUnion(schema: TreeObject, keyword: string, outer: readonly string[]): TreeObject {
    const rest = without(schema, [keyword])
    const branches = elementsOf(schema.members.get(keyword)).filter(isTreeObject)
    const base = without(rest, ANNOTATIONS)
    if (isObject(base) && base.members.has('properties')) {
      const inlined = branches.map((branch) => this.#inlined(branch, outer))
      return this.close(unite(rest, inlined, keyword, this.#work), outer)
    }
    const isSmall = this.#size(base) * branches.length <= this.#left
    const narrowed = branches.flatMap((branch) => {
      if (base.members.size === 0 || !isSmall) return [branch]
      const { schema: both, isEmpty } = combine([base, this.#inlined(branch, outer)], this.#work)
      return isEmpty ? [] : [both]
    })
    if (base.members.size > 0) this.#left -= this.#size(base) * branches.length
    const given = schema.members.get(keyword) as Tree
    if (narrowed.length === 0) return this.close(withWords(rest, wordsFor(keyword, given)), outer)
    const closed = narrowed.map((branch) => this.close(branch, outer))
    const about = this.#closeMembers(without(rest, base.members.keys()), outer, true)
    const union = withMembers(about, [['anyOf', { elements: closed }]])
    return keyword === 'oneOf' && closed.length > 1
      ? withText(union, 'Exactly one of the alternatives.')
      : union
  }

  /** Returns the schema to which a branch refers, if it may be copied. */
  #inlined(branch: TreeObject, outer: readonly string[]): TreeObject {
    const pointer = referenceOf(branch)
    const target = pointer === undefined ? undefined : this.#references.resolve(pointer)
    if (pointer === undefined || !target) return branch
    if (this.#references.isRecursive(pointer, outer) || !this.#takes(target)) return branch
    return combine([target, without(branch, ['$ref'])], this.#work).schema
  }

  /** Closes a schema without references and unions at its top. */
  #closeMembers(schema: TreeObject, outer: readonly string[], isUnion = false): TreeObject {
    const kept: [string, Tree][] = []
    const words: string[] = []
    const types = typesOf(schema)
    // Members that say nothing about values of these types.
    const members =
      types && !types.includes('object') ? without(schema, OBJECT_MEMBERS).members : schema.members
    for (const [name, value] of members) {
      const inner = this.#closeMember(name, value, outer)
      if (inner !== undefined) kept.push([name, inner])
      else if (ACCEPTED.get(name)?.(value)) kept.push([name, value])
      else if (name !== 'additionalProperties' || isTreeObject(value)) words.push(...wordsFor(name, value))
    }
    const properties = membersOf(members.get('properties'))
    if (textsOf(members.get('required')).some((name) => properties.get(name) === 'false'))
      words.push('no value')
    const result = withWords(treeObject(kept), words)
    if (isUnion) return result
    return isObject(schema) ? closedObject(result, this.#schemaOfOthers(schema, outer)) : result
  }

  /** The schema of properties that an object requires without naming a schema for them. */
  #schemaOfOthers({ members }: TreeObject, outer: readonly string[]): TreeObject {
    const given = members.get('additionalProperties')
    return isTreeObject(given) && this.#takes(given) ? this.close(given, outer) : treeObject([])
  }

  #closeMember(name: string, value: Tree, outer: readonly string[]): Tree | undefined {
    switch (name) {
      case 'properties': {
        const properties = [...membersOf(value)].filter(([, one]) => one !== 'false')
        return treeObject(properties.map(([key, one]) => [key, this.close(one, outer)] as const))
      }
      case '$defs':
      case 'definitions':
        return treeObject([...membersOf(value)].map(([key, one]) => [key, this.close(one, [])] as const))
      case 'items':
        return isTreeObject(value) ? this.close(value, outer) : undefined
      default:
        return undefined
    }
  }
}

/** Closes an object. Properties that it requires without a schema get the schema `other`. */
function closedObject(schema: TreeObject, other: TreeObject): TreeObject {
  const properties = membersOf(schema.members.get('properties'))
  const missing = textsOf(schema.members.get('required')).filter((name) => !properties.has(name))
  const added = missing.map((name) => [name, other] as const)
  return withMembers(schema, [
    ...(added.length > 0 ? [['properties', treeObject([...properties, ...added])] as const] : []),
    ['additionalProperties', 'false'],
  ])
}

/** Maximum numbers of one request, over all its schemas that must be enforced. Source: Anthropic's page. */
const MAX_STRICT_TOOLS = 20
const MAX_OPTIONAL = 24
const MAX_UNIONS = 16

/** What is left of the schemas that one request may have enforced. */
export class EnforcedSchemas {
  /** Work that every schema needs. */
  readonly work = new SchemaWork()
  readonly #closing = new SchemaWork()
  #tools = MAX_STRICT_TOOLS
  #optional = MAX_OPTIONAL
  #unions = MAX_UNIONS

  /** Closes a schema with `close`; undefined if that takes more work than the closed schemas of one request may. */
  closed<T>(close: (work: SchemaWork) => T): T | undefined {
    try {
      return close(this.#closing)
    } catch (error) {
      if (error instanceof TooMuchWork) return undefined
      throw error
    }
  }

  /** Whether this schema may be enforced too. It counts from then on. */
  takesFormat(schema: string): boolean {
    const { optional, unions } = complexityOf(schema)
    if (optional > this.#optional || unions > this.#unions) return false
    this.#optional -= optional
    this.#unions -= unions
    return true
  }

  /** Whether the schema of this tool may be enforced too. It counts from then on. */
  takesTool(schema: string): boolean {
    if (this.#tools === 0 || !this.takesFormat(schema)) return false
    this.#tools--
    return true
  }
}

/** Counts the optional properties of a schema, and its schemas of several types. */
function complexityOf(text: string): { readonly optional: number; readonly unions: number } {
  let optional = 0
  let unions = 0
  const visit = (schema: TreeObject): void => {
    const { members } = schema
    const required = new Set(textsOf(members.get('required')))
    for (const name of membersOf(members.get('properties')).keys()) if (!required.has(name)) optional++
    if (members.has('anyOf') || elementsOf(members.get('type')).length > 1) unions++
    for (const inner of innerSchemas(schema)) visit(inner)
    for (const name of ['$defs', 'definitions'])
      for (const definition of membersOf(members.get(name)).values())
        if (isTreeObject(definition)) visit(definition)
  }
  visit(parseTree(text))
  return { optional, unions }
}
