import { parentPort } from 'node:worker_threads'
import { bodyFor, mayBeKept } from './answer-bodies.ts'
import type { ConversionMessage } from './answer-conversions.ts'

/** Maximum heap that reading an answer may take; texts of the maximum size take a quarter of it. */
const MAX_HEAP_BYTES = 268_435_456
/** Heap for each byte: the text, and the texts of its values. */
const BYTES_PER_BYTE = 2
/** Heap for each value of a kind, by the character that it has. Those within texts count, too, because that is simpler. */
const BYTES_PER_CHARACTER = new Int32Array(256)
for (const [character, bytes] of Object.entries({ '[': 40, '{': 64, ':': 64, ',': 16, '\n': 16 }))
  BYTES_PER_CHARACTER[character.codePointAt(0) ?? 0] = bytes

parentPort?.on('message', ({ given: { bytes, ...others }, wanted }: ConversionMessage) => {
  // A thread whose heap is too small for a parsed value ends the process, so that this is known before.
  if (heapFor(bytes) > MAX_HEAP_BYTES) return parentPort?.postMessage(undefined)
  const given = { ...others, bytes: Buffer.from(bytes.buffer) }
  if (!wanted) return parentPort?.postMessage(mayBeKept(given))
  const body = bodyFor(given, wanted)
  // A copy with memory of its own, which can be handed over.
  const copy = body && Uint8Array.from(body)
  return parentPort?.postMessage(copy, copy ? [copy.buffer] : [])
})

function heapFor(bytes: Uint8Array): number {
  let heap = BYTES_PER_BYTE * bytes.length
  // Several times as fast as an iterator.
  for (let at = 0; at < bytes.length; at += 1) heap += BYTES_PER_CHARACTER[bytes[at] as number] as number
  return heap
}
