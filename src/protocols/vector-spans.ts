import { parseRecord } from './json/record.ts'

/** Place of a vector in a response, as byte offsets with an exclusive end. */
export interface VectorSpan {
  readonly form: 'numbers' | 'base64'
  readonly start: number
  readonly end: number
}

const COLON = 0x3a
const QUOTE = 0x22
const OPEN = 0x5b
const CLOSE = 0x5d

/**
 * Finds the vectors of a response by the name of their member, without reading what is in them: a flat list
 * ends at the first bracket, and base64 at the first quote. Values of other kinds are left out.
 */
export function vectorSpans(bytes: Buffer, name: string): VectorSpan[] {
  const member = `"${name}"`
  const spans: VectorSpan[] = []
  let at = 0
  for (let key = bytes.indexOf(member, at); key !== -1; key = bytes.indexOf(member, at)) {
    at = afterSpace(bytes, key + member.length)
    // The same word is also a value: `"object": "embedding"`.
    if (bytes[at] !== COLON) continue
    const start = afterSpace(bytes, at + 1)
    const opening = bytes[start]
    if (opening !== OPEN && opening !== QUOTE) continue
    const last = bytes.indexOf(opening === OPEN ? CLOSE : QUOTE, start + 1)
    if (last === -1) break
    at = last + 1
    spans.push({ form: opening === OPEN ? 'numbers' : 'base64', start, end: at })
  }
  return spans
}

/** The bytes with other texts in the places of these vectors, in their order. */
export function withVectors(bytes: Buffer, spans: readonly VectorSpan[], texts: readonly string[]): Buffer {
  const pieces: Buffer[] = []
  let at = 0
  for (const [index, { start, end }] of spans.entries()) {
    pieces.push(bytes.subarray(at, start), Buffer.from(texts[index] ?? '', 'latin1'))
    at = end
  }
  return Buffer.concat([...pieces, bytes.subarray(at)])
}

/** Parses a response with empty lists in place of its vectors; undefined for anything but a JSON object. */
export function withoutVectors(
  bytes: Buffer,
  spans: readonly VectorSpan[],
): Record<string, unknown> | undefined {
  const outline = withVectors(
    bytes,
    spans,
    spans.map(() => '[]'),
  )
  // A list of vectors, which ends elsewhere, is read in full.
  return parseRecord(outline.toString()) ?? parseRecord(bytes.toString())
}

const SPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d])

function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (SPACE.has(bytes[at])) at++
  return at
}
