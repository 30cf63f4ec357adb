import { CHAT_REQUEST } from './chat/shape.ts'
import { CONVERSE_REQUEST } from './converse/shape.ts'
import type { FoundText, TextPlace } from './guarded-texts.ts'
import { isMemberName, isSealed, isTerm } from './guarded-values.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import { MESSAGES_REQUEST } from './messages/shape.ts'
import type { Shape } from './shape/define-shape.ts'
import { indexOf, kindOfCode, type Outline, outlineOf, ownerOfCode, tableOfCode } from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'
import { type FileFacts, isStatedText } from './text-file.ts'

const QUOTE = 0x22
const OPENING_BRACE = 0x7b
const OPENING_BRACKET = 0x5b
const SPACE = 0x20
const MINUS = 0x2d
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
/** Number of numbers that the tape has for each key and value. */
const STRIDE = 3
/** Maximum length of the JSON of a word of a protocol, all of whose characters may be escaped. */
const MAX_TERM_JSON = 6 * 64 + 2

/** Shapes whose signatures cover the reasoning beside them, so that it cannot be changed. `docs/guards.md: Places`. */
const SIGNED: ReadonlySet<Shape> = new Set<Shape>([CHAT_REQUEST, CONVERSE_REQUEST, MESSAGES_REQUEST])
const PLAIN: Partial<FoundText> = {}

/** What guards check of a request. */
export interface RequestTexts {
  /** The texts in the order of their bytes. */
  readonly texts: FoundText[]
  /** Whether there are token ids in place of a text. Guards cannot read what they stand for. */
  readonly hasTokenIds: boolean
}

/**
 * Finds the texts of a request: everything that a model may read, and everything else that a client writes freely. Words
 * of the protocol, ids and signatures are left out where they look like one. `docs/guards.md: What is no text`.
 */
export function requestTexts(scan: ScannedObject, shape: Shape): RequestTexts {
  const reader = new RequestReader(scan, shape)
  reader.object(ROOT)
  return reader
}

/** Whether a string looks like a word of a protocol. */
function isTermAt(scan: ScannedObject, node: Node): boolean {
  return scan.endOf(node) - scan.startOf(node) <= MAX_TERM_JSON && isTerm(scan.parse(node) as string)
}

function isDigit(first: number): boolean {
  return first === MINUS || (first >= DIGIT_0 && first <= DIGIT_9)
}

class RequestReader implements RequestTexts {
  readonly texts: FoundText[] = []
  hasTokenIds = false
  readonly #scan: ScannedObject
  readonly #codes: Outline
  readonly #schemaTable: number
  readonly #signs: boolean
  /** The objects around the current value which the shape describes, outermost first. */
  readonly #around: Node[] = []

  constructor(scan: ScannedObject, shape: Shape) {
    this.#scan = scan
    this.#codes = outlineOf(scan, shape)
    this.#schemaTable = shape.tables['Schema'] ? shape.tableId('Schema') : -1
    this.#signs = SIGNED.has(shape)
  }

  /** Reads an object that the shape describes, or one whose keys users choose. */
  object(node: Node): void {
    const { tape } = this.#scan
    const end = tape[node + 2] as number
    const isDescribed = tableOfCode(this.#codes[indexOf(node)] as number) !== -1
    if (isDescribed) this.#around.push(node)
    for (let key = node + STRIDE; key < end; key = tape[key + 5] as number) {
      const code = this.#codes[indexOf(key)] as number
      const kind = kindOfCode(code)
      if (kind === KIND.name) this.#add(key, this.#placeOf(code), { isName: true, isData: true })
      else if (kind !== KIND.structure) this.#undescribedName(key, code)
      this.#value(key + STRIDE)
    }
    if (isDescribed) this.#around.pop()
  }

  #value(node: Node): void {
    const { bytes, tape } = this.#scan
    const first = bytes[tape[node] as number] as number
    const code = this.#codes[indexOf(node)] as number
    if (first === OPENING_BRACE) {
      if (tableOfCode(code) !== -1 || kindOfCode(code) === KIND.structure) this.object(node)
      else this.#covered(node, code)
    } else if (first === OPENING_BRACKET) {
      const end = tape[node + 2] as number
      for (let at = node + STRIDE; at < end; at = tape[at + 2] as number) this.#value(at)
    } else if (first === QUOTE) this.#string(node, code)
    else if (isDigit(first)) this.#number(node, code)
  }

