/** The material for mutations. */
export interface MutationSources {
  readonly corpus: readonly Buffer[]
  readonly tokens: readonly Buffer[]
  /** Maximum size of an input. */
  readonly maxBytes: number
}

/** Returns an integer from 0 (included) to `end` (excluded). */
type RandomBelow = (end: number) => number
type Mutation = (bytes: Buffer, stock: MutationSources, below: RandomBelow) => Buffer

/** Bytes that mean something in some grammar. */
const SPECIAL_BYTES = Buffer.from('\0\t\n\v\r !"#%+,-./0:;=@[\\]{}\x7f\x80\xc3\xed\xef\xff', 'latin1')
/** Numbers at the edges of integer types and buffers. */
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
/** The binary logarithm of the number of mutations per input is below this. */
const MAX_DOUBLINGS = 4

function pick<T>(all: readonly T[], below: RandomBelow): T {
  return all[below(all.length)] as T
}

function replaced(bytes: Buffer, from: number, to: number, by: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), by, bytes.subarray(to)])
}

/** A random span of the bytes, usually a short one. */
function randomSpan(bytes: Buffer, below: RandomBelow): [from: number, to: number] {
  const from = below(bytes.length + 1)
  const length = below(4) === 0 ? below(bytes.length + 1) : below(16) + 1
  return [from, Math.min(bytes.length, from + length)]
}

const MUTATIONS: readonly Mutation[] = [
  function flipBit(bytes, _, below) {
    if (bytes.length === 0) return bytes
    const at = below(bytes.length)
    return replaced(bytes, at, at + 1, Buffer.of((bytes[at] as number) ^ (1 << below(8))))
  },
  function setByte(bytes, _, below) {
    const at = below(bytes.length + 1)
    return replaced(bytes, at, at + 1, Buffer.of(below(256)))
  },
  function putSpecialByte(bytes, _, below) {
    const at = below(bytes.length + 1)
    const byte = SPECIAL_BYTES[below(SPECIAL_BYTES.length)] as number
    return replaced(bytes, at, at + below(2), Buffer.of(byte))
  },
  function putToken(bytes, { tokens }, below) {
    if (tokens.length === 0) return bytes
    const [from, to] = randomSpan(bytes, below)
    return replaced(bytes, from, below(2) === 0 ? from : to, pick(tokens, below))
  },
  function remove(bytes, _, below) {
    const [from, to] = randomSpan(bytes, below)
    return replaced(bytes, from, to, Buffer.alloc(0))
  },
  function repeat(bytes, { maxBytes: most }, below) {
    const [from, to] = randomSpan(bytes, below)
    const piece = bytes.subarray(from, to)
    const maxTimes = Math.max(0, Math.floor((most - bytes.length) / Math.max(1, piece.length)))
    const times = below(8) === 0 ? below(maxTimes + 1) : Math.min(maxTimes, 1 + below(3))
    return replaced(bytes, to, to, Buffer.concat(Array.from({ length: times }, () => piece)))
  },
  function splice(bytes, { corpus: pool }, below) {
    const other = pick(pool, below)
    const [at, from] = [below(bytes.length + 1), below(other.length + 1)]
    return Buffer.concat([bytes.subarray(0, at), other.subarray(from)])
  },
  function graft(bytes, { corpus: pool }, below) {
    const other = pick(pool, below)
    const [from, to] = randomSpan(bytes, below)
    const [first, last] = randomSpan(other, below)
    return replaced(bytes, from, below(2) === 0 ? from : to, other.subarray(first, last))
  },
  function changeNumber(bytes, _, below) {
    const numbers = [...bytes.toString('latin1').matchAll(/\d+/g)]
    if (numbers.length === 0) return bytes
    const { 0: digits, index } = pick(numbers, below)
    const near = Buffer.from(String(Number(digits) + below(3) - 1))
    return replaced(bytes, index, index + digits.length, below(3) === 0 ? pick(NUMBERS, below) : near)
  },
  function move(bytes, _, below) {
    const [from, to] = randomSpan(bytes, below)
    const piece = Buffer.from(bytes.subarray(from, to))
    const rest = replaced(bytes, from, to, Buffer.alloc(0))
    const at = below(rest.length + 1)
    return replaced(rest, at, at, piece)
  },
]

/** A copy of `parent` with one, two, four or eight mutations. */
export function mutated(parent: Buffer, stock: MutationSources, random: () => number): Buffer {
  const below: RandomBelow = (end) => Math.floor(random() * end)
  let bytes = parent
  for (let left = 1 << below(MAX_DOUBLINGS); left > 0; left--)
    bytes = pick(MUTATIONS, below)(bytes, stock, below)
  // A copy, since a view would share the parent's memory.
  return Buffer.from(bytes.subarray(0, stock.maxBytes))
}
