import {
  elementsOf,
  innerSchemas,
  isTreeObject,
  membersOf,
  textOf,
  textsOf,
  treeObject,
  treeValue,
  type Tree,
  type TreeObject,
  withMembers,
} from './schema-tree.ts'

/** Schemas with more references than this are treated as if all of them were recursive. */
const MAX_REFERENCES = 1000

/** Definitions to which references may lead: `#/$defs/Name`. */
const DEFINITION = /^#\/(?:\$defs|definitions)\/[^/]+$/

const DEFINITIONS: readonly string[] = ['$defs', 'definitions']

/** Returns the pointer in `$ref`; undefined if there is none. */
export function referenceOf({ members }: TreeObject): string | undefined {
  return textOf(members.get('$ref'))
}

/** Whether a pointer leads to a definition at the root of the schema. */
export function isDefinition(pointer: string): boolean {
  return DEFINITION.test(pointer)
}

/** The references in a schema: where they lead, and which of them are recursive. */
export class References {
  readonly #root: TreeObject
  /** The pointers that lead to each schema. */
  readonly #pointers = new Map<TreeObject, string[]>()
  /** The pointers to which each pointer leads in one step. */
  readonly #edges = new Map<string, ReadonlySet<string>>()
  /** Number of the group of pointers that lead to each other, by pointer. */
  readonly #groups: ReadonlyMap<string, number>
  readonly #cut = new Map<TreeObject, CutSchema>()

  /**
   * Reads the references of a schema. `counts` decides whether a reference inside a property counts as a
   * step of a recursion; by default all do.
   */
  constructor(root: TreeObject, counts: (isOptional: boolean) => boolean = () => true) {
    this.#root = root
    const edges = this.#edges
    const steps = new Map<TreeObject, ReadonlySet<string>>()
    const pending = [...referencesIn([root, ...definitionsOf(root)], () => true)]
    for (let pointer = pending.pop(); pointer !== undefined; pointer = pending.pop()) {
      const target = edges.has(pointer) ? undefined : this.resolve(pointer)
      if (!target) continue
      this.#pointers.set(target, [...(this.#pointers.get(target) ?? []), pointer])
      const known = steps.get(target)
      if (!known) {
        steps.set(target, referencesIn([target], counts))
        pending.push(...referencesIn([target], () => true))
      }
      edges.set(pointer, known ?? (steps.get(target) as ReadonlySet<string>))
      if (edges.size > MAX_REFERENCES) break
    }
    this.#groups = edges.size > MAX_REFERENCES ? new Map() : groupsOf(edges)
  }

  /** Finds the schema to which a pointer leads; undefined if it is not in this schema. */
  resolve(pointer: string): TreeObject | undefined {
    if (pointer === '#') return this.#root
    if (!pointer.startsWith('#/')) return undefined
    let at: Tree | undefined = this.#root
    for (const step of pointer.slice(2).split('/')) {
      const name = stepName(step)
      at = isTreeObject(at) ? membersOf(at).get(name) : elementsOf(at)[Number(name)]
    }
    return isTreeObject(at) ? at : undefined
  }

  /** Adds the pointers that lead to a schema to those to the schemas in which it is. */
  within(schema: TreeObject, outer: readonly string[]): readonly string[] {
    const own = this.pointersTo(schema)
    return own.length === 0 ? outer : [...outer, ...own]
  }

  /** The pointers that lead to this schema. */
  pointersTo(schema: TreeObject): readonly string[] {
    return this.#pointers.get(schema) ?? []
  }

  /** Returns a schema without the parts that refer to other schemas. Many references may lead to one schema. */
  cut(schema: TreeObject): CutSchema {
    let cut = this.#cut.get(schema)
    if (!cut) this.#cut.set(schema, (cut = withoutReferences(schema)))
    return cut
  }

  /** Whether a reference leads back to a schema in which it is. `outer` are the pointers to these schemas. */
  isRecursive(pointer: string, outer: readonly string[]): boolean {
    const group = this.#groups.get(pointer)
    if (group === undefined) return true
    return outer.some((one) =>
      one === pointer ? this.#edges.get(pointer)?.has(pointer) === true : this.#groups.get(one) === group,
    )
  }
}

/** Whether a schema refers to another one, in itself or in a schema inside it. */
function refers(tree: Tree): boolean {
  return isTreeObject(tree) && (tree.members.has('$ref') || innerSchemas(tree).some(refers))
}

/** A schema without the parts that refer to other schemas, and in words which properties went. */
interface CutSchema {
  readonly schema: TreeObject
  readonly words: string
}

function withoutReferences(schema: TreeObject): CutSchema {
  const kept: [string, Tree][] = []
  const removed = new Set<string>()
  for (const [name, value] of schema.members) {
    if (name === 'properties') {
      const properties = [...membersOf(value)].filter(([key, one]) => !refers(one) || !removed.add(key))
      kept.push([name, treeObject(properties)])
    } else if (name === 'anyOf' || name === 'oneOf') {
      const branches = elementsOf(value).filter((one) => !refers(one))
      if (branches.length > 0) kept.push([name, { elements: branches }])
    } else if (!DEFINITIONS.includes(name) && !refers(treeObject([[name, value]]))) kept.push([name, value])
  }
  const required = textsOf(schema.members.get('required')).filter((name) => !removed.has(name))
  const rest = treeObject(kept)
  return {
    schema: schema.members.has('required') ? withMembers(rest, [['required', treeValue(required)]]) : rest,
    words: removed.size > 0 ? `, without ${[...removed].map((name) => JSON.stringify(name)).join(', ')}` : '',
  }
}

function stepName(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return step
  }
}

function definitionsOf({ members }: TreeObject): TreeObject[] {
  return DEFINITIONS.flatMap((name) => [...membersOf(members.get(name)).values()].filter(isTreeObject))
}

/** Pointers of the references in these schemas, of which `counts` accepts the place. */
function referencesIn(
  schemas: readonly TreeObject[],
  counts: (isOptional: boolean) => boolean,
): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (schema: TreeObject, isOptional: boolean): void => {
    const pointer = referenceOf(schema)
    if (pointer !== undefined && counts(isOptional)) found.add(pointer)
    const required = new Set(elementsOf(schema.members.get('required')).map((name) => textOf(name)))
    const properties = membersOf(schema.members.get('properties'))
    const optional = new Set([...properties].flatMap(([name, one]) => (required.has(name) ? [] : [one])))
    for (const inner of innerSchemas(schema)) visit(inner, isOptional || optional.has(inner))
  }
  for (const schema of schemas) visit(schema, false)
  return found
}

/** Groups of nodes that lead to each other, as numbers by node (Tarjan's algorithm). */
function groupsOf(edges: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyMap<string, number> {
  const order = new Map<string, number>()
  const low = new Map<string, number>()
  const groups = new Map<string, number>()
  const open: string[] = []
  const visit = (node: string): number => {
    const number = order.size
    order.set(node, number)
    low.set(node, number)
    open.push(node)
    for (const next of edges.get(node) ?? []) {
      if (!edges.has(next) || groups.has(next)) continue
      const reached = order.has(next) ? (order.get(next) as number) : visit(next)
      low.set(node, Math.min(low.get(node) as number, reached))
    }
    if (low.get(node) === number) {
      for (let member = open.pop(); member !== undefined; member = open.pop()) {
        groups.set(member, number)
        if (member === node) break
      }
    }
    return low.get(node) as number
  }
  for (const node of edges.keys()) if (!order.has(node)) visit(node)
  return groups
}
