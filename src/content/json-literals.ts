import { MAX_JSON_VALUES } from './json-values.ts'

/** A string or a long whole number in a JSON text: its range including the quotes, and its decoded value. */
export interface JsonStringLiteral {
  readonly start: number
  readonly end: number
  readonly value: string
  /** Whether this is a list of tokens or their probabilities, which spells a text again. It has no value. */
  readonly isSpelling?: boolean
  /**
   * Path of the string within its object. Strings with the same path in several events of a stream belong to
   * one text. Undefined for names of members and for fixed words of the protocol.
   */
  readonly place: string | undefined
}

type Node =
  | { readonly kind: 'string'; readonly start: number; readonly end: number; readonly value: string }
  | {
      readonly kind: 'object'
      readonly start: number
      readonly end: number
      readonly members: readonly (readonly [name: Node & { kind: 'string' }, value: Node])[]
    }
  | { readonly kind: 'list'; readonly start: number; readonly end: number; readonly items: readonly Node[] }
  | { readonly kind: 'other'; readonly start: number; readonly end: number; readonly text: string }

/**
 * Members that state which text an event of a stream continues; their values become part of the path. It is the same
 * in all events for which guards have one key (`packages/wire/src/event-texts.ts`).
 */
const PLACES: ReadonlySet<string> = new Set([
  'type',
  'index',
  'item_id',
  'output_index',
  'content_index',
  'summary_index',
  'jsonPath',
])

/** Members that every event of a stream repeats; their strings are not part of a longer text. */
const NAMES: ReadonlySet<string> = new Set([
  'id',
  'object',
  'model',
  'role',
  'status',
  'name',
  'obfuscation',
  'stream_id',
  ...PLACES,
])

/** Matches the type of an event that names its text. Other types, as that of a tool, may be in one event alone. */
const TYPE_OF_TEXT = /\./
/** Matches the value of an index that other events leave out. */
const NO_INDEX = /^(?:0|null)?$/

/** Members with lists of log probabilities, which spell a text token by token. */
const SPELLINGS: ReadonlySet<string> = new Set([
  'logprobs',
  'logprobsResult',
  'logprobs_result',
  'prompt_logprobs',
])

/** Matches numbers that may be those of cards. */
const LONG_NUMBER = /^\d{12,19}$/

/** Thrown if a text has too many values or strings to be searched. */
export class TooManyJsonValues extends Error {}

/**
 * The strings in a JSON text; undefined if the text is not JSON. `offset` is added to their positions. Throws
 * `TooManyJsonValues`.
 */
export function findJsonStrings(text: string, offset = 0): readonly JsonStringLiteral[] | undefined {
  try {
    const reader = new Reader(text)
    const node = reader.value()
    if (!reader.isAtEnd) return undefined
    const literals: JsonStringLiteral[] = []
    collect(node, '', literals, offset)
    return literals
  } catch (error) {
    if (error instanceof TooManyJsonValues) throw error
    // The text is not JSON, or is nested so deeply that the stack overflowed.
    return undefined
  }
}

/**
 * The strings in the complete items of a JSON list that was cut off, and the position after the last of these
 * items; undefined if there is none. Throws `TooManyJsonValues`.
 */
export function findJsonStringsOfCutList(
  text: string,
): { readonly literals: readonly JsonStringLiteral[]; readonly end: number } | undefined {
  try {
    const { items, end } = new Reader(text).completeItems()
    const literals: JsonStringLiteral[] = []
    for (const item of items) collect(item, '[]', literals, 0)
    return items.length > 0 ? { literals, end } : undefined
  } catch (error) {
    if (error instanceof TooManyJsonValues) throw error
    return undefined
  }
}

