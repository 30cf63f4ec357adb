// Instructions, by their names in the WebAssembly specification; those of vectors have a prefix.
const BRANCH = 0x0c
const RETURN = 0x0f
const LOOP = [0x03, 0x40]
const IF = [0x04, 0x40]
const END = 0x0b
const EQZ = 0x45
const LT_U = 0x49
const CTZ = 0x68
const ADD = 0x6a
const SUB = 0x6b
const AND = 0x71
const OR = 0x72
const XOR = 0x73
const SHL = 0x74
const SHR_U = 0x76
const LOAD = [0xfd, 0x00, 0, 0]
const VECTOR = [0xfd, 0x0c]
const SWIZZLE = [0xfd, 0x0e]
const SPLAT = [0xfd, 0x0f]
const EQ_EACH = [0xfd, 0x23]
const NE_EACH = [0xfd, 0x24]
const LT_U_EACH = [0xfd, 0x26]
const AND_V128 = [0xfd, 0x4e]
const OR_V128 = [0xfd, 0x50]
const BITMASK = [0xfd, 0x64]
const SHR_U_EACH = [0xfd, 0x6d]

// Parameters.
const FROM = 0
const TO = 1
// Masks of sixteen bits, one for each byte.
const MARKS = 2
const QUOTES = 3
const BACKSLASHES = 4
const CONTROLS = 5
const ESCAPED = 6
const UNICODE = 7
const HEX = 8
const MASK = 9
const BAD = 10
/** Number of bytes that are read in this step. */
const SIZE = 11
/** Vectors of sixteen bytes. */
const BYTES = 12
const CLASSES = 13
const INTEGERS = 10
const VECTORS = 2

/**
 * Classes of a byte: the bits that its lower and its upper half have in common. Bits 0 to 3 say that it may
 * follow a backslash (`"` and `/`, `\`, `bfn`, `rtu`), bits 4 and 5 that it is a hexadecimal digit.
 */
const BY_LOWER_HALF = [
  0x10, 0x30, 0x3d, 0x30, 0x38, 0x38, 0x34, 0x10, 0x10, 0x10, 0x00, 0x00, 0x02, 0x00, 0x04, 0x01,
]
const BY_UPPER_HALF = [0x00, 0x00, 0x01, 0x10, 0x20, 0x02, 0x24, 0x08, 0, 0, 0, 0, 0, 0, 0, 0]
const FOLLOWS_BACKSLASH = 0x0f
const IS_HEX = 0x30
/** The odd places of a mask. */
const ODD = 0xaaaaaaaa | 0
/** The places whose four following bytes are not all among the sixteen. */
const LATE = 0xf000

/**
 * Reads a string in steps of sixteen bytes. A sequence with a backslash that the end of a step would cut is
 * left to the next one, so that nothing is carried over.
 */
