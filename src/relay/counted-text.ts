/** Characters of a piece: the time to count a run of one letter grows with its square. */
export const PIECE_LENGTH = 2_000
/** Pieces that are counted of one text: 256,000 characters. */
const MAX_PIECES = 128
/** Part of the golden ratio beyond 1: its multiples are spread evenly over any range. */
const GOLDEN = (Math.sqrt(5) - 1) / 2

/** A text to count: its pieces, and the part of the whole that they are. */
export interface CountedText {
  readonly pieces: readonly string[]
  /** Characters of the whole for each character of the pieces; 1 where that is all of it. */
  readonly factor: number
}

/**
 * Cuts a text into pieces to count. Of a text of more than 256,000 characters only pieces that are spread
 * evenly over it are taken. `offset`, from 0 to 1, decides which: authors of texts must not know it. A
 * text that grows keeps most of its pieces, whose counts are known then.
 */
export function countedText(text: string, offset: number): CountedText {
  const all = Math.ceil(text.length / PIECE_LENGTH)
  const pieces: string[] = []
  let length = 0
  for (let index = 0; index < all; index++) {
    if (all > MAX_PIECES && ((index + 1) * GOLDEN + offset) % 1 >= MAX_PIECES / all) continue
    const piece = text.slice(index * PIECE_LENGTH, (index + 1) * PIECE_LENGTH)
    pieces.push(piece)
    length += piece.length
  }
  return { pieces, factor: length === 0 ? 0 : text.length / length }
}
