/**
 * Estimates the tokens of an encrypted text by the length of its base64: four characters are three bytes, and
 * four bytes are one token.
 */
export function encryptedTokens(base64Length: number): number {
  return Math.ceil((base64Length * 3) / 16)
}
