import { type JsonSchema, kindName, refuse } from './field-check.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

const DIGIT_0 = 0x30
const DIGIT_9 = 0x39

/** Schema of token ids: one text that the client has already tokenized. */
export const tokenIdsSchema: JsonSchema = {
  type: 'array',
  minItems: 1,
  items: { type: 'integer', minimum: 0 },
}

/** Reports whether all elements are numbers, so that together they are one tokenized text. */
export function areNumbers(scan: ScannedObject, elements: readonly Node[]): boolean {
  return elements.every((element) => scan.kindOf(element) === 'number')
}

/** Checks in place that each element of `path` is a token id. Throws `invalid_request` otherwise. */
export function checkTokenIds(scan: ScannedObject, ids: readonly Node[], path: string): void {
  for (const [index, id] of ids.entries()) {
    if (isTokenId(scan, id)) continue
    const found = scan.kindOf(id) === 'number' ? 'another number' : kindName(scan, id)
    refuse(`${path}[${index}]`, 'the id of a token', found)
  }
}

function isTokenId(scan: ScannedObject, id: Node): boolean {
  for (let at = scan.startOf(id); at < scan.endOf(id); at++) {
    const byte = scan.bytes[at] as number
    if (byte < DIGIT_0 || byte > DIGIT_9) return false
  }
  return true
}
