import { MAX_VALUES } from './json-values.ts'

/** A string of JSON in its text: where it is, with its quotes, and what it says. */
export interface Literal {
  readonly start: number
  readonly end: number
  readonly value: string
  /**
   * Where it is in its object: strings of several events with the same place continue each other. Undefined for
   * names of members, and for words of the protocol.
   */
  readonly place: string | undefined
}

type Node =
  | { readonly kind: 'string'; readonly start: number; readonly end: number; readonly value: string }
  | {
      readonly kind: 'object'
      readonly members: readonly (readonly [name: Node & { kind: 'string' }, value: Node])[]
    }
  | { readonly kind: 'list'; readonly items: readonly Node[] }
  | { readonly kind: 'other'; readonly text: string }

/** Members by which events say what they continue. */
const PLACES: ReadonlySet<string> = new Set([
  'type',
  'index',
  'item_id',
  'output_index',
  'content_index',
  'summary_index',
])

/** Members whose strings are repeated by every event, and continue nothing. */
const NAMES: ReadonlySet<string> = new Set([
  'id',
  'object',
  'model',
  'role',
  'status',
  'name',
  'obfuscation',
  ...PLACES,
])

/** A text has so many values or strings that it is not screened. */
export class TooManyValues extends Error {}

/**
 * The strings of a JSON text, `offset` characters into a larger one; undefined if it is no JSON. Throws
 * `TooManyValues`.
 */
export function jsonLiterals(text: string, offset = 0): readonly Literal[] | undefined {
  try {
    const reader = new Reader(text)
    const node = reader.value()
    if (!reader.isAtEnd) return undefined
    const literals: Literal[] = []
    collect(node, '', literals, offset)
    return literals
  } catch (error) {
    if (error instanceof TooManyValues) throw error
    // No JSON, or nested deeper than the stack.
    return undefined
  }
}

function collect(node: Node, place: string | undefined, literals: Literal[], offset: number): void {
  if (node.kind === 'string') {
    literals.push({ start: node.start + offset, end: node.end + offset, value: node.value, place })
    return
  }
  if (node.kind === 'list')
    for (const [index, item] of node.items.entries())
      collect(item, `${place ?? ''}[${item.kind === 'object' ? '' : index}]`, literals, offset)
  if (node.kind !== 'object') return
  const own = node.members.flatMap(([name, value]) =>
    PLACES.has(name.value) ? [`${name.value}=${textOf(value)}`] : [],
  )
  const here = `${place ?? ''}{${own.join(',')}}`
  for (const [name, value] of node.members) {
    collect(name, undefined, literals, offset)
    collect(value, NAMES.has(name.value) ? undefined : `${here}.${name.value}`, literals, offset)
  }
}

function textOf(node: Node): string {
  return node.kind === 'string' ? node.value : node.kind === 'other' ? node.text : ''
}

const SPACE = /[ \t\r\n]*/y
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y
const OTHER = /-?[\w.+-]+/y

/** Reads JSON, and notes where its strings are. */
class Reader {
  readonly #text: string
  #at = 0
  #values = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    this.#skip()
    return this.#at === this.#text.length
  }

  value(): Node {
    this.#values += 1
    if (this.#values > MAX_VALUES) throw new TooManyValues()
    this.#skip()
    const first = this.#text[this.#at]
    if (first === '"') return this.#string()
    if (first === '{') return { kind: 'object', members: this.#entries('}', () => this.#member()) }
    if (first === '[') return { kind: 'list', items: this.#entries(']', () => this.value()) }
    return { kind: 'other', text: this.#match(OTHER) }
  }

  #member(): readonly [Node & { kind: 'string' }, Node] {
    this.#skip()
    const name = this.#string()
    this.#skip()
    if (this.#text[this.#at] !== ':') throw new SyntaxError('a colon is missing')
    this.#at += 1
    return [name, this.value()]
  }

  #entries<Entry>(end: string, read: () => Entry): Entry[] {
    const entries: Entry[] = []
    this.#at += 1
    this.#skip()
    if (this.#text[this.#at] === end) {
      this.#at += 1
      return entries
    }
    for (;;) {
      entries.push(read())
      this.#skip()
      const next = this.#text[this.#at]
      this.#at += 1
      if (next === end) return entries
      if (next !== ',') throw new SyntaxError('a comma is missing')
    }
  }

  #string(): Node & { kind: 'string' } {
    const start = this.#at
    const raw = this.#match(STRING)
    return { kind: 'string', start, end: this.#at, value: JSON.parse(raw) as string }
  }

  #skip(): void {
    SPACE.lastIndex = this.#at
    SPACE.test(this.#text)
    this.#at = SPACE.lastIndex
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [found = ''] = pattern.exec(this.#text) ?? []
    if (found === '') throw new SyntaxError('something else was expected')
    this.#at += found.length
    return found
  }
}
