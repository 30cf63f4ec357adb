import { isMemberName, isSealed, isTerm } from './guarded-values.ts'
import { hasBytesAt } from './json/bytes.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

/**
 * Members whose values only their makers can read, such as signatures. They may be longer than other words of a
 * protocol.
 */
const SEALED_IN_ANSWERS: ReadonlySet<string> = new Set([
  'data',
  'encrypted_content',
  'encrypted_index',
  'signature',
  'thoughtSignature',
  'thought_signature',
])
const QUOTE = 0x22
const DATA_URL = Buffer.from('"data:')
/** Matches a data URL of base64 up to its comma. */
const BASE64_URL = /^data:[\w.+*/-]*(?:; ?[\w-]+=[\w.+-]+)*; ?base64,/
const MAX_HEADER = 256
const BACKSLASH = 0x5c
/** Bytes of base64 of either alphabet, and those that may follow a backslash in the JSON of it. */
const IS_BASE64 = bytesOf(/[\w+/=-]/)
const IS_ESCAPE_IN_BASE64 = bytesOf(/[/nr]/)

function bytesOf(pattern: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (pattern.test(String.fromCharCode(byte)) ? 1 : 0))
}

/**
 * Whether the value of a member that is a word of the protocol looks like one. Any other is a text of the answer.
 * `docs/guards.md: What is no text`.
 */
export function isAnswerWord(scan: ScannedObject, name: string, value: Node): boolean {
  if (scan.bytes[scan.startOf(value)] !== QUOTE) return true
  const text = JSON.parse(scan.bytes.toString('utf8', scan.startOf(value), scan.endOf(value))) as string
  return isTerm(text) || (SEALED_IN_ANSWERS.has(name) && isSealed(text))
}

/** Whether a value where the bytes of media stand is base64, or a data URL of it. */
export function isMediaContent(scan: ScannedObject, value: Node): boolean {
  const { bytes } = scan
  let from = scan.startOf(value) + 1
  if (hasBytesAt(bytes, from - 1, DATA_URL)) {
    const [header] = BASE64_URL.exec(bytes.toString('latin1', from, from + MAX_HEADER)) ?? []
    if (header === undefined) return false
    from += header.length
  }
  for (let at = from; at < scan.endOf(value) - 1; at += 1) {
    const isEscape = bytes[at] === BACKSLASH
    if (isEscape) at += 1
    if ((isEscape ? IS_ESCAPE_IN_BASE64 : IS_BASE64)[bytes[at] as number] === 0) return false
  }
  return true
}

/** Calls `take` with the strings and names in a value that do not look like words of a protocol. */
export function findUnusualWords(scan: ScannedObject, value: Node, take: (node: Node) => void): void {
  switch (scan.kindOf(value)) {
    case 'string':
      if (!isAnswerWord(scan, '', value)) take(value)
      return
    case 'array':
      for (const element of scan.elements(value)) findUnusualWords(scan, element, take)
      return
    case 'object':
      for (let key = scan.firstKey(value); key !== undefined; key = scan.nextKey(key, value)) {
        if (!isMemberName(scan.keyText(key))) take(key)
        findUnusualWords(scan, scan.valueOf(key), take)
      }
      return
    case 'number':
    case 'true':
    case 'false':
    case 'null':
  }
}
