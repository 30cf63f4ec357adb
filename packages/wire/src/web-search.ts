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
 * Reports the domains of a search and the choice that forces it, for providers that support neither. Throws
 * `invalid_request` if the forced search is optional.
 */
export function dropSearchRules(webSearch: WebSearch | undefined, dropped: DroppedFields): void {
  if (webSearch?.domains) dropped.add('web_search')
  if (!webSearch?.isForced) return
  if (webSearch.isOptional)
    refuseField('tool_choice', 'a tool that this model can be given', 'one that it cannot be given')
  dropped.add('tool_choice')
}
