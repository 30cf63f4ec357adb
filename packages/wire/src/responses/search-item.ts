import { asRecord } from '../json/record.ts'
import type { SearchResultPage, SearchPart } from '../conversation.ts'

type Item = Readonly<Record<string, unknown>>

/** Whether an item is a web search. Opening a page or finding a word on a page does not count as a search. */
export function isSearch(value: unknown): boolean {
  const item = asRecord(value)
  return item?.['type'] === 'web_search_call' && (asRecord(item['action'])?.['type'] ?? 'search') === 'search'
}

/** Reads a search item. Older providers report one query, newer ones a list of queries. */
export function readSearch(item: Item): SearchPart {
  const action = asRecord(item['action'])
  const queries: readonly unknown[] = Array.isArray(action?.['queries']) ? action['queries'] : []
  const query = [action?.['query'], ...queries].find((text) => typeof text === 'string' && text !== '')
  const sources: readonly unknown[] = Array.isArray(action?.['sources']) ? action['sources'] : []
  return {
    kind: 'search',
    protocol: 'responses',
    query: typeof query === 'string' ? query : '',
    pages: sources.flatMap((source) => readPage(asRecord(source)) ?? []),
    isFailed: item['status'] === 'failed',
  }
}

/** Members of the item for a finished search, without its id. */
export function searchItem({ query, pages, isFailed }: SearchPart): Item {
  return {
    type: 'web_search_call',
    status: isFailed ? 'failed' : 'completed',
    action: { type: 'search', query, ...(pages.length > 0 && { sources: pages.map(writePage) }) },
  }
}

function readPage(source: Item | undefined): SearchResultPage | undefined {
  const url = source?.['url']
  if (typeof url !== 'string' || url === '') return undefined
  const title = source?.['title']
  return { url, title: typeof title === 'string' ? title : '' }
}

function writePage({ url }: SearchResultPage): Item {
  return { type: 'url', url }
}
