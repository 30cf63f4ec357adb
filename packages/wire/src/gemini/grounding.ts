import { type Citation, codePointsIn, type Span } from '../citation.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/** Maximum number of citations read from one answer. */
const MAX_CITATIONS = 256

/** Finds the citations of a text after it is complete. */
export type CitationsOf = (text: string) => readonly Citation[]

/**
 * Reads the sources that a candidate reports for its text: pages found by a search, with the segments that
 * they support, and quoted works. Undefined if it reports none.
 */
export function citationsIn(candidate: Fields): CitationsOf | undefined {
  const grounding = asRecord(candidate['groundingMetadata'])
  const pages = listOf(grounding?.['groundingChunks']).map((chunk) => readPage(asRecord(chunk['web'])))
  const supports = listOf(grounding?.['groundingSupports'])
  const quoted = asRecord(candidate['citationMetadata'])
  const works = listOf(quoted?.['citationSources'] ?? quoted?.['citations'])
  if (pages.length === 0 && works.length === 0) return undefined
  return (text) => {
    const bytes = Buffer.from(text)
    const supported = supports.flatMap((support) => {
      const span = spanOf(bytes, asRecord(support['segment']) ?? {})
      const indices = support['groundingChunkIndices']
      return (Array.isArray(indices) ? (indices as readonly unknown[]) : []).flatMap((index) =>
        cite(pages[Number(index)], span),
      )
    })
    const found = supports.length > 0 ? supported : pages.flatMap((page) => cite(page, undefined))
    const quotes = works.flatMap((work) => cite(readPage(work), spanOf(bytes, work)))
    return [...found, ...quotes].slice(0, MAX_CITATIONS)
  }
}

function cite(page: Citation | undefined, span: Span | undefined): Citation[] {
  return page ? [{ ...page, ...(span && { span }) }] : []
}

function readPage(page: Fields | undefined): Citation | undefined {
  const url = page?.['uri']
  const title = page?.['title']
  if (typeof url !== 'string' || url === '') return undefined
  return { url, title: typeof title === 'string' ? title : '' }
}

/**
 * Range of a segment, which the protocol counts in bytes; undefined if the segment's text is not at that
 * position.
 */
function spanOf(bytes: Buffer, { startIndex = 0, endIndex, text }: Fields): Span | undefined {
  const from = Number(startIndex)
  const to = Number(endIndex)
  if (!(from >= 0 && to > from && to <= bytes.length)) return undefined
  const said = bytes.toString('utf8', from, to)
  if (typeof text === 'string' && text !== said) return undefined
  const start = codePointsIn(bytes.toString('utf8', 0, from))
  return { start, end: start + codePointsIn(said) }
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.slice(0, MAX_CITATIONS).map((one: unknown) => asRecord(one) ?? {}) : []
}
