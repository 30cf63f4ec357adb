import { type Citation, codePointsIn, type Span } from '../citation.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/** Citations that are read of one answer. */
const MAX_CITATIONS = 256

/** Finds the citations of a text, once all of it is known. */
export type CitationsOf = (text: string) => readonly Citation[]

/**
 * Reads the sources that a candidate states for its text: pages that a search found, with the segments that
 * they support, and works that it quotes. Undefined if it states none.
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

/** Range of a segment, which the wire counts in bytes; undefined where its own text is not there. */
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
