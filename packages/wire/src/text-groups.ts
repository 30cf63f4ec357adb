/**
 * Splits texts into groups in order. A group has a maximum number of texts and a maximum of bytes, unless a
 * single text is larger. Returns at least one group with at least one text.
 */
export function textGroups(
  texts: readonly string[],
  maxTexts: number,
  maxBytes = Number.POSITIVE_INFINITY,
): readonly [first: readonly string[], ...more: (readonly string[])[]] {
  const groups: [string[], ...string[][]] = [[]]
  let group = groups[0]
  let bytes = 0
  for (const text of texts) {
    const size = Buffer.byteLength(text)
    if (group.length > 0 && (group.length === maxTexts || bytes + size > maxBytes)) {
      groups.push((group = []))
      bytes = 0
    }
    group.push(text)
    bytes += size
  }
  return groups
}
