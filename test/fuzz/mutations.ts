/** What inputs are bred from. */
export interface MutationSources {
  readonly corpus: readonly Buffer[]
  readonly tokens: readonly Buffer[]
  /** Bytes that an input has at most. */
  readonly maxBytes: number
}

/** Whole numbers from 0 (included) to `end` (not). */
type RandomBelow = (end: number) => number
type Mutation = (bytes: Buffer, stock: MutationSources, upTo: RandomBelow) => Buffer

/** Bytes that mean something to one reader or another. */
const ODD_BYTES = Buffer.from('\0\t\n\v\r !"#%+,-./0:;=@[\\]{}\x7f\x80\xc3\xed\xef\xff', 'latin1')
/** Numbers at which something may turn over. */
const NUMBERS = [
  '0',
  '1',
  '-1',
  '00',
  '+1',
  '1e9',
  '127',
  '256',
  '16384',
  '65536',
  '2147483648',
  '4294967296',
  '9007199254740993',
  '18446744073709551616',
  'ff',
  '0x1',
].map((text) => Buffer.from(text))
/** Changes that one input gets at most, as a power of two. */
const MAX_DOUBLINGS = 4

function pick<T>(all: readonly T[], upTo: RandomBelow): T {
  return all[upTo(all.length)] as T
}

function replaced(bytes: Buffer, from: number, to: number, by: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), by, bytes.subarray(to)])
}

/** A stretch, most often a short one. */
function randomSpan(bytes: Buffer, upTo: RandomBelow): [from: number, to: number] {
  const from = upTo(bytes.length + 1)
  const length = upTo(4) === 0 ? upTo(bytes.length + 1) : upTo(16) + 1
  return [from, Math.min(bytes.length, from + length)]
}

const MUTATIONS: readonly Mutation[] = [
  function flipBit(bytes, _, upTo) {
    if (bytes.length === 0) return bytes
    const at = upTo(bytes.length)
    return replaced(bytes, at, at + 1, Buffer.of((bytes[at] as number) ^ (1 << upTo(8))))
  },
  function setByte(bytes, _, upTo) {
    const at = upTo(bytes.length + 1)
    return replaced(bytes, at, at + 1, Buffer.of(upTo(256)))
  },
  function putOddByte(bytes, _, upTo) {
    const at = upTo(bytes.length + 1)
    const byte = ODD_BYTES[upTo(ODD_BYTES.length)] as number
    return replaced(bytes, at, at + upTo(2), Buffer.of(byte))
  },
  function putToken(bytes, { tokens }, upTo) {
    if (tokens.length === 0) return bytes
    const [from, to] = randomSpan(bytes, upTo)
    return replaced(bytes, from, upTo(2) === 0 ? from : to, pick(tokens, upTo))
  },
  function remove(bytes, _, upTo) {
    const [from, to] = randomSpan(bytes, upTo)
    return replaced(bytes, from, to, Buffer.alloc(0))
  },
  function repeat(bytes, { maxBytes: most }, upTo) {
    const [from, to] = randomSpan(bytes, upTo)
    const piece = bytes.subarray(from, to)
    const room = Math.max(0, Math.floor((most - bytes.length) / Math.max(1, piece.length)))
    const times = upTo(8) === 0 ? upTo(room + 1) : Math.min(room, 1 + upTo(3))
    return replaced(bytes, to, to, Buffer.concat(Array.from({ length: times }, () => piece)))
  },
  function splice(bytes, { corpus: pool }, upTo) {
    const other = pick(pool, upTo)
    const [at, from] = [upTo(bytes.length + 1), upTo(other.length + 1)]
    return Buffer.concat([bytes.subarray(0, at), other.subarray(from)])
  },
  function graft(bytes, { corpus: pool }, upTo) {
    const other = pick(pool, upTo)
    const [from, to] = randomSpan(bytes, upTo)
    const [first, last] = randomSpan(other, upTo)
    return replaced(bytes, from, upTo(2) === 0 ? from : to, other.subarray(first, last))
  },
  function changeNumber(bytes, _, upTo) {
    const numbers = [...bytes.toString('latin1').matchAll(/\d+/g)]
    if (numbers.length === 0) return bytes
    const { 0: digits, index } = pick(numbers, upTo)
    const near = Buffer.from(String(Number(digits) + upTo(3) - 1))
    return replaced(bytes, index, index + digits.length, upTo(3) === 0 ? pick(NUMBERS, upTo) : near)
  },
  function move(bytes, _, upTo) {
    const [from, to] = randomSpan(bytes, upTo)
    const piece = Buffer.from(bytes.subarray(from, to))
    const rest = replaced(bytes, from, to, Buffer.alloc(0))
    const at = upTo(rest.length + 1)
    return replaced(rest, at, at, piece)
  },
]

/** An input with one to eight changes. */
export function mutated(parent: Buffer, stock: MutationSources, random: () => number): Buffer {
  const upTo: RandomBelow = (end) => Math.floor(random() * end)
  let bytes = parent
  for (let left = 1 << upTo(MAX_DOUBLINGS); left > 0; left--) bytes = pick(MUTATIONS, upTo)(bytes, stock, upTo)
  // A view of the parent could be changed with it.
  return Buffer.from(bytes.subarray(0, stock.maxBytes))
}
