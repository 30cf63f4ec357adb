import { readFileSync } from 'node:fs'
import { isFromVariable, type YamlNode } from './yaml-node.ts'

/** Encodings that the first bytes of a file tell, in the order in which they must be compared. */
const MARKS: readonly (readonly [name: string, bytes: readonly number[]])[] = [
  ['UTF-32', [0xff, 0xfe, 0x00, 0x00]],
  ['UTF-32', [0x00, 0x00, 0xfe, 0xff]],
  ['UTF-16', [0xff, 0xfe]],
  ['UTF-16', [0xfe, 0xff]],
]

/**
 * The text of a file of the operator's. Throws an error that names the encoding, or the line of the first
 * byte that is not UTF-8: replaced characters would change names and keys.
 */
export function readTextFile(path: string): string {
  const bytes = readFileSync(path)
  const marked = MARKS.find(([, mark]) => mark.every((byte, index) => bytes[index] === byte))
  if (marked) throw new Error(`it is ${marked[0]}: save it as UTF-8`)
  // Without a mark, every second byte of Latin text in UTF-16 is 0.
  if (bytes.includes(0)) throw new Error('it has bytes of 0, as in UTF-16: save it as UTF-8')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Error(
      `line ${lineOfFirstInvalid(bytes)} is not UTF-8 but some other encoding: save it as UTF-8`,
    )
  }
}

/** What an error message says if the file that `name` names cannot be read. The reason contains the path. */
export function unreadable(error: unknown, name: YamlNode): string {
  const reason = error instanceof Error ? error.message : String(error)
  return `expected a file that can be read${isFromVariable(name) ? '' : `: ${reason}`}`
}

/** Whether a file is not there, so that it may be written later. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

function lineOfFirstInvalid(bytes: Buffer): number {
  const text = bytes.toString('utf8')
  const original = Buffer.from(text)
  const at = original.findIndex((byte, index) => byte !== bytes[index])
  return bytes.subarray(0, at).filter((byte) => byte === NEWLINE).length + 1
}

const NEWLINE = 0x0a
