import { isMediaContent } from './answer-words.ts'
import { CHAT_ANSWER, CHAT_REQUEST } from './chat/shape.ts'
import { CONVERSE_REQUEST } from './converse/shape.ts'
import type { FoundText, PathStep, RepeatingSpan, TextPlace } from './found-texts.ts'
import { isMemberName, isSealed, isTerm, MAX_TERM } from './protocol-words.ts'
import { hasBytesAt } from './json/bytes.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import { MESSAGES_ANSWER, MESSAGES_EVENT, MESSAGES_REQUEST } from './messages/shape.ts'
import type { Shape } from './shape/define-shape.ts'
import { indexOf, kindOfCode, type Outline, outlineOf, ownerOfCode, tableOfCode } from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'
import { isSignatureEnvelope } from './signature-envelope.ts'
import { type FileFacts, isStatedText } from './text-file.ts'

const QUOTE = 0x22
const DATA_URL = Buffer.from('"data:')
const OPENING_BRACE = 0x7b
const OPENING_BRACKET = 0x5b
const MINUS = 0x2d
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
/** Number of numbers that the tape has for each key and value. */
const STRIDE = 3
/** Maximum length of the JSON of a word of a protocol, all of whose characters may be escaped. */
const MAX_TERM_JSON = 6 * MAX_TERM
/** Bytes that words of a protocol without parameters consist of. */
const IS_TERM = Uint8Array.from({ length: 256 }, (_, byte) => (isTerm(String.fromCharCode(byte)) ? 1 : 0))

/** Shapes whose signatures cover the reasoning beside them, so that it cannot be changed. `docs/guards.md: Places`. */
const SIGNED: ReadonlySet<Shape> = new Set<Shape>([
  CHAT_ANSWER,
  CHAT_REQUEST,
  CONVERSE_REQUEST,
  MESSAGES_ANSWER,
  MESSAGES_EVENT,
  MESSAGES_REQUEST,
])
const PLAIN: Partial<FoundText> = {}
const NO_WAY: readonly PathStep[] = []
/** The key of list elements. */
const LIST = -1

/** The texts of a request that guards check. */
export interface RequestTexts {
  /** The texts in the order of their bytes. */
  readonly texts: readonly FoundText[]
  /** Whether the request contains token ids instead of a text. Guards cannot read them. */
  readonly hasTokenIds: boolean
}

/**
 * Finds the texts of a request: everything that a model may read, and everything else that a client writes freely. Words
 * of the protocol, ids and signatures are left out where they look like one. `docs/guards.md: What is no text`.
 */
export function requestTexts(scan: ScannedObject, shape: Shape): RequestTexts {
  return new TextFinder(scan, shape, { isAnswer: false, signsReasoning: false }).find()
}

/** The texts of an answer or of one of its events, and the values that repeat them token by token. */
export interface AnswerTexts {
  /** The texts in the order of their bytes. */
  readonly texts: readonly FoundText[]
  readonly repeating: readonly RepeatingSpan[]
}

/** Options of `answerTexts`. */
export interface AnswerReading {
  /** Whether reasoning is signed by its provider, so that it cannot be changed. */
  readonly signsReasoning: boolean
  /** Replacement of an object that repeats a text token by token; `null` by default. */
  readonly emptyTokens?: string
  /** Whether the result includes the path of each text. */
  readonly hasWays?: boolean
}

/**
 * Finds the texts of an answer or of an event: all strings except words of the protocol and ids that look like one, the
 * bytes of media, and what repeats the request.
 */
export function answerTexts(scan: ScannedObject, shape: Shape, reading: AnswerReading): AnswerTexts {
  return new TextFinder(scan, shape, { ...reading, isAnswer: true }).find()
}

interface Reading extends AnswerReading {
  readonly isAnswer: boolean
}

/** How texts are found in an object whose members the shape does not describe. */
interface Within {
  readonly place: TextPlace
  /** Whether users or models choose its names, so that names and numbers are texts too. */
  readonly isData: boolean
  /** Whether words of the protocol are left out. */
  readonly hasWords: boolean
}

/**
 * An object around a value, and what its described values state about those beside them. An object may have very many
 * members that need it, so it is read once.
 */
