import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Maximum number of pieces whose counts are cached, in about 2 MB. */
const MAX_PIECES = 10_000

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
