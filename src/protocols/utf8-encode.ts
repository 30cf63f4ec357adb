/** Buffer in which texts are joined, within one call; large enough for most conversions of a 64 KiB read. */
const SCRATCH = Buffer.allocUnsafeSlow(262_144)
/** Largest UTF-8 size of a string's code unit. */
const MAX_BYTES_PER_UNIT = 3

/**
 * Encodes texts as UTF-8, one after the other. They are not joined as strings first: a single character
 * beyond Latin-1 makes a long string wide, which takes several times as long to encode.
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