interface Around {
  readonly node: Node
  stated?: Stated
  file?: FileFacts
}

interface Stated {
  readonly hasArguments: boolean
  /** Whether a signature that covers reasoning stands before the role, or anywhere if there is no role. */
  readonly isSigned: boolean
  readonly role: 'model' | 'other' | undefined
}

/** Whether users or models choose the names and numbers in objects of this kind. */
function isFree(kind: number): boolean {
  return kind === KIND.arguments || kind === KIND.input || kind === KIND.result || kind === KIND.data
}

/** Whether a value of an answer repeats the request, or states how the answer ended. */
function isNotGenerated(kind: number, code: number): boolean {
  const owner = ownerOfCode(code)
  return kind === KIND.data && owner !== OWNER.model && owner !== OWNER.tool
}

/** Whether a string looks like a word of a protocol. Most strings are decided by their bytes. */
function isTermAt(scan: ScannedObject, node: Node): boolean {
  const { bytes } = scan
  const end = scan.endOf(node) - 1
  let at = scan.startOf(node) + 1
  const length = end - at
  if (length > MAX_TERM_JSON) return false
  while (at < end && IS_TERM[bytes[at] as number] === 1) at += 1
  return at === end && length <= MAX_TERM ? true : isTerm(scan.parse(node) as string)
}

function isDigit(first: number): boolean {
  return first === MINUS || (first >= DIGIT_0 && first <= DIGIT_9)
}

class TextFinder implements RequestTexts, AnswerTexts {
  readonly texts: FoundText[] = []
  readonly repeating: RepeatingSpan[] = []
  hasTokenIds = false
  readonly #scan: ScannedObject
  readonly #codes: Outline
  readonly #schemaTable: number
  readonly #reading: Reading
  /** Whether a signature covers the reasoning beside it. */
  readonly #coversReasoning: boolean
  /** The objects around the current value which the shape describes, outermost first. */
  readonly #around: Around[] = []
  /** The way from the root to the current value: the object or list of each step, and the key in it, or -1 in a list. */
  readonly #way: Node[] = []

  constructor(scan: ScannedObject, shape: Shape, reading: Reading) {
    this.#scan = scan
    this.#codes = outlineOf(scan, shape)
    this.#schemaTable = shape.tables['Schema'] ? shape.tableId('Schema') : -1
    this.#reading = reading
    this.#coversReasoning = SIGNED.has(shape)
  }

  find(): this {
    this.#object(ROOT)
    return this
  }

  /** Reads an object that the shape describes, or one whose keys users choose. */
  #object(node: Node): void {
    const { tape } = this.#scan
    const end = tape[node + 2] as number
    const isDescribed = tableOfCode(this.#codes[indexOf(node)] as number) !== -1
    if (isDescribed) this.#around.push({ node })
    for (let key = node + STRIDE; key < end; key = tape[key + 5] as number) {
      const code = this.#codes[indexOf(key)] as number
      const kind = kindOfCode(code)
      if (kind === KIND.name) this.#add(key, this.#placeOf(code), { isName: true, isData: true })
      else if (kind !== KIND.structure) this.#undescribedName(key, code)
      this.#way.push(node, key)
      this.#value(key + STRIDE)
      this.#way.length -= 2
    }
    if (isDescribed) this.#around.pop()
  }

  #value(node: Node): void {
    const { bytes, tape } = this.#scan
    const first = bytes[tape[node] as number] as number
    const code = this.#codes[indexOf(node)] as number
    if (first === OPENING_BRACE) {
      if (tableOfCode(code) !== -1 || kindOfCode(code) === KIND.structure) this.#object(node)
      else this.#covered(node, code)
    } else if (first === OPENING_BRACKET) {
      if (this.#isRepeating(node, code)) return
      const end = tape[node + 2] as number
      this.#way.push(node, LIST)
      for (let at = node + STRIDE; at < end; at = tape[at + 2] as number) this.#value(at)
      this.#way.length -= 2
    } else if (first === QUOTE) this.#string(node, code)
    else if (isDigit(first)) this.#number(node, code)
  }

