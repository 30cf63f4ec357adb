import { serve } from '../../ipc/serve.ts'
import { convertBody, isKeepableAnswer } from './answer-bodies.ts'
import type { ConversionRequests } from './answer-conversions.ts'

/**
 * Maximum heap in bytes that reading an answer may take. A text of the maximum size takes a quarter of it.
 */
const MAX_HEAP_BYTES = 268_435_456
/** Heap bytes for each byte of an answer: one for its text, and one for the texts of its values. */
const BYTES_PER_BYTE = 2
/**
 * Heap bytes of each value in a JSON text, by the character that stands at it: `[` or `{` for its beginning,
 * `:` or `,` for a member. Characters within texts are counted too, because that is simpler.
 */
const BYTES_PER_CHARACTER = new Int32Array(256)
for (const [character, bytes] of Object.entries({ '[': 40, '{': 64, ':': 64, ',': 16, '\n': 16 }))
  BYTES_PER_CHARACTER[character.codePointAt(0) ?? 0] = bytes

serve<ConversionRequests>(
  {
    convert({ given: { bytes, ...others }, wanted }) {
      // The heap is estimated before parsing, because a thread whose heap is too small ends the whole process.
      if (heapFor(bytes) > MAX_HEAP_BYTES) return undefined
      const given = { ...others, bytes: Buffer.from(bytes.buffer) }
      if (!wanted) return isKeepableAnswer(given)
      const body = convertBody(given, wanted)
      // A copy that does not share its memory, so that it can be transferred to the main thread.
      return body && Uint8Array.from(body)
    },
  },
  { transferred: (result) => (result instanceof Uint8Array ? [result.buffer as ArrayBuffer] : []) },
)

function heapFor(bytes: Uint8Array): number {
  let heap = BYTES_PER_BYTE * bytes.length
  // A loop by index is several times as fast as an iterator.
  for (let at = 0; at < bytes.length; at += 1) heap += BYTES_PER_CHARACTER[bytes[at] as number] as number
  return heap
}
