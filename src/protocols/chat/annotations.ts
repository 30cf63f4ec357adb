import { type Citation, codePointsIn, urlCitation } from '../citation.ts'
import type { ReplyPart } from '../reply.ts'

/** Writes a citation as chat clients know it, of a part of `length` that begins at `base` in the content. */
export function writeAnnotation(citation: Citation, length: number, base: number): object {
  return { type: 'url_citation', url_citation: urlCitation(citation, length, base) }
}

/** Writes the citations of all texts, which form one content. */
export function annotationsIn(parts: readonly ReplyPart[]): object[] {
  let base = 0
  return parts.flatMap((part) => {
    if (part.kind !== 'text') return []
    const start = base
    const length = codePointsIn(part.text)
    base += length
    return (part.citations ?? []).map((citation) => writeAnnotation(citation, length, start))
  })
}
