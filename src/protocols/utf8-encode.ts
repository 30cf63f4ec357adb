/** Where texts are put together, one call at a time. */
const SCRATCH = Buffer.allocUnsafeSlow(65_536)
/** UTF-8 bytes that a unit of a string may take. */
const MAX_BYTES_PER_UNIT = 3

/**
 * Texts as UTF-8, one after the other. Not put together as strings first: with a single character beyond
 * Latin-1 in it, all of a long string is wide, and written by a loop that takes several times as long.
 */
export function encodeUtf8(texts: Iterable<string>): Buffer {
  const full: Buffer[] = []
  let at = 0
  for (const text of texts) {
    if (text.length * MAX_BYTES_PER_UNIT > SCRATCH.length - at) {
      if (at > 0) full.push(Buffer.from(SCRATCH.subarray(0, at)))
      at = 0
      if (text.length * MAX_BYTES_PER_UNIT > SCRATCH.length) {
        full.push(Buffer.from(text))
        continue
      }
    }
    at += SCRATCH.write(text, at)
  }
  const last = Buffer.from(SCRATCH.subarray(0, at))
  return full.length === 0 ? last : Buffer.concat([...full, last])
}
