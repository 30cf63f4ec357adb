const PIECE = /\s?[^\s]{1,5}|\s+/gu

/** Splits a text into tokens of about four characters; a character is never split. */
export function splitIntoTokens(text: string): string[] {
  return text.match(PIECE) ?? []
}

/** Returns the number of tokens of a prompt with this many characters. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4)
}
