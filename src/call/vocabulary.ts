import process from 'node:process'
import { LRUCache } from 'lru-cache'

const CONTRACTION = "(?:'(?:[sS]|[dD]|[mM]|[tT]|[lL][lL]|[vV][eE]|[rR][eE]))?"
const CAPITALS = String.raw`\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
const SMALL = String.raw`\p{Ll}\p{Lm}\p{Lo}\p{M}`

/** Matches the words of a text in the vocabulary `o200k_base`, as OpenAI's tiktoken defines them. */
export const O200K_WORDS = new RegExp(
  [
    String.raw`[^\r\n\p{L}\p{N}]?[${CAPITALS}]*[${SMALL}]+${CONTRACTION}`,
    String.raw`[^\r\n\p{L}\p{N}]?[${CAPITALS}]+[${SMALL}]*${CONTRACTION}`,
    String.raw`\p{N}{1,3}`,
    String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
    String.raw`\s*[\r\n]+`,
    String.raw`\s+(?!\S)`,
    String.raw`\s+`,
  ].join('|'),
  'gu',
)

/** Rank of a sequence of bytes that is not a token. */
const NONE = 0x7fffffff
const MAX_TOKENS = 2 ** 18
/** Number of slots of the hash table. */
const SLOTS = 2 * MAX_TOKENS
const SPACE = 0x20
const NEW_LINE = 0x0a
const PADDING = 0x3d
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/**
 * Counts the tokens of byte-pair encoding. The vocabulary is stored in arrays of numbers: 200,000 strings
 * take twice the time and memory (`docs/dependencies.md`).
 */
export class Vocabulary {
  readonly #split: RegExp
  /** The bytes of all tokens, in the order of their ranks, and the offset at which each token ends. */
  readonly #bytes: Uint8Array
  readonly #ends = new Uint32Array(MAX_TOKENS)
  /** Hash table of ranks. Each rank is stored plus 1, because 0 marks an empty slot. */
  readonly #slots = new Int32Array(SLOTS)

  /**
   * `file` is a vocabulary in the format of tiktoken: one line per token in the order of ranks, with its
   * bytes in base64 before a space. It is decoded in place and kept. `split` matches the words of a text; a
   * token never spans two words.
   */
  constructor(file: Uint8Array, split: RegExp) {
    this.#split = split
    this.#bytes = file
    const tokens = decode(file, this.#ends)
    for (let rank = 0, start = 0; rank < tokens; rank++) {
      const end = this.#ends[rank] as number
      // Tokens need not be compared, because no two of a vocabulary are equal: the first empty slot is taken.
      let slot = firstSlotOf(file, start, end)
      while (this.#slots[slot] !== 0) slot = nextSlot(slot)
      this.#slots[slot] = rank + 1
      start = end
    }
  }

  /** Counts the tokens in a text. */
  count(text: string): number {
    let tokens = 0
    for (const [word] of text.matchAll(this.#split)) tokens += this.#tokensOf(Buffer.from(word))
    return tokens
  }

  /**
   * Merges adjacent tokens, those with the lowest rank first, until no two of them form a token. Returns the
   * number of remaining tokens.
   */
  #tokensOf(word: Uint8Array): number {
    if (this.#rankOf(word, 0, word.length) !== NONE) return 1
    const starts = Int32Array.from({ length: word.length + 1 }, (_, at) => at)
    let tokens = word.length
    // For each token, the rank of the token that it would form together with the token after it.
    const ranks = new Int32Array(tokens)
    const rankOfPair = (at: number): number =>
      at + 2 > tokens ? NONE : this.#rankOf(word, starts[at] as number, starts[at + 2] as number)
    for (let at = 0; at < tokens; at++) ranks[at] = rankOfPair(at)
    for (;;) {
      let lowest = 0
      for (let at = 1; at < tokens; at++) if ((ranks[at] as number) < (ranks[lowest] as number)) lowest = at
      if (ranks[lowest] === NONE) return tokens
      starts.copyWithin(lowest + 1, lowest + 2, tokens + 1)
      ranks.copyWithin(lowest + 1, lowest + 2, tokens)
      tokens -= 1
      ranks[lowest] = rankOfPair(lowest)
      if (lowest > 0) ranks[lowest - 1] = rankOfPair(lowest - 1)
    }
  }

  #rankOf(bytes: Uint8Array, start: number, end: number): number {
    for (let slot = firstSlotOf(bytes, start, end); ; slot = nextSlot(slot)) {
      const stored = this.#slots[slot] as number
      if (stored === 0) return NONE
      if (this.#is(stored - 1, bytes, start, end)) return stored - 1
    }
  }

  #is(rank: number, bytes: Uint8Array, start: number, end: number): boolean {
    const from = rank === 0 ? 0 : (this.#ends[rank - 1] as number)
    if ((this.#ends[rank] as number) - from !== end - start) return false
    for (let at = start; at < end; at++) if (bytes[at] !== this.#bytes[from + at - start]) return false
    return true
  }
}

/** The slot where a search for these bytes begins, by FNV-1a. */
function firstSlotOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193)
  return (hash ^ (hash >>> 15)) & (SLOTS - 1)
}

function nextSlot(slot: number): number {
  return (slot + 1) & (SLOTS - 1)
}

/** Decodes the tokens of a file in place and records the end of each. Returns their number. */
function decode(file: Uint8Array, ends: Uint32Array): number {
  const values = new Uint8Array(256)
  for (let value = 0; value < BASE64.length; value++) values[BASE64.charCodeAt(value)] = value
  let tokens = 0
  let size = 0
  for (let at = 0; at < file.length; at++) {
    let bits = 0
    let count = 0
    for (; file[at] !== SPACE && file[at] !== PADDING; at++) {
      bits = ((bits << 6) | (values[file[at] as number] as number)) & 0xffff
      count += 6
      if (count < 8) continue
      count -= 8
      file[size++] = bits >> count
    }
    ends[tokens++] = size
    while (file[at] !== NEW_LINE && at < file.length) at++
  }
  return tokens
}

/** Maximum number of pieces whose counts are cached, in about 2 MB. */
const MAX_PIECES = 10_000
/** Maximum characters of pieces that are counted each time, because computing their digest costs as much. */
const MAX_UNCACHED_LENGTH = 16

/**
 * Counts the tokens of texts piece by piece and caches the counts: clients send a conversation again with
 * each turn, and looking a piece up costs much less than counting it. Pieces are identified by their digests,
 * so that no prompt stays in memory.
 */
export class PieceCounts {
  readonly #countPiece: (piece: string) => number
  readonly #known = new LRUCache<string, number>({ max: MAX_PIECES })

  /** `countPiece` returns the tokens of a piece, which may begin and end anywhere in its text. */
  constructor(countPiece: (piece: string) => number) {
    this.#countPiece = countPiece
  }

  tokensOf(piece: string): number {
    if (piece.length <= MAX_UNCACHED_LENGTH) return this.#countPiece(piece)
    // The module is loaded on the first use, so that it does not delay the start, which waits for the vocabulary.
    const digest = process.getBuiltinModule('node:crypto').hash('sha256', piece, 'base64')
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    const tokens = this.#countPiece(piece)
    this.#known.set(digest, tokens)
    return tokens
  }
}
