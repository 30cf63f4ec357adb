import { isUtf8 } from 'node:buffer'
import { WireError } from '../wire-error.ts'
import { keyText, type Member, ScannedObject } from './scanned-object.ts'
import { StringEndFinder } from './string-end-finder.ts'

/**
 * Limits of accepted JSON: depth of nesting, number of values (without keys), and number of top-level keys.
 */
export interface ScanLimits {
  readonly depth: number
  readonly nodes: number
  readonly members: number
}

/**
 * Limits for a client's body. Only few top-level keys are allowed, because each costs ten times as much as a
 * nested one.
 */
export const JSON_LIMITS: ScanLimits = { depth: 128, nodes: 200_000, members: 1_000 }

/**
 * Limits for an upstream's response, which can be larger than a request, for example with search results or
 * generated files; and for a request that is not as the client sent it, because the gateway has converted it or put
 * earlier responses into it.
 */
export const RESPONSE_LIMITS: ScanLimits = { depth: 512, nodes: 2_000_000, members: 1_000 }

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const LETTER_U = 0x75
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** States of the parser: what may come next. They are numbers, because they are compared for each token. */
const FIRST_KEY = 0
const KEY = 1
const FIRST_ELEMENT = 2
const VALUE = 3
const AFTER = 4

const EXPECTED = [
  'a key in double quotes or "}"',
  'a key in double quotes',
  'a value or "]"',
  'a value',
] as const

/** Bytes that may follow a backslash, except `u`: " \ / b f n r t. */
const ESCAPES = table('"\\/bfnrt')
/**
 * Bytes that may be in a string without an escape. All bytes beyond ASCII may, because the text is valid
 * UTF-8.
 */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
)
/**
 * Number of plain bytes after which the search for the end of the string uses vector instructions, because it
 * is faster then.
 */
const LONG_RUN = 24
const HEX = table('0123456789abcdefABCDEF')
/** Length of the longest shared tape that is kept for the next scan, in numbers. */
const MAX_KEPT_TAPE = 65_536
const LITERALS = { t: Buffer.from('true'), f: Buffer.from('false'), n: Buffer.from('null') } as const

/**
 * Where scans write the tape, which is then copied in its length. Scans share it, because none is interrupted. A
 * new list would allocate three times as much while it grows.
 */
let shared: number[] = []

/**
 * Scans a JSON object strictly. Refuses everything that JSON.parse refuses, duplicate top-level keys, invalid
 * UTF-8, and input beyond the limits. Throws `invalid_json` with the byte position and what was expected
 * there. It is one loop without recursion, so that deep nesting cannot exhaust the stack. It is faster than
 * JSON.parse, and keeps all digits, the order of keys, and unknown members.
 */
export function scanObject(bytes: Buffer, limits: ScanLimits = JSON_LIMITS): ScannedObject {
  if (!isUtf8(bytes)) throw new WireError('invalid_json', 'Invalid JSON: the body is not valid UTF-8.')
  const length = bytes.length
  const strings = new StringEndFinder(bytes)
  if (shared.length > MAX_KEPT_TAPE) shared = []
  const tape = shared
  let used = 0
  const open: number[] = []
  const members = new Map<string, Member>()
  let nodes = 0
  let depth = 0
  let inObject = true
  let key = ''
  let keyStart = 0
  let count = 0
  let state = VALUE
  let p = 0

  for (;;) {
    let c = p < length ? (bytes[p] as number) : -1
    while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) c = ++p < length ? (bytes[p] as number) : -1

    if (state === AFTER) {
      if (c === COMMA) {
        state = inObject ? KEY : VALUE
        p++
        continue
      }
      if (c !== (inObject ? CLOSE_OBJECT : CLOSE_ARRAY))
        unexpected(bytes, p, inObject ? '"," or "}"' : '"," or "]"')
    } else if (state <= KEY) {
      if (c === QUOTE) {
        const end = stringEnd(bytes, strings, p, length)
        if (depth === 1) {
          if (members.size === limits.members)
            throw new WireError('invalid_json', `Invalid JSON: more than ${limits.members} keys at the top.`)
          key = keyText(bytes, p, end)
          if (members.has(key))
            throw new WireError(
              'invalid_json',
              `Invalid JSON at byte ${p}: the top-level key ${JSON.stringify(key.slice(0, 60))} is given twice.`,
            )
          keyStart = p
          count = 0
        }
        tape[used] = p
        tape[used + 1] = end
        tape[used + 2] = used + 3
        used += 3
        p = end
        c = p < length ? (bytes[p] as number) : -1
        while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09)
          c = ++p < length ? (bytes[p] as number) : -1
        if (c !== COLON) unexpected(bytes, p, '":"')
        p++
        state = VALUE
        continue
      }
      if (c !== CLOSE_OBJECT || state === KEY) unexpected(bytes, p, EXPECTED[state] as string)
    } else if (c !== CLOSE_ARRAY || state !== FIRST_ELEMENT) {
      if (++nodes > limits.nodes)
        throw new WireError('invalid_json', `Invalid JSON: more than ${limits.nodes} values.`)
      if (depth === 2) count++
      if (c === OPEN_OBJECT || c === OPEN_ARRAY) {
        if (depth === 0 && c === OPEN_ARRAY) unexpected(bytes, p, 'an object')
        if (++depth > limits.depth) {
          throw new WireError(
            'invalid_json',
            `Invalid JSON at byte ${p}: nested deeper than ${limits.depth} levels.`,
          )
        }
        open.push(used)
        tape[used] = p
        tape[used + 1] = 0
        tape[used + 2] = 0
        used += 3
        inObject = c === OPEN_OBJECT
        state = inObject ? FIRST_KEY : FIRST_ELEMENT
        p++
        continue
      }
      if (depth === 0) unexpected(bytes, p, 'an object')
      const start = p
      if (c === QUOTE) p = stringEnd(bytes, strings, p, length)
      else if (c === MINUS || (c >= ZERO && c <= NINE)) p = numberEnd(bytes, p, length)
      else p = literalEnd(bytes, p, c, state)
      if (depth === 1) members.set(key, { key, keyStart, start, end: p, node: used, count: 0 })
      tape[used] = start
      tape[used + 1] = p
      tape[used + 2] = used + 3
      used += 3
      state = AFTER
      continue
    }

    // All other bytes were handled before, so this is the bracket that closes the innermost container.
    p++
    const node = open.pop() as number
    tape[node + 1] = p
    tape[node + 2] = used
    depth--
    if (depth === 0) break
    if (depth === 1) members.set(key, { key, keyStart, start: tape[node] as number, end: p, node, count })
    inObject = bytes[tape[open[depth - 1] as number] as number] === OPEN_OBJECT
    state = AFTER
  }

  const end = p
  while (p < length) {
    const c = bytes[p] as number
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) unexpected(bytes, p, 'the end of the body')
    p++
  }
  return new ScannedObject(bytes, members, tape.slice(0, used), end)
}

