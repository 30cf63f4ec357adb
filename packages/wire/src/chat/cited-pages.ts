import type { ToolUse } from '../tool-use.ts'
import { asRecord } from '../json/record.ts'

/** A web search known only from the pages that the reply cites. */
export const CITED_SEARCH: ToolUse = { kind: 'web_search', count: 1, isCited: true }

/** Reports whether a message, or a part of one, cites a web page. */
export function citesPage(message: unknown): boolean {
  const annotations = asRecord(message)?.['annotations']
  return (
    Array.isArray(annotations) &&
    annotations.some((annotation) => asRecord(annotation)?.['type'] === 'url_citation')
  )
}
