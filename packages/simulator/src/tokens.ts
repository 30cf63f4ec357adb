const PIECE = /\s?[^\s]{1,5}|\s+/gu

/** Splits a text into tokens of about four characters, never within a character. */
export function pieces(text: string): string[] {
  return text.match(PIECE) ?? []
}

/** Tokens of a prompt of this many characters. */
export function tokensOf(characters: number): number {
  return Math.ceil(characters / 4)
}
