import { WireError } from '../../wire-error.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const SPACE = 0x20

/**
 * Maximum length of a key or id that is read, in UTF-16 code units including escape sequences. Longer ones
 * are ignored.
 */
const MAX_TEXT = 1_024

/** An item of a list: its position in the JSON text, in UTF-16 code units, and its id. */
export interface ItemSpan {
  readonly start: number
  readonly end: number
  /** Undefined if the item has no id, or if its id is not a string. */
  readonly id: string | undefined
}

/**
 * Finds the items in a JSON text of any size that arrives in pieces. Items are the elements of an array, or
 * those of the member `output` of an object. The text is known to be valid JSON, because the gateway has
 * stored it.
 */
export class ItemSpanFinder {
  /** Depth of the list whose elements are items, counted from 1. */
  readonly #listDepth: number
  #depth = 0
  #isInList = false
  /** Number of UTF-16 code units before the current piece. */
  #before = 0
  /** Start, end and id of the current item; the start is −1 if there is none. */
  #start = -1
  #end = 0
  #isObject = false
  #id: string | undefined
  /** The last key of the current object, and whether the next string is a key. */
  #key: string | undefined
  #isKey = false
  #isInString = false
  #isEscaped = false
  /** The part of a key or an id that was read so far; undefined while another string is read. */
  #text: string | undefined

  constructor(of: 'array' | 'output') {
    this.#listDepth = of === 'array' ? 1 : 2
  }

  /** Adds a piece. Returns the items that end in it. */
  push(piece: string): ItemSpan[] {
    const found: ItemSpan[] = []
    for (let at = 0; at < piece.length; )
      if (this.#isInString) at = this.#readString(piece, at)
      else this.#readToken(piece.charCodeAt(at), this.#before + at++, found)
    this.#before += piece.length
    return found
  }

  #readToken(character: number, at: number, found: ItemSpan[]): void {
    if (character <= SPACE) return
    const isOfList = this.#isInList && this.#depth === this.#listDepth
    if (isOfList && (character === COMMA || character === CLOSE_ARRAY)) this.#endItem(found)
    else if (isOfList && this.#start < 0) {
      this.#start = at
      this.#id = undefined
      this.#isObject = character === OPEN_OBJECT
    }
    switch (character) {
      case QUOTE:
        this.#isInString = true
        this.#text = this.#readsMembers ? '' : undefined
        break
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#open(character)
        break
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (isOfList && character === CLOSE_ARRAY) this.#isInList = false
        this.#depth -= 1
        break
      case COMMA:
        if (this.#readsMembers) this.#isKey = true
        break
      case COLON:
        if (this.#readsMembers) this.#isKey = false
    }
    this.#end = at + 1
  }

  #open(character: number): void {
    this.#depth += 1
    if (this.#depth === this.#listDepth && character === OPEN_ARRAY)
      this.#isInList = this.#depth === 1 || this.#key === 'output'
    if (this.#readsMembers) this.#isKey = true
  }

  /**
   * Whether the members at the current position are read: inside an item, or inside the object that contains
   * the list.
   */
  get #readsMembers(): boolean {
    if (this.#isInList) return this.#isObject && this.#depth === this.#listDepth + 1
    return this.#depth === 1 && this.#listDepth === 2
  }

  #readString(piece: string, from: number): number {
    let at = from
    if (this.#isEscaped) at += 1
    else {
      const special = indexOfSpecial(piece, from)
      at = special < 0 ? piece.length : special + 1
      this.#isInString = special < 0 || piece.charCodeAt(special) === BACKSLASH
    }
    this.#isEscaped = !this.#isEscaped && this.#isInString && piece.charCodeAt(at - 1) === BACKSLASH
    if (this.#text !== undefined && this.#text.length <= MAX_TEXT) this.#text += piece.slice(from, at)
    if (!this.#isInString) this.#endString(this.#before + at)
    return at
  }

  #endString(end: number): void {
    this.#end = end
    if (this.#text === undefined) return
    // `#text` includes the closing quote.
    const text = this.#text.length > MAX_TEXT ? undefined : (JSON.parse(`"${this.#text}`) as string)
    if (this.#isKey) this.#key = text
    else if (this.#isInList && this.#key === 'id') this.#id = text
  }

  #endItem(found: ItemSpan[]): void {
    if (this.#start >= 0) found.push({ start: this.#start, end: this.#end, id: this.#id })
    this.#start = -1
  }
}

const SPECIAL = /["\\]/g

function indexOfSpecial(text: string, from: number): number {
  SPECIAL.lastIndex = from
  return SPECIAL.exec(text)?.index ?? -1
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** Query of a client for a list of items. */
export interface ItemPageQuery {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  /** Id of the item after which the page begins. */
  readonly after: string | undefined
}

/** Reads the query parameters of a list of items. Throws `invalid_request`. */
export function readItemQuery(query: URLSearchParams): ItemPageQuery {
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new WireError('invalid_request', `Invalid 'limit': expected an integer from 1 to ${MAX_LIMIT}.`)
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc')
    throw new WireError('invalid_request', `Invalid 'order': expected asc or desc.`)
  return { limit, order, after: query.get('after') ?? undefined }
}
