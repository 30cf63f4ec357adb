import type { ToolUse } from '../../domain/tool-use.ts'
import { asRecord } from '../json/record.ts'

/** A search that an answer tells by what it cites alone. */
export const CITED_SEARCH: ToolUse = { kind: 'web_search', count: 1, isCited: true }

/** Whether a message, or a part of one, cites a page of the web. */
export function citesPage(message: unknown): boolean {
  const annotations = asRecord(message)?.['annotations']
  return (
    Array.isArray(annotations) &&
    annotations.some((annotation) => asRecord(annotation)?.['type'] === 'url_citation')
  )
}
