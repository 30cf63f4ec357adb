/**
 * Tokens of a text that its provider has encrypted, by the length of its base64: three bytes in four
 * characters, of which four are a token.
 */
export function encryptedTokens(base64Length: number): number {
  return Math.ceil((base64Length * 3) / 16)
}
