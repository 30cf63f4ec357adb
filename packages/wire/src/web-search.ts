import type { DroppedFields } from './codec.ts'
import type { WebSearch } from './conversation.ts'
import { refuseField } from './field-check.ts'
import type { Fields } from './field.ts'

/** Members that restrict a web search, in a tool of messages and in the filters of responses. */
export const DOMAIN_LISTS = ['allowed_domains', 'blocked_domains'] as const

/** Reads the domains of a web search, as an object to spread into it. An empty list restricts nothing. */
export function readSearchDomains(fields: Fields): Pick<WebSearch, 'domains'> {
  const lists = DOMAIN_LISTS.map((name) => [name, fields[name]] as const).filter(
    ([, list]) => Array.isArray(list) && list.length > 0,
  )
  return lists.length > 0 ? { domains: Object.fromEntries(lists) } : {}
}

/** The tool choice with which messages requests force a web search. */
export const FORCED_SEARCH = { type: 'tool', name: 'web_search' } as const

/**
 * Reports what a provider lacks that cannot limit its search to domains, or be forced to search. Throws
 * `invalid_request` if a client forces a search that it offers as one tool among others.
 */
export function dropSearchRules(webSearch: WebSearch | undefined, dropped: DroppedFields): void {
  if (webSearch?.domains) dropped.add('web_search')
  if (!webSearch?.isForced) return
  if (webSearch.isOptional)
    refuseField('tool_choice', 'a tool that this model can be given', 'one that it cannot be given')
  dropped.add('tool_choice')
}
