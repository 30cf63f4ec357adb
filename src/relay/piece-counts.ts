import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Characters counted at a time: the time for a run of one letter grows with its square. */
const PIECE_LENGTH = 2_000
/** Pieces whose counts are kept, in about 2 MB. */
const MAX_PIECES = 10_000

/**
 * Counts the tokens of texts piece by piece, and keeps the counts of pieces: clients send a conversation
 * again with each of its turns, and to look a piece up costs a small part of counting it. Pieces are known
 * by their digests, so that no prompt stays in memory.
 */
export class PieceCounts {
  readonly #countPiece: (piece: string) => number
  readonly #known = new LRUCache<string, number>({ max: MAX_PIECES })

  /** `countPiece` returns the tokens of a piece, which begins and ends anywhere in its text. */
  constructor(countPiece: (piece: string) => number) {
    this.#countPiece = countPiece
  }

  /** The sum of the tokens of a text's pieces. */
  tokensOf(text: string): number {
    let tokens = 0
    for (let at = 0; at < text.length; at += PIECE_LENGTH)
      tokens += this.#tokensOfPiece(text.slice(at, at + PIECE_LENGTH))
    return tokens
  }

  #tokensOfPiece(piece: string): number {
    const digest = hash('sha256', piece, 'base64')
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    const tokens = this.#countPiece(piece)
    this.#known.set(digest, tokens)
    return tokens
  }
}