/** Offset after the closing quote of the string that begins at `start`. */
function stringEnd(bytes: Buffer, strings: StringEndFinder, start: number, length: number): number {
  let p = start + 1
  const long = p + LONG_RUN
  while (p < long && PLAIN[bytes[p] as number] === 1) p++
  if (bytes[p] !== QUOTE) p = strings.skip(p)
  // Usually the loop ends in its first round. More rounds are needed for invalid characters, at the end of
  // the text, and on processors without vector instructions.
  for (;;) {
    while (PLAIN[bytes[p] as number] === 1) p++
    const c = p < length ? (bytes[p] as number) : -1
    if (c === QUOTE) return p + 1
    if (c !== BACKSLASH) unexpected(bytes, p, c < 0 ? 'a closing quote' : 'no control character in a string')
    const escape = p + 1 < length ? (bytes[p + 1] as number) : -1
    if (escape === LETTER_U) {
      for (let i = p + 2; i < p + 6; i++) {
        if (i >= length || HEX[bytes[i] as number] !== 1) unexpected(bytes, i, 'four hexadecimal digits')
      }
      p += 6
    } else {
      if (escape < 0 || ESCAPES[escape] !== 1) unexpected(bytes, p + 1, 'a character that can be escaped')
      p += 2
    }
  }
}

/** Returns the offset after the number that begins at `start`. */
function numberEnd(bytes: Buffer, start: number, length: number): number {
  let p = start
  if (bytes[p] === MINUS) p++
  if (p < length && bytes[p] === ZERO) p++
  else p = digitsEnd(bytes, p, length)
  if (p < length && bytes[p] === DOT) p = digitsEnd(bytes, p + 1, length)
  if (p < length && (bytes[p] === 0x65 || bytes[p] === 0x45)) {
    p++
    if (p < length && (bytes[p] === 0x2b || bytes[p] === MINUS)) p++
    p = digitsEnd(bytes, p, length)
  }
  return p
}

function digitsEnd(bytes: Buffer, start: number, length: number): number {
  let p = start
  while (p < length && (bytes[p] as number) >= ZERO && (bytes[p] as number) <= NINE) p++
  if (p === start) unexpected(bytes, p, 'a digit')
  return p
}

function literalEnd(bytes: Buffer, start: number, first: number, state: number): number {
  const literal =
    first === 0x74 ? LITERALS.t : first === 0x66 ? LITERALS.f : first === 0x6e ? LITERALS.n : undefined
  if (!literal) unexpected(bytes, start, EXPECTED[state] as string)
  for (let i = 1; i < literal.length; i++) {
    if (bytes[start + i] !== literal[i]) unexpected(bytes, start + i, literal.toString())
  }
  return start + literal.length
}

function unexpected(bytes: Buffer, position: number, expected: string): never {
  const what =
    position >= bytes.length ? 'the body ends there' : `found ${displayed(bytes[position] as number)}`
  throw new WireError('invalid_json', `Invalid JSON at byte ${position}: expected ${expected}, ${what}.`)
}

function displayed(byte: number): string {
  return byte > 0x20 && byte < 0x7f
    ? `"${String.fromCharCode(byte)}"`
    : `0x${byte.toString(16).padStart(2, '0')}`
}

function table(characters: string): Uint8Array {
  const result = new Uint8Array(256)
  for (const character of characters) result[character.charCodeAt(0)] = 1
  return result
}
