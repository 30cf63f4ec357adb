import { hasBytesAt } from '../json/bytes.ts'
import {
  keyText,
  type Node,
  type OutlinedDocument,
  ROOT,
  type ScannedObject,
} from '../json/scanned-object.ts'
import type { CompiledPlace, CompiledTable, Shape } from './define-shape.ts'
import { hasEscape, NameTable } from './name-table.ts'
import { KIND, OWNER } from './vocabulary.ts'

const QUOTE = 0x22
const LETTER_T = 0x74
const OPENING_BRACKET = 0x5b
const OPENING_BRACE = 0x7b

/** Number of numbers that the tape of a scanned object has for each key and value. */
const STRIDE = 3
/** Multiplying a multiple of three by this number modulo 2^32 divides it by three, faster than a division. */
const THIRD = 0xaaaa_aaab
const FEW = 32
const POOL_BYTES = 16_384
const MAX_POOLED = 1_024
/** Maximum number of bytes of a letter in a JSON string, which may be escaped. */
const ESCAPED_BYTES = 6
/** A code has the kind in its lowest bits, then the owner, then the table. */
const KIND_BITS = 5
const KIND_MASK = 31
const OWNER_MASK = 7
const TABLE_SHIFT = 8

const OWNERS_BY_ROLE = new NameTable(
  new Map<string, number>([
    ['assistant', OWNER.model],
    ['developer', OWNER.system],
    ['function', OWNER.tool],
    ['model', OWNER.model],
    ['system', OWNER.system],
    ['tool', OWNER.tool],
    ['user', OWNER.user],
  ]),
)
const ROLE = Buffer.from('role')
const TYPE = Buffer.from('type')

/**
 * A code (kind, owner and table) for each key and value of a document, in the order of the tape. The code of `node` is at
 * `indexOf(node)`.
 */
export type Outline = Uint16Array

/** Returns the position of a node's code in the outline. */
export function indexOf(node: Node): number {
  return Math.imul(node, THIRD)
}

/**
 * Memory of the next small outlines. Allocating a separate buffer for each would cost more than filling it, so they share
 * one, like Node's small Buffers.
 */
let pool = new ArrayBuffer(0)
let poolUsed = 0

function codesFor(count: number): Outline {
  if (count > MAX_POOLED) return new Uint16Array(count)
  const bytes = count * Uint16Array.BYTES_PER_ELEMENT
  if (poolUsed + bytes > pool.byteLength) {
    pool = new ArrayBuffer(POOL_BYTES)
    poolUsed = 0
  }
  const codes = new Uint16Array(pool, poolUsed, count)
  poolUsed += bytes
  return codes
}

/** The number in `KIND` of the value's kind. */
export function kindOfCode(code: number): number {
  return code & KIND_MASK
}

/** The number in `OWNER` of the value's owner. */
export function ownerOfCode(code: number): number {
  return (code >> KIND_BITS) & OWNER_MASK
}

/** The number (`Shape.tableId`) of the table that describes an object; -1 for all other values. */
export function tableOfCode(code: number): number {
  return (code >> TABLE_SHIFT) - 1
}

/** Returns the outline of a document. It is made once for a document and a shape. */
export function outlineOf(scan: ScannedObject, shape: Shape): Outline {
  return outlined(scan, shape).codes
}

/** Whether a document has a value of this kind. */
export function hasKind(scan: ScannedObject, shape: Shape, kind: number): boolean {
  return (outlined(scan, shape).kinds & (1 << kind)) !== 0
}

/** Tables of a shape as bits, for `mayHaveTable`. A bit stands for several tables if a shape has more than 32. */
export function tableBits(tables: readonly number[]): number {
  return tables.reduce((bits, table) => bits | (1 << table), 0)
}

/** Whether a document may have an object of one of these tables, so that it has to be searched for them. */
export function mayHaveTable(scan: ScannedObject, shape: Shape, bits: number): boolean {
  return (outlined(scan, shape).tables & bits) !== 0
}

function outlined(scan: ScannedObject, shape: Shape): OutlinedDocument {
  if (scan.outline?.shape === shape) return scan.outline
  const walk = new Walk(scan)
  const owner = shape.rootName === 'Request' ? OWNER.provider : OWNER.model
  walk.object(ROOT, shape.root, owner, KIND.text)
  return (scan.outline = { shape, codes: walk.codes, kinds: walk.kinds, tables: walk.tables })
}

/** Visits the objects in a value that a table describes, with the number of the table, in the order of the text. */
export function eachObject(
  scan: ScannedObject,
  outline: Outline,
  node: Node,
  visit: (object: Node, table: number) => void,
): void {
  const end = indexOf(scan.tape[node + 2] as number)
  for (let index = indexOf(node); index < end; index++) {
    const table = tableOfCode(outline[index] as number)
    if (table !== -1) visit(index * STRIDE, table)
  }
}

class Walk {
  readonly codes: Outline
  /** Kinds of values and numbers of tables that occur, as bits. */
  kinds = 0
  tables = 0
  readonly #bytes: Buffer
  readonly #tape: readonly number[]

  constructor({ bytes, tape }: ScannedObject) {
    this.codes = codesFor(indexOf(tape.length))
    this.#bytes = bytes
    this.#tape = tape
  }

