import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

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

  /** The tokens of a piece. */
  tokensOf(piece: string): number {
    const digest = hash('sha256', piece, 'base64')
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    const tokens = this.#countPiece(piece)
    this.#known.set(digest, tokens)
    return tokens
  }
}
