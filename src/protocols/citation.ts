import type { Fields } from './field.ts'

/** Web page that the text of a reply cites. */
export interface Citation {
  readonly url: string
  /** Empty if the upstream states none. */
  readonly title: string
  /** Place in the text of the part; undefined = the whole part. */
  readonly span?: Span
}

/** Range of a text in Unicode code points, which chat and responses count; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Reads the members of a `url_citation`, which chat and responses share; undefined without a URL. Some
 * upstreams state neither place nor title.
 */
export function readUrlCitation(value: Fields | undefined): Citation | undefined {
  const url = value?.['url']
  if (typeof url !== 'string' || url === '') return undefined
  const title = value?.['title']
  const start = value?.['start_index']
  const end = value?.['end_index']
  const hasSpan = isIndex(start) && isIndex(end) && start <= end
  return { url, title: typeof title === 'string' ? title : '', ...(hasSpan && { span: { start, end } }) }
}

/** Returns the members of a `url_citation` for a part of `length` that begins at `base` in its text. */
export function urlCitation({ url, title, span }: Citation, length: number, base = 0): object {
  return { start_index: base + (span?.start ?? 0), end_index: base + (span?.end ?? length), title, url }
}

/** Moves a citation to a part that begins at `base` in the text that its place counts from. */
export function movedCitation(citation: Citation, base: number): Citation {
  const { span } = citation
  if (!span || base === 0) return citation
  return { ...citation, span: { start: Math.max(0, span.start - base), end: Math.max(0, span.end - base) } }
}

/** Counts the code points of a text; of a surrogate pair that two texts share, the first half counts. */
export function codePointsIn(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  return count
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
