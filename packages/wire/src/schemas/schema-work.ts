import { WireError } from '../wire-error.ts'
import { type Tree, type TreeObject, writeTree } from './schema-tree.ts'

/** Characters that one request may combine and copy, in addition to those in proportion to its schemas. */
const MAX_CHARACTERS = 4_000_000
/** How often each character of a schema may be combined or copied on top of that. */
const TIMES = 8

/** The refusal of schemas whose conversion takes more work than one request may. */
export class TooMuchWork extends WireError {
  constructor() {
    super(
      'invalid_request',
      'The schemas of the request are too large to be converted for this model, because they combine or repeat long parts.',
    )
  }
}

/**
 * Counts the work of converting the schemas of one request: the characters that are combined or copied. A few references
 * can ask for any number of copies of a large schema, so the work has a limit.
 */
export class SchemaWork {
  #left = MAX_CHARACTERS
  /** Made when it is needed, because most requests have no schema that is converted. */
  #sizes: WeakMap<object, number> | undefined

  /** Begins the conversion of a schema. A longer schema may take more work. */
  begin(text: string): void {
    this.#left += TIMES * text.length
  }

  /** Counts work. Throws `TooMuchWork` beyond the limit. */
  spend(characters: number): void {
    this.#left -= characters
    if (this.#left < 0) throw new TooMuchWork()
  }

  /** Counts a copy of a value. */
  copy(tree: Tree): void {
    this.spend(this.#sizeOf(tree))
  }

  /** Writes a converted schema, which may contain one value many times. */
  write(tree: TreeObject): string {
    this.copy(tree)
    return writeTree(tree)
  }

  /** Characters of a value, about. A value that is contained many times is looked through once. */
  #sizeOf(tree: Tree): number {
    if (typeof tree === 'string') return tree.length + 1
    this.#sizes ??= new WeakMap()
    let size = this.#sizes.get(tree)
    if (size !== undefined) return size
    size = 2
    if ('elements' in tree) for (const element of tree.elements) size += this.#sizeOf(element)
    else for (const [name, value] of tree.members) size += name.length + 3 + this.#sizeOf(value)
    this.#sizes.set(tree, size)
    return size
  }
}
