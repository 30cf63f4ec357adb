import { malformed } from '../refusal.ts'

const [QUOTE, BACKSLASH, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
]
/** Depth of the elements of a list that is a member of an object. */
const DEPTH = 2

/** The objects in the lists of a JSON object, each as its text, while it arrives. Throws `Refusal` if it breaks off. */
export async function* listElements(pieces: AsyncIterable<Buffer>): AsyncGenerator<string, void, undefined> {
  let depth = 0
  let isString = false
  let isEscaped = false
  let found: Buffer[] | undefined
  for await (const piece of pieces) {
    let start = 0
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at]
      if (isString) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isString = false
      } else if (byte === QUOTE) isString = true
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (depth === DEPTH && byte === OPEN_OBJECT) {
          found = []
          start = at
        }
        depth += 1
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        depth -= 1
        if (depth !== DEPTH || !found) continue
        found.push(piece.subarray(start, at + 1))
        yield Buffer.concat(found).toString()
        found = undefined
      }
    }
    found?.push(piece.subarray(start))
  }
  if (depth !== 0) throw malformed('The body of the request is not a JSON object')
}
