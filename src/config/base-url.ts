import { withoutTrailing } from '../domain/without-trailing.ts'

/**
 * Returns a base URL without its trailing slash; for an invalid text, `expected` states what would be valid.
 */
export function readBaseUrl(text: string): { url: string } | { expected: string } {
  const url = URL.canParse(text) && !/[\s\\]/.test(text) ? new URL(text) : undefined
  if (!url || !/^https?:\/\//i.test(text)) return { expected: 'an http:// or https:// URL' }
  if (url.username || url.password)
    return { expected: 'a URL without a user or password (credentials go to keys or headers)' }
  if (text.includes('?') || text.includes('#')) return { expected: 'a URL without ? or #' }
  const path = withoutTrailing(url.pathname, '/')
  const endpoint = ['/chat/completions', '/messages', '/rerank'].find((end) => path.endsWith(end))
  if (endpoint) return { expected: `a URL up to and including the version, ${endpoint} is added` }
  return { url: url.origin + path }
}
