import type { WebSearch } from './conversation.ts'
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