  /** `owner` and `textKind` are those of the texts in the object. */
  object(node: Node, table: CompiledTable, owner: number, textKind: number): void {
    const tape = this.#tape
    const bytes = this.#bytes
    const { codes } = this
    const end = tape[node + 2] as number
    let described = table
    let whose = owner
    let kind = textKind
    if (table.variants) {
      const type = this.#memberNamed(TYPE, node, end)
      const variant = type === -1 ? undefined : this.#find(table.variants, type)
      if (variant) described = variant
    }
    if (table.flagged) {
      const flag = this.#memberNamed(table.flagged.name, node, end)
      if (flag !== -1 && bytes[tape[flag] as number] === LETTER_T) described = table.flagged.table
    }
    // A value inside a result or reasoning is a part of it. A role there is ignored.
    if (table.hasRole && textKind === KIND.text) {
      const role = this.#memberNamed(ROLE, node, end)
      const found = role === -1 ? undefined : this.#find(OWNERS_BY_ROLE, role)
      if (found !== undefined) {
        whose = found
        kind = whose === OWNER.tool ? KIND.result : KIND.text
      }
    }
    const own = whose << KIND_BITS
    const { members } = described
    codes[indexOf(node)] = KIND.structure | own | ((described.id + 1) << TABLE_SHIFT)
    this.tables |= 1 << described.id
    for (let key = node + STRIDE; key < end; ) {
      const next = tape[key + 5] as number
      const place = members.find(bytes, tape[key] as number, tape[key + 1] as number)
      if (place === undefined) this.#fill(key, next, KIND.undescribed | own)
      else {
        codes[indexOf(key)] = KIND.structure | own
        this.#value(key + STRIDE, place, place.owner === -1 ? whose : place.owner, kind)
      }
      key = next
    }
  }

  #value(node: Node, place: CompiledPlace, owner: number, textKind: number): void {
    const tape = this.#tape
    const { codes } = this
    const { kind, table } = place
    const own = owner << KIND_BITS
    const first = this.#bytes[tape[node] as number]
    const kindHere = kind === KIND.text ? textKind : kind
    if (first === QUOTE) {
      const found = kind === KIND.number ? KIND.undescribed : kindHere
      codes[indexOf(node)] = found | own
      this.kinds |= 1 << found
    } else if (first === OPENING_BRACE) {
      if (table) {
        this.object(node, table, owner, isContext(kind) ? kind : textKind)
        // Readers that skip marks skip the whole object.
        if (kind === KIND.mark) {
          codes[indexOf(node)] = (codes[indexOf(node)] as number) | KIND.mark
          this.kinds |= 1 << KIND.mark
        }
      } else if (place.values) this.#map(node, place.values, owner, textKind)
      else this.#fill(node, tape[node + 2] as number, (place.coversObjects ? kind : KIND.undescribed) | own)
    } else if (first === OPENING_BRACKET) {
      if (place.coversObjects) return this.#fill(node, tape[node + 2] as number, kind | own)
      codes[indexOf(node)] = KIND.structure | own
      const end = tape[node + 2] as number
      for (let at = node + STRIDE; at < end; at = tape[at + 2] as number)
        this.#value(at, place, owner, textKind)
    } else {
      codes[indexOf(node)] = kindHere | own
      this.kinds |= 1 << kindHere
    }
  }

  #map(node: Node, values: CompiledPlace, owner: number, textKind: number): void {
    const tape = this.#tape
    const { codes } = this
    const own = owner << KIND_BITS
    const end = tape[node + 2] as number
    codes[indexOf(node)] = KIND.structure | own
    for (let key = node + STRIDE; key < end; key = tape[key + 5] as number) {
      codes[indexOf(key)] = KIND.name | own
      this.#value(key + STRIDE, values, owner, textKind)
    }
  }

  #fill(from: Node, to: Node, code: number): void {
    this.kinds |= 1 << kindOfCode(code)
    const start = indexOf(from)
    const end = indexOf(to)
    // A call of `fill` costs more than a few assignments.
    if (end - start > FEW) this.codes.fill(code, start, end)
    else for (let index = start; index < end; index++) this.codes[index] = code
  }

  /** Finds a value by a string; undefined if the node is not a string. */
  #find<Value>(names: NameTable<Value>, node: Node): Value | undefined {
    const start = this.#tape[node] as number
    return this.#bytes[start] === QUOTE
      ? names.find(this.#bytes, start, this.#tape[node + 1] as number)
      : undefined
  }

  /** The value of the last member with a name, as JSON.parse takes it; -1 if there is none. */
  #memberNamed(name: Buffer, object: Node, end: number): Node {
    const tape = this.#tape
    const bytes = this.#bytes
    const { length } = name
    let found = -1
    for (let key = object + STRIDE; key < end; key = tape[key + 5] as number) {
      const from = tape[key] as number
      const to = tape[key + 1] as number
      const size = to - from - 2
      if (size === length ? hasBytesAt(bytes, from + 1, name) : isEscaped(bytes, from, to, name))
        found = key + STRIDE
    }
    return found
  }
}

/** Whether a key is this name, written with escape sequences. */
function isEscaped(bytes: Buffer, from: number, to: number, name: Buffer): boolean {
  const size = to - from - 2
  // An escaped letter has five bytes more.
  if (
    size < name.length + ESCAPED_BYTES - 1 ||
    size > name.length * ESCAPED_BYTES ||
    !hasEscape(bytes, from, to)
  )
    return false
  return keyText(bytes, from, to) === name.toString()
}

/** Whether texts inside an object of this kind have the same kind. */
function isContext(kind: number): boolean {
  return kind === KIND.reasoning || kind === KIND.result
}