  #string(node: Node, code: number): void {
    const kind = kindOfCode(code)
    if (this.#reading.isAnswer && this.#isLeftOut(node, kind, code)) return
    switch (kind) {
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
        return this.#add(node, this.#placeOf(code), this.#reading.isAnswer ? PLAIN : { kind: 'sealed' })
      case KIND.media:
        if (this.#reading.isAnswer) return this.#add(node, this.#placeOf(code))
        return this.#add(node, this.#placeOf(code), { kind: 'media', file: this.#fileFacts() })
      case KIND.input:
        return this.#add(node, 'tool_arguments')
      case KIND.arguments:
        return this.#add(node, 'tool_arguments', { isJson: true })
      case KIND.reasoning:
        return this.#add(node, this.#placeOf(code), { isSigned: this.#isSigned() })
      default:
        return this.#add(node, this.#placeOf(code))
    }
  }

  #number(node: Node, code: number): void {
    const kind = kindOfCode(code)
    if (isFree(kind)) this.#add(node, this.#placeOf(code), { isNumber: true })
    else if (kind === KIND.text && ownerOfCode(code) === OWNER.user) this.hasTokenIds = true
  }

  /** Reads an object that the shape does not describe further. */
  #covered(node: Node, code: number): void {
    if (this.#isRepeating(node, code)) return
    const kind = kindOfCode(code)
    if (this.#reading.isAnswer && isNotGenerated(kind, code)) return
    const isData = isFree(kind)
    // Of an answer's counts, ratings and filters, words are left out wherever they stand.
    const hasWords = this.#reading.isAnswer && kind === KIND.term
    this.#within(node, { place: this.#placeOf(code), isData, hasWords })
  }

  /** In an answer: whether a string is what it should be, and no text. */
  #isLeftOut(node: Node, kind: number, code: number): boolean {
    if (kind === KIND.sealed || kind === KIND.signature)
      return isTermAt(this.#scan, node) || isSealed(this.#textOf(node))
    if (kind === KIND.media) return isMediaContent(this.#scan, node)
    if (kind === KIND.address)
      return (
        hasBytesAt(this.#scan.bytes, this.#scan.startOf(node), DATA_URL) && isMediaContent(this.#scan, node)
      )
    return isNotGenerated(kind, code)
  }

  /** In an answer: whether an object or a list repeats texts token by token. */
  #isRepeating(node: Node, code: number): boolean {
    if (!this.#reading.isAnswer || kindOfCode(code) !== KIND.tokens) return false
    const scan = this.#scan
    const instead = scan.kindOf(node) === 'array' ? '[]' : (this.#reading.emptyTokens ?? 'null')
    this.repeating.push([scan.startOf(node), scan.endOf(node), instead])
    return true
  }

  /**
   * All strings are texts, also those that look like words of the protocol, because the shape does not say that they are.
   * Names and numbers are checked where users or models choose them.
   */
  #within(node: Node, found: Within): void {
    const { bytes, tape } = this.#scan
    const { place, isData, hasWords } = found
    const first = bytes[tape[node] as number] as number
    const end = tape[node + 2] as number
    if (first === QUOTE) {
      if (!hasWords || !isTermAt(this.#scan, node)) this.#add(node, place, { isData })
    } else if (first === OPENING_BRACKET) {
      this.#way.push(node, LIST)
      for (let at = node + STRIDE; at < end; at = tape[at + 2] as number) this.#within(at, found)
      this.#way.length -= 2
    } else if (first === OPENING_BRACE)
      for (let key = node + STRIDE; key < end; key = tape[key + 5] as number) {
        if (isData || !isMemberName(this.#scan.keyText(key))) this.#add(key, place, { isData: true })
        this.#way.push(node, key)
        this.#within(key + STRIDE, found)
        this.#way.length -= 2
      }
    else if (isData && isDigit(first)) this.#add(node, place, { isNumber: true, isData })
  }

  #undescribedName(key: Node, code: number): void {
    if (!isMemberName(this.#scan.keyText(key))) this.#add(key, this.#placeOf(code), { isData: true })
  }

  /** Guards know a tool's results by their owner. What the shape does not describe beside arguments belongs to these. */
  #placeOf(code: number): TextPlace {
    const kind = kindOfCode(code)
    const { isAnswer } = this.#reading
    // Guards know a tool's results only in requests. In an answer they are a part of the output.
    if (ownerOfCode(code) === OWNER.tool && !isAnswer) return 'tool_results'
    if (kind === KIND.arguments || kind === KIND.input) return 'tool_arguments'
    if (kind === KIND.undescribed && this.#hasArguments()) return 'tool_arguments'
    return isAnswer ? 'output' : 'input'
  }

  #hasArguments(): boolean {
    const around = this.#around.at(-1)
    return around !== undefined && this.#statedIn(around).hasArguments
  }

  #isInSchema(): boolean {
    const code = this.#codes[indexOf((this.#around.at(-1) as Around).node)] as number
    return tableOfCode(code) === this.#schemaTable
  }

  /**
   * Whether a signature covers reasoning. In a request it does so only in turns of a model: otherwise a client could mark
   * its own texts as reasoning, so that they are not changed. A signature that the gateway has made covers nothing.
   */
  #isSigned(): boolean {
    const { isAnswer, signsReasoning } = this.#reading
    if (signsReasoning) return true
    if (!this.#coversReasoning) return false
    let isSigned = false
    for (let at = this.#around.length - 1; at >= 0; at -= 1) {
      const stated = this.#statedIn(this.#around[at] as Around)
      isSigned ||= stated.isSigned
      if (stated.role) return isSigned && stated.role === 'model'
    }
    return isAnswer && isSigned
  }

  #isSignature(node: Node): boolean {
    const text = this.#textOf(node)
    return isSealed(text) && !(this.#reading.isAnswer && isSignatureEnvelope(text))
  }

  #statedIn(around: Around): Stated {
    if (around.stated) return around.stated
    let hasArguments = false
    let isSigned = false
    let role: Stated['role']
    for (const { node, kind, code } of this.#valuesOf(around)) {
      if (kind === KIND.arguments || kind === KIND.input) hasArguments = true
      else if (kind === KIND.role) role ??= ownerOfCode(code) === OWNER.model ? 'model' : 'other'
      else if (kind === KIND.signature && !role) isSigned ||= this.#isSignature(node)
    }
    return (around.stated = { hasArguments, isSigned, role })
  }

  /** What is stated about a file in its object, or in the one around it. */
  #fileFacts(): FileFacts {
    const [outer, inner] = [this.#around.at(-2), this.#around.at(-1)].map(
      (around) => around && this.#fileFactsIn(around),
    )
    return {
      mediaType: inner?.mediaType || outer?.mediaType || '',
      name: inner?.name || outer?.name || '',
    }
  }

  /** What an object states about a file: a media type among the words, a name among the texts. */
  #fileFactsIn(around: Around): FileFacts {
    if (around.file) return around.file
    const values = this.#valuesOf(around)
    const words = values.filter(({ kind }) => kind === KIND.term).map(({ node }) => this.#textOf(node))
    const texts = values.filter(({ kind }) => kind === KIND.text).map(({ node }) => this.#textOf(node))
    return (around.file = {
      mediaType: words.find((word) => word.includes('/')) ?? '',
      name: texts.find((name) => isStatedText({ mediaType: '', name })) ?? '',
    })
  }

  /** The values of an object, as the shape describes them. */
  #valuesOf({
    node: object,
  }: Around): { readonly node: Node; readonly kind: number; readonly code: number }[] {
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
    const way = this.#reading.hasWays ? this.#steps() : NO_WAY
    const isWhole = ownerOfCode(this.#codes[indexOf(node)] as number) === OWNER.provider
    const found = { from, to, place, isSigned, isJson, isNumber, isName, isData, isWhole, kind, way }
    this.texts.push(file ? { ...found, file } : found)
  }

  #steps(): PathStep[] {
    const steps: PathStep[] = []
    for (let at = 0; at < this.#way.length; at += 2) {
      const key = this.#way[at + 1] as Node
      steps.push({ name: key === LIST ? undefined : this.#scan.keyText(key), of: this.#way[at] as Node })
    }
    return steps
  }
}
