import type { RequestHead } from './request-reader.ts'

/** Host and port of RFC 9110, 7.2 and RFC 3986, 3.2: no user, no path. May be empty. */
const AUTHORITY = /^(?:\[[\w.:~%-]+\]|[\w\-.~!$&'()*+,;=%]*)(?::\d*)?$/
/** Absolute form of a target: authority, then path and query. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i

/** Whether `text` is a valid value of a Host header. */
export function isAuthority(text: string): boolean {
  return AUTHORITY.test(text)
}

/**
 * Converts the head's target to origin form: path and query. The host of an absolute target overrides the
 * Host header (RFC 9112, 3.2.2). Undefined for an invalid target.
 */
export function toOriginForm(head: RequestHead): RequestHead | undefined {
  const { url, headers } = head
  if (url.startsWith('/') || url === '*') return head
  const [, host = '', rest = ''] = ABSOLUTE.exec(url) ?? []
  if (host === '' || !isAuthority(host)) return undefined
  return { ...head, url: rest.startsWith('/') ? rest : `/${rest}`, headers: { ...headers, host } }
}
