/** The parts of a call's content, in the order in which they are stored and hashed. */
export const CONTENT_PARTS = ['request_received', 'request_sent', 'answer_received', 'answer_sent'] as const

/** Name of a part of a call's content. */
export type ContentPart = (typeof CONTENT_PARTS)[number]

/** The bytes of each part. A part is absent if it equals the one before it, or if there was none. */
export type ContentBytes = Partial<Record<ContentPart, Buffer>>

/** Divides the bytes of all parts, whose sizes are `lengths`. */
export function partsOfContent(content: Uint8Array, lengths: readonly number[]): ContentBytes {
  const parts: ContentBytes = {}
  let at = 0
  for (const [index, part] of CONTENT_PARTS.entries()) {
    const length = lengths[index] ?? -1
    if (length < 0) continue
    parts[part] = Buffer.from(content.buffer, content.byteOffset + at, length)
    at += length
  }
  return parts
}
