import { hasBytesAt } from './json/bytes.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

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