  #string(node: Node, code: number): void {
    switch (kindOfCode(code)) {
      case KIND.name:
        // In a schema, names are those that users chose for members.
        if (this.#isInSchema()) this.#add(node, this.#placeOf(code), { isName: true })
        else if (!isTermAt(this.#scan, node)) this.#add(node, this.#placeOf(code))
        return
      case KIND.id:
      case KIND.mark:
      case KIND.role:
      case KIND.term:
        if (!isTermAt(this.#scan, node)) this.#add(node, this.#placeOf(code))
        return
      case KIND.sealed:
      case KIND.signature:
        return this.#add(node, this.#placeOf(code), { kind: 'sealed' })
      case KIND.media:
        return this.#add(node, this.#placeOf(code), { kind: 'media', file: this.#fileFacts() })
      case KIND.arguments:
        return this.#add(node, 'tool_arguments', { isJson: this.#isJson(node) })
      case KIND.reasoning:
        return this.#add(node, this.#placeOf(code), { isSigned: this.#isSigned() })
      default:
        return this.#add(node, this.#placeOf(code))
    }
  }

  #number(node: Node, code: number): void {
    const kind = kindOfCode(code)
    if (kind === KIND.arguments || kind === KIND.result || kind === KIND.data)
      this.#add(node, this.#placeOf(code), { isNumber: true })
    else if (kind === KIND.text && ownerOfCode(code) === OWNER.user) this.hasTokenIds = true
  }

  /** Reads an object that the shape does not describe further. */
  #covered(node: Node, code: number): void {
    const kind = kindOfCode(code)
    const isData = kind === KIND.arguments || kind === KIND.result || kind === KIND.data
    this.#within(node, { place: this.#placeOf(code), isData })
  }

  /**
   * All strings are texts, also those that look like words of the protocol, because the shape does not say that they are.
   * Names and numbers are checked where users or models choose them.
   */
  #within(node: Node, found: { readonly place: TextPlace; readonly isData: boolean }): void {
    const { bytes, tape } = this.#scan
    const { place, isData } = found
    const first = bytes[tape[node] as number] as number
    const end = tape[node + 2] as number
    if (first === QUOTE) this.#add(node, place, { isData })
    else if (first === OPENING_BRACKET)
      for (let at = node + STRIDE; at < end; at = tape[at + 2] as number) this.#within(at, found)
    else if (first === OPENING_BRACE)
      for (let key = node + STRIDE; key < end; key = tape[key + 5] as number) {
        if (isData || !isMemberName(this.#scan.keyText(key))) this.#add(key, place, { isData })
        this.#within(key + STRIDE, found)
      }
    else if (isData && isDigit(first)) this.#add(node, place, { isNumber: true, isData })
  }

  #undescribedName(key: Node, code: number): void {
    if (!isMemberName(this.#scan.keyText(key))) this.#add(key, this.#placeOf(code))
  }

  /** Guards know a tool's results by their owner. What the shape does not describe beside arguments belongs to these. */
  #placeOf(code: number): TextPlace {
    const kind = kindOfCode(code)
    if (ownerOfCode(code) === OWNER.tool) return 'tool_results'
    if (kind === KIND.arguments) return 'tool_arguments'
    return kind === KIND.undescribed && this.#hasArguments() ? 'tool_arguments' : 'input'
  }

  #hasArguments(): boolean {
    return this.#valuesAround().some(({ kind }) => kind === KIND.arguments)
  }

  #isInSchema(): boolean {
    const code = this.#codes[indexOf(this.#around.at(-1) as Node)] as number
    return tableOfCode(code) === this.#schemaTable
  }

  /** Only a text that is an object or a list in JSON is read as such: a custom tool may be given any text. */
  #isJson(node: Node): boolean {
    const { bytes } = this.#scan
    let at = this.#scan.startOf(node) + 1
    while (bytes[at] === SPACE) at += 1
    return bytes[at] === OPENING_BRACE || bytes[at] === OPENING_BRACKET
  }

  /**
   * Whether a signature covers reasoning. It does so only in turns of a model: otherwise a client could mark its own texts
   * as reasoning, so that they are not changed.
   */
  #isSigned(): boolean {
    if (!this.#signs) return false
    let isSigned = false
    for (let up = 1; up <= this.#around.length; up += 1) {
      for (const { node, kind, code } of this.#valuesAround(up)) {
        if (kind === KIND.role) return isSigned && ownerOfCode(code) === OWNER.model
        isSigned ||= kind === KIND.signature && isSealed(this.#textOf(node))
      }
    }
    return isSigned
  }

  /** What is stated about a file in its object, or in the one around it: a media type among the words, a name among the texts. */
  #fileFacts(): FileFacts {
    const values = [...this.#valuesAround(1), ...this.#valuesAround(2)]
    const words = values.filter(({ kind }) => kind === KIND.term).map(({ node }) => this.#textOf(node))
    const texts = values.filter(({ kind }) => kind === KIND.text).map(({ node }) => this.#textOf(node))
    return {
      mediaType: words.find((word) => word.includes('/')) ?? '',
      name: texts.find((name) => isStatedText({ mediaType: '', name })) ?? '',
    }
  }

  /** The described values in an object around the current one, counted from the innermost. */
  #valuesAround(up = 1): { readonly node: Node; readonly kind: number; readonly code: number }[] {
    const object = this.#around.at(-up)
    if (object === undefined) return []
    return this.#scan.values(object).map((node) => {
      const code = this.#codes[indexOf(node)] as number
      return { node, kind: kindOfCode(code), code }
    })
  }

  #textOf(node: Node): string {
    return this.#scan.kindOf(node) === 'string' ? (this.#scan.parse(node) as string) : ''
  }

  #add(node: Node, place: TextPlace, facts: Partial<FoundText> = PLAIN): void {
    const { tape } = this.#scan
    const { isSigned = false, isJson = false, isNumber = false, isName = false, isData = false } = facts
    const { kind = 'text', file } = facts
    const [from, to] = [tape[node] as number, tape[node + 1] as number]
    const found = { from, to, place, isSigned, isJson, isNumber, isName, isData, kind, step: undefined }
    this.texts.push(file ? { ...found, file } : found)
  }
}
