import { createHash, type Hash } from 'node:crypto'
import { BILLING_HEADER } from './billing-header.ts'
import { hasBytesAt } from './json/bytes.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { Shape } from './shape/define-shape.ts'
import { indexOf, kindOfCode, outlineOf, ownerOfCode } from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'

/** Size in bytes up to which pieces are collected before they are hashed. */
const BLOCK_BYTES = 16_384
const BLOCK = Buffer.allocUnsafe(BLOCK_BYTES)

const BILLING_LINE = Buffer.from(`"${BILLING_HEADER}`)
const BACKSLASH = 0x5c
const LETTER_N = 0x6e

/**
 * SHA-256 of a request. It does not depend on the order of members, on white space, or on how strings are
 * escaped; numbers count as they are written. Top-level members in `leftOut` do not count, nor does the line
 * that Claude Code adds to each system prompt. Only strings with escapes are parsed.
 */
export function canonicalDigest(scan: ScannedObject, shape: Shape, leftOut: ReadonlySet<string>): Buffer {
  const writer = new CanonicalWriter(scan, shape)
  const members = [...scan.members.values()]
    .filter(({ key }) => !leftOut.has(key))
    .toSorted((one, other) => compared(one.key, other.key))
  writer.text('{')
  for (const { key, node } of members) {
    writer.text(`${JSON.stringify(key)}:`)
    writer.value(node)
    writer.text(',')
  }
  writer.text('}')
  return writer.digest()
}

/** Writes JSON in its canonical form to a hash. */
class CanonicalWriter {
  readonly #scan: ScannedObject
  readonly #shape: Shape
  readonly #hash: Hash = createHash('sha256')
  #length = 0

  constructor(scan: ScannedObject, shape: Shape) {
    this.#scan = scan
    this.#shape = shape
  }

  digest(): Buffer {
    this.#flush()
    return this.#hash.digest()
  }

  text(text: string): void {
    if (text.length * 3 > BLOCK_BYTES - this.#length) this.#flush()
    if (text.length * 3 > BLOCK_BYTES) this.#hash.update(text)
    else this.#length += BLOCK.write(text, this.#length)
  }

  value(node: Node): void {
    const scan = this.#scan
    switch (scan.kindOf(node)) {
      case 'object':
        return this.#object(node)
      case 'array':
        this.text('[')
        for (const element of scan.elements(node)) {
          this.value(element)
          this.text(',')
        }
        return this.text(']')
      case 'string':
        return this.#string(node)
      case 'number':
      case 'true':
      case 'false':
      case 'null':
        return this.#bytes(scan.startOf(node), scan.endOf(node))
    }
  }

  // If several members have the same name, all of them count, in their order.
  #object(node: Node): void {
    const scan = this.#scan
    const entries = scan.entries(node)
    if (entries.length > 1) entries.sort((one, other) => compared(one.key, other.key))
    this.text('{')
    for (const { key, node: value } of entries) {
      this.text(`${JSON.stringify(key)}:`)
      this.value(value)
      this.text(',')
    }
    this.text('}')
  }

  #isInstruction(node: Node): boolean {
    const code = outlineOf(this.#scan, this.#shape)[indexOf(node)] as number
    return kindOfCode(code) === KIND.text && ownerOfCode(code) === OWNER.system
  }

  #endOfLine(start: number, end: number): number {
    const { bytes } = this.#scan
    for (let at = start; at < end; at++) {
      if (bytes[at] !== BACKSLASH) continue
      if (bytes[at + 1] === LETTER_N) return at
      at++
    }
    return end
  }

  // A string without escapes is written as it is, and one with escapes as `JSON.stringify` writes it, so that
  // the same text is always written in the same way.
  #string(node: Node): void {
    const { bytes } = this.#scan
    const [start, end] = [this.#scan.startOf(node), this.#scan.endOf(node)]
    if (hasBytesAt(bytes, start, BILLING_LINE) && this.#isInstruction(node)) {
      const rest = bytes.toString('utf8', this.#endOfLine(start + 1, end - 1), end)
      return this.text(JSON.stringify(JSON.parse(`"${rest}`)))
    }
    // The search is limited to the string, because a request may contain very many strings.
    if (!bytes.subarray(start, end).includes(BACKSLASH)) this.#bytes(start, end)
    else this.text(JSON.stringify(this.#scan.parse(node)))
  }

  #bytes(start: number, end: number): void {
    const size = end - start
    if (size > BLOCK_BYTES - this.#length) this.#flush()
    if (size > BLOCK_BYTES) this.#hash.update(this.#scan.bytes.subarray(start, end))
    else {
      this.#scan.bytes.copy(BLOCK, this.#length, start, end)
      this.#length += size
    }
  }

  #flush(): void {
    if (this.#length > 0) this.#hash.update(BLOCK.subarray(0, this.#length))
    this.#length = 0
  }
}

function compared(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