function collect(node: Node, place: string | undefined, literals: JsonStringLiteral[], offset: number): void {
  if (node.kind === 'string') {
    literals.push({ start: node.start + offset, end: node.end + offset, value: node.value, place })
    return
  }
  if (node.kind === 'other' && LONG_NUMBER.test(node.text))
    literals.push({
      start: node.start + offset,
      end: node.end + offset,
      value: node.text,
      place: undefined,
    })
  if (node.kind === 'list')
    for (const [index, item] of node.items.entries())
      collect(item, `${place ?? ''}[${item.kind === 'object' ? '' : index}]`, literals, offset)
  if (node.kind !== 'object') return
  const here = `${place ?? ''}{${identityOf(node.members)}}`
  for (const [name, value] of node.members) {
    collect(name, undefined, literals, offset)
    const isSpelling =
      name.value === 'tokens' ? isListOfNumbers(value) : SPELLINGS.has(name.value) && hasTokens(value)
    if (isSpelling) {
      const { start, end } = value
      literals.push({ start: start + offset, end: end + offset, value: '', isSpelling, place: undefined })
    }
    const isApart = isSpelling || NAMES.has(name.value)
    // The text of a block may begin in the event that starts the block.
    const step = name.value === 'content_block' ? 'delta' : name.value
    collect(value, isApart ? undefined : `${here}.${step}`, literals, offset)
  }
}

/** The members that state a text, in one form whatever their order and whether an index of 0 is left out. */
function identityOf(members: (Node & { kind: 'object' })['members']): string {
  // The thoughts of Gemini are marked parts with the same members as its texts.
  const stated = members.filter(
    ([name, value]) => PLACES.has(name.value) || (name.value === 'thought' && textOf(value) === 'true'),
  )
  // Some providers write another id into each event.
  const hasNumber = stated.some(([name]) => name.value === 'output_index')
  return stated
    .filter(([name, value]) => {
      const text = textOf(value)
      if (name.value === 'type') return TYPE_OF_TEXT.test(text)
      return !(name.value === 'item_id' && hasNumber) && !NO_INDEX.test(text)
    })
    .map(([name, value]) => `${name.value}=${textOf(value)}`)
    .toSorted()
    .join()
}

/** Whether a value is a list of numbers, as the tokens of a segment are. */
function isListOfNumbers(node: Node): boolean {
  return node.kind === 'list' && node.items.some(({ kind }) => kind === 'other')
}

/** Whether a value has members such as `token` or `decoded_token`, as log probabilities have. */
function hasTokens(node: Node): boolean {
  if (node.kind === 'list') return node.items.some(hasTokens)
  return (
    node.kind === 'object' &&
    node.members.some(([name, value]) => name.value.includes('token') || hasTokens(value))
  )
}

function textOf(node: Node): string {
  return node.kind === 'string' ? node.value : node.kind === 'other' ? node.text : ''
}

const SPACE = /[ \t\r\n]*/y
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y
const OTHER = /-?[\w.+-]+/y

/** A JSON parser that also records the positions of strings. */
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
    if (this.#values > MAX_JSON_VALUES) throw new TooManyJsonValues()
    this.#skip()
    const first = this.#text[this.#at]
    if (first === '"') return this.#string()
    const start = this.#at
    if (first === '{') {
      const members = this.#entries('}', () => this.#member())
      return { kind: 'object', start, end: this.#at, members }
    }
    if (first === '[') {
      const items = this.#entries(']', () => this.value())
      return { kind: 'list', start, end: this.#at, items }
    }
    const text = this.#match(OTHER)
    return { kind: 'other', start, end: this.#at, text }
  }

  /** The complete items of a list, and the position after the last one. */
  completeItems(): { readonly items: readonly Node[]; readonly end: number } {
    const items: Node[] = []
    let end = 0
    this.#skip()
    try {
      while (this.#text[this.#at] === (items.length === 0 ? '[' : ',')) {
        this.#at += 1
        items.push(this.value())
        end = this.#at
        this.#skip()
      }
    } catch (error) {
      if (error instanceof TooManyJsonValues) throw error
    }
    return { items, end }
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
