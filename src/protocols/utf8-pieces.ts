/** Where texts are put together, one call at a time: what a read of 64 KiB becomes has room in it, as far as one can tell before. */
const ROOM = Buffer.allocUnsafeSlow(262_144)
/** UTF-8 bytes that a unit of a string may take. */
const WIDEST = 3

/**
 * Texts as UTF-8, one after the other. Not put together as strings first: with a single character beyond Latin-1 in it, all of a
 * long string is wide, and written by a loop that takes several times as long.
 */
export function utf8Of(texts: Iterable<string>): Buffer {
  const full: Buffer[] = []
  let at = 0
  for (const text of texts) {
    if (text.length * WIDEST > ROOM.length - at) {
      if (at > 0) full.push(Buffer.from(ROOM.subarray(0, at)))
      at = 0
      if (text.length * WIDEST > ROOM.length) {
        full.push(Buffer.from(text))
        continue
      }
    }
    at += ROOM.write(text, at)
  }
  const last = Buffer.from(ROOM.subarray(0, at))
  return full.length === 0 ? last : Buffer.concat([...full, last])
}
