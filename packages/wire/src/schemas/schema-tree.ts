import { RESPONSE_LIMITS, scanObject } from '../json/json-scan.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'

/**
 * A value of a schema. Objects keep the order of their members, which a JavaScript object does not, and all
 * other values are JSON text, so that numbers keep their digits.
 */
export type Tree = TreeObject | TreeList | string

/** An object: its members in order. */
export interface TreeObject {
  readonly members: ReadonlyMap<string, Tree>
  /** Returns the text as it was written; absent if the object was changed. */
  readonly source?: () => string
}

/** An array. */
export interface TreeList {
  readonly elements: readonly Tree[]
  /** Returns the text as it was written; absent if the array was changed. */
  readonly source?: () => string
}

/** Parses the text of a schema, which must be a JSON object. */
export function parseTree(text: string): TreeObject {
  // As a member, because the scanner refuses names that an object at the top has twice.
  const scan = scanObject(Buffer.from(`{"schema":${text}}`), RESPONSE_LIMITS)
  return treeOf(scan, scan.memberOf(scan.root, 'schema') as Node) as TreeObject
}

function treeOf(scan: ScannedObject, node: Node): Tree {
  const source = (): string => scan.textOf(node)
  const kind = scan.kindOf(node)
  if (kind === 'array') return { elements: scan.elements(node).map((one) => treeOf(scan, one)), source }
  if (kind !== 'object') return source()
  const members = scan.entries(node).map(({ key, node: value }) => [key, treeOf(scan, value)] as const)
  return { members: new Map(members), source }
}

/** Writes a value. What was not changed keeps its bytes. */
export function writeTree(tree: Tree): string {
  if (typeof tree === 'string') return tree
  if (tree.source) return tree.source()
  if ('elements' in tree) return `[${tree.elements.map(writeTree).join(',')}]`
  const members = [...tree.members].map(([name, value]) => `${JSON.stringify(name)}:${writeTree(value)}`)
  return `{${members.join(',')}}`
}

export function treeObject(members: Iterable<readonly [string, Tree]>): TreeObject {
  return { members: new Map(members) }
}

/** Creates the tree of a value without objects. */
export function treeValue(value: unknown): Tree {
  return Array.isArray(value) ? { elements: value.map(treeValue) } : JSON.stringify(value)
}

export function isTreeObject(tree: Tree | undefined): tree is TreeObject {
  return typeof tree === 'object' && 'members' in tree
}

/** Returns the elements of an array; an empty list for any other value. */
export function elementsOf(tree: Tree | undefined): readonly Tree[] {
  return typeof tree === 'object' && 'elements' in tree ? tree.elements : []
}

/** Returns the members of an object; none for any other value. */
export function membersOf(tree: Tree | undefined): ReadonlyMap<string, Tree> {
  return isTreeObject(tree) ? tree.members : NO_MEMBERS
}

const NO_MEMBERS: ReadonlyMap<string, Tree> = new Map()

/** Returns the value of a string; undefined for any other value. */
export function textOf(tree: Tree | undefined): string | undefined {
  return typeof tree === 'string' && tree.startsWith('"') ? (JSON.parse(tree) as string) : undefined
}

/** Returns the strings of an array. */
export function textsOf(tree: Tree | undefined): readonly string[] {
  return elementsOf(tree).flatMap((element) => textOf(element) ?? [])
}

/** Names of the types that a schema allows, from its `type`; undefined if it has none. */
export function typesOf({ members }: TreeObject): readonly string[] | undefined {
  const type = members.get('type')
  if (type === undefined) return undefined
  const name = textOf(type)
  return name === undefined ? textsOf(type) : [name]
}

/** Returns the object without these members; the same object if it has none of them. */
export function without(object: TreeObject, names: Iterable<string>): TreeObject {
  const removed = new Set(names)
  const kept = [...object.members].filter(([name]) => !removed.has(name))
  return kept.length === object.members.size ? object : treeObject(kept)
}

/** Returns the object with these members set, at their places or at its end. */
export function withMembers(object: TreeObject, members: Iterable<readonly [string, Tree]>): TreeObject {
  return treeObject([...object.members, ...members])
}

/** Members of a schema that contain one schema or a list of schemas. */
const SCHEMAS = [
  'items',
  'additionalProperties',
  'not',
  'anyOf',
  'oneOf',
  'allOf',
  'prefixItems',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
] as const
/** Members of a schema that contain schemas by name. */
const NAMED_SCHEMAS = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'] as const

/** Returns the schemas inside a schema, without those that it defines for references. */
export function innerSchemas({ members }: TreeObject): TreeObject[] {
  const found: TreeObject[] = []
  for (const name of SCHEMAS) {
    const value = members.get(name)
    if (isTreeObject(value)) found.push(value)
    else for (const one of elementsOf(value)) if (isTreeObject(one)) found.push(one)
  }
  for (const name of NAMED_SCHEMAS)
    if (name !== '$defs' && name !== 'definitions')
      for (const one of membersOf(members.get(name)).values()) if (isTreeObject(one)) found.push(one)
  return found
}

/**
 * Changes the schemas directly inside a schema, those that it defines for references included. Returns the
 * same object if none changes. What `change` returns undefined for is left out of its list or its names.
 */
export function mapInnerSchemas(
  schema: TreeObject,
  change: (inner: Tree, member: string, name?: string) => Tree | undefined,
): TreeObject {
  const { members } = schema
  let hasChanged = false
  const mapped = new Map<string, Tree>()
  const single: ReadonlySet<string> = new Set(SCHEMAS)
  const named: ReadonlySet<string> = new Set(NAMED_SCHEMAS)
  for (const [member, value] of members) {
    let changed: Tree | undefined = value
    if (named.has(member) && isTreeObject(value)) {
      const inner = [...value.members].map(([name, one]) => [name, one, change(one, member, name)] as const)
      if (inner.some(([, one, other]) => one !== other))
        changed = treeObject(inner.flatMap(([name, , other]) => (other === undefined ? [] : [[name, other]])))
    } else if (single.has(member) && typeof value === 'object' && 'elements' in value) {
      const inner = value.elements.map((one) => change(one, member))
      if (inner.some((one, index) => one !== value.elements[index]))
        changed = { elements: inner.filter((one) => one !== undefined) }
    } else if (single.has(member)) changed = change(value, member)
    hasChanged ||= changed !== value
    if (changed !== undefined) mapped.set(member, changed)
  }
  return hasChanged ? { members: mapped } : schema
}
