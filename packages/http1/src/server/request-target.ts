import type { RequestHead } from './request-reader.ts'

/**
 * Host and optional port (RFC 9110, section 7.2; RFC 3986, section 3.2), without a user or a path. May be
 * empty.
 */
const AUTHORITY = /^(?:\[[\w.:~%-]+\]|[\w\-.~!$&'()*+,;=%]*)(?::\d*)?$/
/** Absolute form of a target: host and port, then path and query. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i

/** Whether `text` is a valid value of a Host header. */
export function isAuthority(text: string): boolean {
  return AUTHORITY.test(text)
}

/**
 * Converts the target of a head to origin form: path and query. The host of an absolute target replaces the
 * Host header (RFC 9112, section 3.2.2). Returns undefined for an invalid target.
 */
export function toOriginForm(head: RequestHead): RequestHead | undefined {
  const { url, headers } = head
  if (url.startsWith('/') || url === '*') return head
  const [, host = '', rest = ''] = ABSOLUTE.exec(url) ?? []
  if (host === '' || !isAuthority(host)) return undefined
  return { ...head, url: rest.startsWith('/') ? rest : `/${rest}`, headers: { ...headers, host } }
}
