import type { RequestHead } from './request-reader.ts'

/** The host and port of RFC 9110, 7.2 and RFC 3986, 3.2: no user, no path. It may be empty. */
const AUTHORITY = /^(?:\[[\w.:~%-]+\]|[\w\-.~!$&'()*+,;=%]*)(?::\d*)?$/
/** An absolute address: its authority, and its path and query. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i

/** Whether this can be the value of a Host header. */
export function isAuthority(text: string): boolean {
  return AUTHORITY.test(text)
}

/**
 * The head with path and query as its address, and the host that it is for (RFC 9112, 3.2.2: an absolute
 * address goes before the Host header). Undefined where its address is none that a request may have.
 */
export function inOriginForm(head: RequestHead): RequestHead | undefined {
  const { url, headers } = head
  if (url.startsWith('/') || url === '*') return head
  const [, host = '', rest = ''] = ABSOLUTE.exec(url) ?? []
  if (host === '' || !isAuthority(host)) return undefined
  return { ...head, url: rest.startsWith('/') ? rest : `/${rest}`, headers: { ...headers, host } }
}
