import { type Citation, codePointsIn, type ReplyPart, type Span } from '../reply.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import type { SearchPart } from '../conversation.ts'

/** Maximum number of citations that are read from one response, or written into one: each repeats a part of the text. */
const MAX_CITATIONS = 256

/** Returns the citations of a text. Must be called with the complete text. */
export type FindCitations = (text: string) => readonly Citation[]

/**
 * Reads the sources that a candidate states for its text: pages found by a search with the text segments that
 * they support, and quoted works. Undefined if it states none.
 */
export function citationFinderOf(candidate: Fields): FindCitations | undefined {
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
 * Range of a text segment, which this protocol counts in bytes; undefined if the segment's text is not there.
 */
function spanOf(bytes: Buffer, { startIndex = 0, endIndex, text }: Fields): Span | undefined {
  const from = Number(startIndex)
  const to = Number(endIndex)
  if (!(from >= 0 && to > from && to <= bytes.length)) return undefined
  const segment = bytes.toString('utf8', from, to)
  if (typeof text === 'string' && text !== segment) return undefined
  const start = codePointsIn(bytes.toString('utf8', 0, from))
  return { start, end: start + codePointsIn(segment) }
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.slice(0, MAX_CITATIONS).map((one: unknown) => asRecord(one) ?? {}) : []
}

/** Range of a part's text in the text of the whole response, in UTF-16 code units. */
interface Place {
  readonly from: number
  to: number
}

/**
 * Collects the searches and cited pages of a response. Gemini's protocol states them at the end of the
 * response, separately from the text.
 */
export class GroundingCollector {
  #text = ''
  readonly #places = new Map<number, Place>()
  readonly #queries: string[] = []
  /** Titles of the pages that were found or cited, by URL. */
  readonly #pages = new Map<string, string>()
  readonly #cited: { readonly part: number; readonly citation: Citation }[] = []

  /** Adds a complete part of the response: its search, or its text with the citations. */
  add(part: ReplyPart, index: number): void {
    if (part.kind === 'search') return this.search(part)
    if (part.kind !== 'text') return undefined
    this.grow(index, part.text)
    for (const citation of part.citations ?? []) this.cite(index, citation)
  }

  /**
   * Adds a piece of a part's text, from which the positions of citations are computed. `part` is the index of
   * the part.
   */
  grow(part: number, text: string): void {
    const place = this.#places.get(part) ?? { from: this.#text.length, to: 0 }
    this.#text += text
    place.to = this.#text.length
    this.#places.set(part, place)
  }

  /** Adds a citation of the text of a part: the page, and the range of the text that cites it. */
  cite(part: number, citation: Citation): void {
    this.#addPage(citation)
    if (this.#cited.length < MAX_CITATIONS) this.#cited.push({ part, citation })
  }

  /** Adds a search: what was searched for, and the pages that were found. */
  search({ query, pages }: SearchPart): void {
    if (query !== '') this.#queries.push(query)
    for (const page of pages) this.#addPage(page)
  }

  /**
   * Writes the searches and pages as the member `groundingMetadata` of a candidate, followed by a comma.
   * Empty if there are neither.
   */
  write(): string {
    if (this.#queries.length === 0 && this.#pages.size === 0) return ''
    const numbers = new Map([...this.#pages.keys()].map((url, index) => [url, index]))
    const metadata = {
      ...(this.#queries.length > 0 && { webSearchQueries: this.#queries }),
      groundingChunks: [...this.#pages].map(([uri, title]) => ({ web: { uri, title } })),
      groundingSupports: this.#cited.map(({ part, citation }) => ({
        segment: this.#segment(this.#places.get(part), citation),
        groundingChunkIndices: [numbers.get(citation.url)],
      })),
    }
    return `"groundingMetadata":${JSON.stringify(metadata)},`
  }

  #addPage({ url, title }: { readonly url: string; readonly title: string }): void {
    this.#pages.set(url, this.#pages.get(url) || title)
  }

  /** Range of a citation in bytes, as this protocol counts. */
  #segment(place: Place = { from: 0, to: 0 }, { span }: Citation): object {
    const segment = this.#text.slice(place.from, place.to)
    const points = span && Array.from(segment)
    const before = points ? points.slice(0, span.start).join('') : ''
    const text = points ? points.slice(span.start, span.end).join('') : segment
    const startIndex = Buffer.byteLength(this.#text.slice(0, place.from) + before)
    return { startIndex, endIndex: startIndex + Buffer.byteLength(text), text }
  }
}