const CODE = [
  LOOP,
  // Fewer than sixteen bytes: return ~from.
  [get(TO), get(FROM), SUB, integer(16), LT_U, IF, get(FROM), not(), RETURN, END],
  [get(FROM), LOAD, set(BYTES)],
  // No control character, quote or backslash: skip all.
  [get(BYTES), splat(0x20), LT_U_EACH],
  [get(BYTES), splat(0x22), EQ_EACH, OR_V128],
  [get(BYTES), splat(0x5c), EQ_EACH, OR_V128, BITMASK, tee(MARKS), EQZ],
  [IF, get(FROM), integer(16), ADD, set(FROM), BRANCH, 1, END],
  // First of them a quote: return its place.
  [get(BYTES), splat(0x22), EQ_EACH, BITMASK, tee(QUOTES), lowest(MARKS), AND],
  [IF, get(FROM), get(MARKS), CTZ, ADD, RETURN, END],
  [get(BYTES), splat(0x5c), EQ_EACH, BITMASK, set(BACKSLASHES)],
  [get(MARKS), get(QUOTES), XOR, get(BACKSLASHES), XOR, set(CONTROLS)],
  // Backslashes that begin a sequence, and the bytes that follow these: the subtraction carries through a run
  // of backslashes, so that its ends differ by whether it begins at an odd or an even place.
  [get(BACKSLASHES), integer(1), SHL, integer(ODD), OR, get(BACKSLASHES), SUB, integer(ODD), XOR],
  [tee(ESCAPED), get(BACKSLASHES), AND, integer(15), SHR_U, set(SIZE)],
  [integer(16), get(SIZE), SUB, set(SIZE)],
  [get(ESCAPED), get(BACKSLASHES), XOR, set(ESCAPED)],
  // "\u": its four digits, unless some of them belong to the next step.
  [get(BYTES), splat(0x75), EQ_EACH, BITMASK, get(ESCAPED), AND, tee(UNICODE), integer(LATE), AND, tee(MASK)],
  [IF, get(MASK), CTZ, integer(1), SUB, set(SIZE), END],
  [VECTOR, BY_LOWER_HALF, get(BYTES), splat(0x0f), AND_V128, SWIZZLE],
  [VECTOR, BY_UPPER_HALF, get(BYTES), integer(4), SHR_U_EACH, SWIZZLE, AND_V128, set(CLASSES)],
  [bytesWith(IS_HEX), set(HEX)],
  [following(1), following(2), AND, following(3), AND, following(4), AND, not(), get(UNICODE), AND],
  [bytesWith(FOLLOWS_BACKSLASH), not(), get(ESCAPED), AND, OR, get(CONTROLS), OR, set(BAD)],
  // The first end of the string, or mistake, of this step.
  [integer(1), get(SIZE), SHL, integer(1), SUB, set(MASK)],
  [get(QUOTES), get(ESCAPED), not(), AND, get(BAD), OR, get(MASK), AND, tee(MARKS), EQZ],
  [IF, get(FROM), get(SIZE), ADD, set(FROM), BRANCH, 1, END],
  [get(BAD), lowest(MARKS), AND, IF, get(FROM), not(), RETURN, END],
  [get(FROM), get(MARKS), CTZ, ADD, RETURN],
  END,
  // The function ends by one of the returns.
  0x00,
  END,
].flat(4)

/** The magic number and the version of a module. */
const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]

/**
 * WebAssembly module with a `memory` of two pages and `stringEnd(from, to)`, which reads a JSON string from
 * one of its characters on. Returns the offset of the closing quote. Where there is none, returns the bitwise
 * complement of an offset up to which the string is well-formed: less than sixteen bytes before `to`, or
 * else less than sixteen bytes before the mistake. Neither offset is within an escape sequence.
 */
export const STRING_END_MODULE = Uint8Array.from([
  ...HEADER,
  ...section(1, [1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f]), // type 0: (i32, i32) → i32
  ...section(3, [1, 0]), // one function of that type
  ...section(5, [1, 0, 2]), // a memory of two pages
  ...section(7, [2, ...named('memory'), 2, 0, ...named('stringEnd'), 0, 0]),
  ...section(10, [1, ...sized([2, INTEGERS, 0x7f, VECTORS, 0x7b, ...CODE])]),
])

function get(local: number): number[] {
  return [0x20, local]
}

function set(local: number): number[] {
  return [0x21, local]
}

function tee(local: number): number[] {
  return [0x22, local]
}

function not(): number[] {
  return [...integer(-1), XOR]
}

function splat(byte: number): number[] {
  return [...integer(byte), ...SPLAT]
}

// Bit of the first marked byte.
function lowest(mask: number): number[] {
  return [...get(mask), ...integer(0), ...get(mask), SUB, AND]
}

// Mask of the bytes that have one of these classes.
function bytesWith(classes: number): number[] {
  return [...get(CLASSES), ...splat(classes), ...AND_V128, ...splat(0), ...NE_EACH, ...BITMASK]
}

// Mask of the bytes behind which, at this distance, a hexadecimal digit stands.
function following(distance: number): number[] {
  return [...get(HEX), ...integer(distance), SHR_U]
}

// Instruction that puts an integer on the stack.
function integer(value: number): number[] {
  const bytes = [0x41]
  for (let rest = value; ; rest >>= 7) {
    const isLast = rest >= -64 && rest < 64
    bytes.push((rest & 0x7f) | (isLast ? 0 : 0x80))
    if (isLast) return bytes
  }
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...sized(content)]
}

// Lengths are below 2 ** 14: one byte or two.
function sized(content: readonly number[]): number[] {
  const { length } = content
  return length < 128 ? [length, ...content] : [(length & 0x7f) | 0x80, length >> 7, ...content]
}

function named(name: string): number[] {
  return sized([...Buffer.from(name)])
}
