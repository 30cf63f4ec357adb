/** The text of an error body, of which at most `maxBytes` are read, without markup; undefined if it has none. */
export function plainText(body: Buffer, maxBytes: number): string | undefined {
  const plain = body
    .toString('utf8', 0, maxBytes)
    .replace(/<(script|style)\b[^<]*(?:<(?!\/\1)[^<]*)*(?:<\/\1[^<>]*>?)?/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .trim()
  return plain === '' ? undefined : plain
}
