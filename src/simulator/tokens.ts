const PIECE = /\s?[^\s]{1,5}|\s+/gu

/** The text in the pieces that a model would emit: about four characters each, never half a character. */
export function pieces(text: string): string[] {
  return text.match(PIECE) ?? []
}

/** What a prompt of this many characters counts as. */
export function tokensOf(characters: number): number {
  return Math.ceil(characters / 4)
}
