import type { Fields } from './field.ts'

/** Web page cited by the text of a reply. */
export interface Citation {
  readonly url: string
  /** Empty if the upstream reports none. */
  readonly title: string
  /** Position in the text of the part; undefined means the whole part. */
  readonly span?: Span
}

/** Range of a text in Unicode code points, the unit of chat and responses; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Reads the members of a `url_citation`, which chat and responses share; undefined if it has no URL. Some
 * upstreams omit position and title.
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

/** Renders a `url_citation` for a part of `length` that begins at `base` in its text. */
export function urlCitation({ url, title, span }: Citation, length: number, base = 0): object {
  return { start_index: base + (span?.start ?? 0), end_index: base + (span?.end ?? length), title, url }
}

/**
 * Shifts a citation whose position is relative to a longer text, for the part that begins at `base` in that
 * text.
 */
export function movedCitation(citation: Citation, base: number): Citation {
  const { span } = citation
  if (!span || base === 0) return citation
  return { ...citation, span: { start: Math.max(0, span.start - base), end: Math.max(0, span.end - base) } }
}

/**
 * Counts the code points of a text. A surrogate pair that is split between two texts is counted with its
 * first half.
 */
export function codePointsIn(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  return count
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
