import type { Citation } from '../citation.ts'
import type { SearchPart } from '../provider-search.ts'
import type { ReplyPart } from '../reply.ts'

/** Place of a part's text in all of the answer's text, in UTF-16 units. */
interface Place {
  readonly from: number
  to: number
}

/** Searches and cited pages of an answer, as this wire tells them: with its end, beside its text. */
export class WrittenGrounding {
  #text = ''
  readonly #places = new Map<number, Place>()
  readonly #queries: string[] = []
  /** Addresses of pages that were found or cited, with their titles. */
  readonly #pages = new Map<string, string>()
  readonly #cited: { readonly part: number; readonly citation: Citation }[] = []

  /** Notes a whole part. */
  add(part: ReplyPart, index: number): void {
    if (part.kind === 'search') return this.search(part)
    if (part.kind !== 'text') return undefined
    this.grow(index, part.text)
    for (const citation of part.citations ?? []) this.cite(index, citation)
  }

  /** Notes more of a text. */
  grow(part: number, text: string): void {
    const place = this.#places.get(part) ?? { from: this.#text.length, to: 0 }
    this.#text += text
    place.to = this.#text.length
    this.#places.set(part, place)
  }

  /** Notes a page that a text cites. */
  cite(part: number, citation: Citation): void {
    this.#addPage(citation)
    this.#cited.push({ part, citation })
  }

  /** Notes a search. */
  search({ query, pages }: SearchPart): void {
    if (query !== '') this.#queries.push(query)
    for (const page of pages) this.#addPage(page)
  }

  /** Returns the member of the candidate with a comma behind it; '' if there is nothing to tell. */
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

  /** Range of a citation in bytes, which this wire counts. */
  #segment(place: Place = { from: 0, to: 0 }, { span }: Citation): object {
    const said = this.#text.slice(place.from, place.to)
    const points = span && Array.from(said)
    const before = points ? points.slice(0, span.start).join('') : ''
    const text = points ? points.slice(span.start, span.end).join('') : said
    const startIndex = Buffer.byteLength(this.#text.slice(0, place.from) + before)
    return { startIndex, endIndex: startIndex + Buffer.byteLength(text), text }
  }
}
