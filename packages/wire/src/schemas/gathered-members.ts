import type { SchemaWork } from './schema-work.ts'
import {
  elementsOf,
  isTreeObject,
  membersOf,
  textOf,
  textsOf,
  treeObject,
  treeValue,
  type Tree,
  writeTree,
} from './schema-tree.ts'

/** Maximum length of a description that is joined from several, in characters. */
export const MAX_DESCRIPTION = 20_000

/** What became of a value: no value can match it and the others (`empty`), or no member can express both (`unsaid`). */
export type Addition = 'added' | 'empty' | 'unsaid'

/** The values of one member in several schemas, all of which apply. They are written as one value at the end. */
export interface Gathered {
  add(value: Tree): Addition
  result(): Tree
}

/** The JSON texts of values, each of which is written once. */
export class TreeTexts {
  readonly #work: SchemaWork
  readonly #texts = new Map<Tree, string>()

  constructor(work: SchemaWork) {
    this.#work = work
  }

  of(tree: Tree): string {
    if (typeof tree === 'string') return tree
    let text = this.#texts.get(tree)
    if (text === undefined) {
      this.#work.copy(tree)
      this.#texts.set(tree, (text = writeTree(tree)))
    }
    return text
  }
}

/** Begins to gather the values of a member with the first of them; undefined if each replaces the one before. */
export function gather(name: string, given: Tree, texts: TreeTexts, work: SchemaWork): Gathered | undefined {
  switch (name) {
    case 'description':
      return gatherDescription(given)
    case 'required':
      return once(gatherNames(given))
    case 'enum':
      return once(gatherValues(given, texts))
    case 'properties':
      return once(gatherProperties(given, texts))
    case '$defs':
    case 'definitions':
      return once(gatherDefinitions(given))
    case 'items':
      return isTreeObject(given) ? once(gatherItems(given, texts)) : undefined
    case 'allOf':
      return gatherParts(given, work)
    case 'additionalProperties':
      return once(gatherAdditional(given, texts))
    default:
      return undefined
  }
}

/** Adds a value that many schemas share, because they refer to one definition, only once. */
function once(values: Gathered): Gathered {
  const known = new Map<Tree, Addition>()
  return {
    add(value) {
      let addition = typeof value === 'string' ? undefined : known.get(value)
      if (addition === undefined) known.set(value, (addition = values.add(value)))
      return addition
    },
    result: () => values.result(),
  }
}

function gatherDescription(given: Tree): Gathered {
  let joined = textOf(given)
  let result = given
  return {
    add(value) {
      const text = textOf(value)
      const longer = `${joined}\n\n${text}`
      if (text !== joined && longer.length <= MAX_DESCRIPTION) result = joined = longer
      return 'added'
    },
    result: () => (result === given ? given : JSON.stringify(result)),
  }
}

function gatherNames(given: Tree): Gathered {
  const names = new Set(textsOf(given))
  return {
    add(value) {
      for (const name of textsOf(value)) names.add(name)
      return 'added'
    },
    result: () => treeValue([...names]),
  }
}

/** The values that all lists have. Once there are none, there is nothing more to compare. */
function gatherValues(given: Tree, texts: TreeTexts): Gathered {
  let common = new Map(elementsOf(given).map((value) => [texts.of(value), value]))
  let isNarrowed = false
  let isEmpty = false
  return {
    add(value) {
      if (isEmpty) return 'empty'
      const others = new Set(elementsOf(value).map((one) => texts.of(one)))
      const left = [...common].filter(([text]) => others.has(text))
      isEmpty = left.length === 0
      if (isEmpty) return 'empty'
      common = new Map(left)
      isNarrowed = true
      return 'added'
    },
    result: () => (isNarrowed ? { elements: [...common.values()] } : given),
  }
}

function gatherProperties(given: Tree, texts: TreeTexts): Gathered {
  const properties = new Map<string, AllOf>()
  const add = (value: Tree): Addition => {
    for (const [name, schema] of membersOf(value)) {
      const known = properties.get(name)
      if (known) known.add(schema)
      else properties.set(name, new AllOf(schema, texts))
    }
    return 'added'
  }
  add(given)
  return { add, result: () => treeObject([...properties].map(([name, all]) => [name, all.result()])) }
}

/** The first definition of a name applies. */
function gatherDefinitions(given: Tree): Gathered {
  const definitions = new Map(membersOf(given))
  return {
    add(value) {
      for (const [name, schema] of membersOf(value)) if (!definitions.has(name)) definitions.set(name, schema)
      return 'added'
    },
    result: () => ({ members: definitions }),
  }
}

function gatherItems(given: Tree, texts: TreeTexts): Gathered {
  const all = new AllOf(given, texts)
  return {
    add(value) {
      if (!isTreeObject(value)) return 'unsaid'
      all.add(value)
      return 'added'
    },
    result: () => all.result(),
  }
}

function gatherParts(given: Tree, work: SchemaWork): Gathered {
  const parts = [...elementsOf(given)]
  return {
    add(value) {
      work.copy(value)
      for (const part of elementsOf(value)) parts.push(part)
      return 'added'
    },
    result: () => ({ elements: parts }),
  }
}

function gatherAdditional(given: Tree, texts: TreeTexts): Gathered {
  let all = new AllOf(given, texts)
  return {
    add(value) {
      if (value === 'false' || all.first === 'true') all = new AllOf(value, texts)
      else if (value !== 'true' && all.first !== 'false') all.add(value)
      return 'added'
    },
    result: () => all.result(),
  }
}

/** Schemas that all apply to one value, without repetitions. */
export class AllOf {
  readonly first: Tree
  readonly #parts: Tree[]
  readonly #texts: TreeTexts
  #known: Set<string> | undefined

  constructor(first: Tree, texts: TreeTexts) {
    this.first = first
    this.#parts = [first]
    this.#texts = texts
  }

  /** Adds a schema. Returns whether it was not known. */
  add(schema: Tree): boolean {
    this.#known ??= new Set([this.#texts.of(this.first)])
    const text = this.#texts.of(schema)
    if (this.#known.has(text)) return false
    this.#known.add(text)
    this.#parts.push(schema)
    return true
  }

  result(): Tree {
    return this.#parts.length === 1 ? this.first : treeObject([['allOf', { elements: this.#parts }]])
  }
}
