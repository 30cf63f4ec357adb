import { type Citation, codePointsIn, readUrlCitation, type Span } from '../reply.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/** Maximum number of sources, and of their marks, that are read from one text. */
const MAX_SOURCES = 256

/**
 * The pages that an answer states for all its texts, in order: `search_results` of Perplexity, or `citations`, which
 * xAI has too. An element without an address is undefined, because the texts refer to pages by their number.
 */
export function sourcesIn({ search_results: results, citations }: Fields): readonly (Citation | undefined)[] {
  const list = Array.isArray(results) && results.length > 0 ? results : citations
  if (!Array.isArray(list)) return []
  return list
    .slice(0, MAX_SOURCES)
    .map((source) => readUrlCitation(typeof source === 'string' ? { url: source } : asRecord(source)))
}

/** A place at which a text refers to a source. */
interface SourceMark {
  /** Index of the source, from 0. */
  readonly source: number
  readonly span: Span
}

/** Finds the marks of sources in a text: their numbers in brackets, such as `[1]`. */
export function sourceMarksIn(text: string): SourceMark[] {
  const marks: SourceMark[] = []
  let [from, start] = [0, 0]
  for (const { 0: mark, 1: number, index } of text.matchAll(/\[(\d{1,3})\]/g)) {
    if (marks.length === MAX_SOURCES) break
    start += codePointsIn(text.slice(from, index))
    from = index
    marks.push({ source: Number(number) - 1, span: { start, end: start + mark.length } })
  }
  return marks
}
