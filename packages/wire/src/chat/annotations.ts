import { type Citation, codePointsIn, urlCitation } from '../citation.ts'
import type { ReplyPart } from '../reply.ts'

/**
 * Renders a citation for chat clients. It belongs to a part of `length` that begins at `base` in the content.
 */
export function writeAnnotation(citation: Citation, length: number, base: number): object {
  return { type: 'url_citation', url_citation: urlCitation(citation, length, base) }
}

/** Renders the citations of all texts; together these are one content. */
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
