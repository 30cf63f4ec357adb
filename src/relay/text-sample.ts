/**
 * Length of a piece in characters. Pieces are short because the time to count a run of one letter grows with
 * its square.
 */
export const PIECE_LENGTH = 2_000
/** Maximum pieces that are counted of one text: 256,000 characters. */
const MAX_PIECES = 128
/** Fractional part of the golden ratio. Its multiples modulo 1 are spread evenly. */
const GOLDEN = (Math.sqrt(5) - 1) / 2

/** A text to count: its pieces, and the ratio of the whole text to them. */
export interface CountedText {
  readonly pieces: readonly string[]
  /** Characters of the whole text per character of the pieces; 1 if the pieces are the whole text. */
  readonly factor: number
}

/**
 * Cuts a text into pieces to count. Of a text above 256,000 characters, only pieces spread evenly over it are
 * taken. `offset`, from 0 to 1, decides which; authors of texts must not be able to guess it. A text that
 * grows keeps most of its pieces, whose counts are then already known.
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
