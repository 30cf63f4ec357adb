import { parseRecord } from '../json/record.ts'
import { combine, unite } from './combine.ts'
import { withWords } from './constraint-words.ts'
import { referenceOf, References } from './references.ts'
import { SchemaWork } from './schema-work.ts'
import {
  elementsOf,
  isTreeObject,
  mapInnerSchemas,
  membersOf,
  parseTree,
  treeObject,
  type TreeObject,
  withMembers,
  without,
} from './schema-tree.ts'

/** Keywords that a tool's schema may not have at its top. */
const REFUSED = ['$ref', 'allOf', 'anyOf', 'oneOf'] as const
/** Finds schemas that may have one of them. Most have none and are not parsed. */
const MAY_HAVE = /"(?:\$ref|allOf|anyOf|oneOf)"/
/** Pointers to parts that move when the top of the schema changes. */
const MOVES = /^#\/(?:allOf|anyOf|oneOf)\//

/**
 * Converts a tool's schema to one without a union at its top: an object with the properties of all
 * alternatives, of which those are required that all require, and each alternative in the description. A
 * schema that needs no change is returned unchanged.
 *
 * Sources: Anthropic and Bedrock answer "input_schema does not support oneOf, allOf, or anyOf at the top
 * level"; OpenAI "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
 * level" (github.com/anthropics/claude-code/issues/40075,
 * github.com/code-yeongyu/senpi/issues/1947, github.com/goruck/home-generative-agent/pull/545).
 */
export function toToolSchema(text: string, work = new SchemaWork()): string {
  if (!MAY_HAVE.test(text)) return text
  const top = parseRecord(text) ?? {}
  if (!REFUSED.some((keyword) => Object.hasOwn(top, keyword))) return text
  work.begin(text)
  const root = withoutMovingReferences(parseTree(text), work)
  return work.write(asObject(new TopFlattener(root, work).flatten(root)))
}

/** References are followed this many steps. */
const MAX_STEPS = 100

/** Moves what references into a union lead to into `$defs`, because the union goes. */
function withoutMovingReferences(root: TreeObject, work: SchemaWork): TreeObject {
  const references = new References(root)
  const moved = new Map<string, string>()
  const redirect = (schema: TreeObject): TreeObject => {
    const inner = mapInnerSchemas(schema, (one) => (isTreeObject(one) ? redirect(one) : one))
    const pointer = referenceOf(inner)
    if (pointer === undefined || !MOVES.test(pointer) || !references.resolve(pointer)) return inner
    if (!moved.has(pointer)) moved.set(pointer, `part${moved.size + 1}`)
    return withMembers(inner, [['$ref', JSON.stringify(`#/$defs/${moved.get(pointer)}`)]])
  }
  const redirected = redirect(root)
  if (moved.size === 0) return root
  const definitions = new Map(membersOf(redirected.members.get('$defs')))
  for (const [pointer, name] of moved) {
    const target = references.resolve(pointer) as TreeObject
    work.copy(target)
    definitions.set(name, redirect(target))
  }
  return withMembers(redirected, [['$defs', { members: definitions }]])
}

/** Makes sure that a schema is of an object with properties, which upstreams require. */
function asObject(schema: TreeObject): TreeObject {
  const type = ['type', '"object"'] as const
  const properties = schema.members.has('properties') ? [] : [['properties', treeObject([])] as const]
  if (schema.members.has('type')) return withMembers(schema, [type, ...properties])
  return treeObject([type, ...properties, ...schema.members])
}

/** Removes the refused keywords from the top of a schema. */
class TopFlattener {
  readonly #references: References
  readonly #work: SchemaWork
  readonly #flat = new Map<TreeObject, TreeObject>()
  /** Schemas that are being flattened, to find references to themselves. */
  readonly #open = new Set<TreeObject>()

  constructor(root: TreeObject, work: SchemaWork) {
    this.#references = new References(root)
    this.#work = work
  }

  flatten(schema: TreeObject): TreeObject {
    const known = this.#flat.get(schema)
    if (known) return known
    if (this.#open.has(schema) || this.#open.size > MAX_STEPS) return treeObject([])
    this.#open.add(schema)
    const flat = this.#withoutUnions(this.#withAllOf(this.#withReference(schema)))
    this.#open.delete(schema)
    this.#flat.set(schema, flat)
    return flat
  }

  #withReference(schema: TreeObject): TreeObject {
    const pointer = referenceOf(schema)
    if (pointer === undefined) return schema
    const target = this.#references.resolve(pointer)
    const rest = without(schema, ['$ref'])
    if (!target) return withWords(rest, [`$ref: ${pointer}`])
    return combine([this.flatten(target), rest], this.#work, true).schema
  }

  #withAllOf(schema: TreeObject): TreeObject {
    const parts = elementsOf(schema.members.get('allOf')).filter(isTreeObject)
    if (!schema.members.has('allOf')) return schema
    const flat = parts.map((part) => this.flatten(part))
    return combine([without(schema, ['allOf']), ...flat], this.#work, true).schema
  }

  #withoutUnions(schema: TreeObject): TreeObject {
    let flat = schema
    for (const keyword of ['anyOf', 'oneOf']) {
      const branches = elementsOf(flat.members.get(keyword)).filter(isTreeObject)
      const rest = without(flat, [keyword])
      flat =
        branches.length > 0
          ? unite(
              rest,
              branches.map((branch) => this.flatten(branch)),
              keyword,
              this.#work,
            )
          : rest
    }
    return flat
  }
}
