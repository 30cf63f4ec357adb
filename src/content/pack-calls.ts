import { isUtf8 } from 'node:buffer'
import type { BatchedCall } from './batch.ts'
import type { DropReason } from './content-capture.ts'
import { contentFacts } from './content-facts.ts'
import { compress, digestOf } from './entries.ts'
import { redactedContent } from './redact-content.ts'

/** Indexes of the parts that are requests, in `CONTENT_PARTS`. */
const REQUEST_PARTS: ReadonlySet<number> = new Set([0, 1])

/** A call's content after redaction and compression, before encryption. */
export interface PackedContent {
  readonly call: BatchedCall
  readonly bytes: number
  readonly sha256: string
  readonly lengths: string
  readonly compressed: Buffer
}

/**
 * Reduces the content of each call to what its level keeps, and compresses it. `lost` has the reasons why
 * content was left out.
 */
export function packCalls(
  calls: readonly BatchedCall[],
  bytes: Uint8Array,
): { readonly packed: readonly PackedContent[]; readonly lost: readonly DropReason[] } {
  const packed: PackedContent[] = []
  const lost: DropReason[] = []
  let at = 0
  for (const call of calls) {
    const length = call.lengths.reduce((sum, part) => sum + Math.max(0, part), 0)
    const content = bytes.subarray(at, at + length)
    at += length
    try {
      packed.push(packedCall(call, content, lost))
    } catch {
      // The content of this call would fail again, and must not keep the others from being written.
      lost.push('failed')
    }
  }
  return { packed, lost }
}

/** Reduces and compresses the content of one call. Adds a reason to `lost` if a part had to be left out. */
function packedCall(call: BatchedCall, content: Uint8Array, lost: DropReason[]): PackedContent {
  if (call.what === 'metadata') {
    const facts = Buffer.from(JSON.stringify(contentFacts(content, call.lengths)))
    return {
      call,
      bytes: facts.length,
      sha256: digestOf(content),
      lengths: '[]',
      compressed: compress(facts),
    }
  }
  const kept =
    call.what === 'redacted'
      ? redactedParts(content, call.lengths)
      : { content, lengths: call.lengths, isWhole: true }
  if (!kept.isWhole) lost.push('unscreened')
  return {
    call,
    bytes: kept.content.length,
    sha256: digestOf(kept.content),
    lengths: JSON.stringify(kept.lengths),
    compressed: compress(kept.content),
  }
}

/**
 * The parts without secrets and personal data. `isWhole` is false if a part could not be searched and is left
 * out.
 */
function redactedParts(
  content: Uint8Array,
  lengths: readonly number[],
): { readonly content: Buffer; readonly lengths: readonly number[]; readonly isWhole: boolean } {
  let at = 0
  let isWhole = true
  const parts = lengths.map((length, index) => {
    if (length < 0) return undefined
    const part = Buffer.from(content.buffer, content.byteOffset + at, length)
    at += length
    // A form with a file is left out, because its other fields cannot be separated from the file's bytes.
    if (REQUEST_PARTS.has(index) && !isUtf8(part)) return undefined
    const redacted = redactedContent(part)
    if (!redacted) isWhole = false
    return redacted
  })
  return {
    content: Buffer.concat(parts.filter((part) => part !== undefined)),
    lengths: parts.map((part) => part?.length ?? -1),
    isWhole,
  }
}
